// reduce_integer.cc - reductions of i32 and i64, compiled for every instruction set.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_integer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/reduce_inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

void do_reduce_i32(const ReduceCall& call) { reduce_lanes<PlainLanes<std::int32_t>>(call); }
void do_reduce_i64(const ReduceCall& call) { reduce_lanes<PlainLanes<std::int64_t>>(call); }

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(do_reduce_i32);
HWY_EXPORT(do_reduce_i64);

void reduce_i32(const ReduceCall& call) { HWY_DYNAMIC_DISPATCH(do_reduce_i32)(call); }
void reduce_i64(const ReduceCall& call) { HWY_DYNAMIC_DISPATCH(do_reduce_i64)(call); }

}  // namespace sluice::kernels
#endif

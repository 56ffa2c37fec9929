// reduce_half.cc - reductions of f16 and bf16, compiled for every instruction set.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_half.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/reduce_inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

void do_reduce_f16(const ReduceCall& call) { reduce_lanes<F16Lanes>(call); }
void do_reduce_bf16(const ReduceCall& call) { reduce_lanes<Bf16Lanes>(call); }

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(do_reduce_f16);
HWY_EXPORT(do_reduce_bf16);

void reduce_f16(const ReduceCall& call) { HWY_DYNAMIC_DISPATCH(do_reduce_f16)(call); }
void reduce_bf16(const ReduceCall& call) { HWY_DYNAMIC_DISPATCH(do_reduce_bf16)(call); }

}  // namespace sluice::kernels
#endif

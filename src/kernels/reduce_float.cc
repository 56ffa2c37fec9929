// reduce_float.cc - reductions of f32 and f64, compiled for every instruction set.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_float.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/reduce_inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

void do_reduce_f32(const ReduceCall& call) { reduce_lanes<PlainLanes<float>>(call); }
void do_reduce_f64(const ReduceCall& call) { reduce_lanes<PlainLanes<double>>(call); }

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(do_reduce_f32);
HWY_EXPORT(do_reduce_f64);

void reduce_f32(const ReduceCall& call) { HWY_DYNAMIC_DISPATCH(do_reduce_f32)(call); }
void reduce_f64(const ReduceCall& call) { HWY_DYNAMIC_DISPATCH(do_reduce_f64)(call); }

}  // namespace sluice::kernels
#endif

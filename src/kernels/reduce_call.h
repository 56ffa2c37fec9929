// reduce_call.h - what reduce.cc hands to the vector code of each type.
#pragma once

#include "kernels/reduce.h"

namespace sluice::kernels {

struct ReduceCall {
  const Reduction& reduction;
  std::span<void* const> targets;
  std::span<const void* const> sources;
  std::size_t count = 0;
  bool streams = false;  // the targets are large, and no source among them: bypass the cache
};

void reduce_f32(const ReduceCall& call);
void reduce_f64(const ReduceCall& call);
void reduce_f16(const ReduceCall& call);
void reduce_bf16(const ReduceCall& call);
void reduce_i32(const ReduceCall& call);
void reduce_i64(const ReduceCall& call);

}  // namespace sluice::kernels

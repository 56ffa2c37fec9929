#include "kernels/reduce.h"

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/reduce_call.h"

namespace sluice::kernels {

void reduce_into(const Reduction& reduction, void* target, std::span<const void* const> sources,
                 std::size_t count) {
  reduce_to_all(reduction, {&target, 1}, sources, count);
}

void reduce_to_all(const Reduction& reduction, std::span<void* const> targets,
                   std::span<const void* const> sources, std::size_t count) {
  const auto is_source = [&](const void* target) {
    return std::find(sources.begin(), sources.end(), target) != sources.end();
  };
  const bool streams = count * size_of(reduction.type) >= kStreamBytes &&
                       std::none_of(targets.begin(), targets.end(), is_source);
  const ReduceCall call{reduction, targets, sources, count, streams};
  switch (reduction.type) {
    case DataType::F32:
      return reduce_f32(call);
    case DataType::F64:
      return reduce_f64(call);
    case DataType::F16:
      return reduce_f16(call);
    case DataType::BF16:
      return reduce_bf16(call);
    case DataType::I32:
      return reduce_i32(call);
    case DataType::I64:
      return reduce_i64(call);
  }
}

}  // namespace sluice::kernels

#include "torch/weights.h"

#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>

namespace sluice {
namespace {

void broadcast(const torch::Tensor& tensor, Communicator& communicator) {
  const torch::Tensor flat = tensor.contiguous();
  const std::size_t bytes = flat.nbytes();
  // Bytes, whatever they mean, as words that a collective knows.
  std::vector<std::int64_t> words((bytes + 7) / 8);
  std::memcpy(words.data(), flat.data_ptr(), bytes);
  communicator.broadcast(words.data(), words.size(), {.type = DataType::I64}).wait();
  if (communicator.rank() == 0) return;
  std::memcpy(flat.data_ptr(), words.data(), bytes);
  if (!flat.is_same(tensor)) tensor.copy_(flat);
}

}  // namespace

std::uint64_t hash_of(const NamedTensors& tensors) {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::string shape = c10::str(name, tensor.scalar_type(), tensor.sizes());
    hash = XXH3_64bits_withSeed(shape.data(), shape.size(), hash);
    const torch::Tensor flat = tensor.contiguous();
    hash = XXH3_64bits_withSeed(flat.data_ptr(), flat.nbytes(), hash);
  }
  return hash;
}

bool equalise(const NamedTensors& tensors, Communicator& communicator) {
  const torch::NoGradGuard no_gradient;
  const auto hash = std::bit_cast<std::int64_t>(hash_of(tensors));
  // ~ turns the order round, so one call finds the smallest and the largest.
  std::array<std::int64_t, 2> ends{hash, ~hash};
  communicator.all_reduce(ends.data(), ends.size(), {.type = DataType::I64, .op = ReduceOp::Min})
      .wait();
  if (ends[0] == ~ends[1]) return false;
  for (const auto& [name, tensor] : tensors) broadcast(tensor, communicator);
  return true;
}

}  // namespace sluice

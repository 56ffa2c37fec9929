#include "libtorch/weights.h"

#include <xxhash.h>

#include <cstring>
#include <optional>

#include "base/format.h"
#include "engine/internal_collectives.h"
#include "gradient/description.h"
#include "sluice/status.h"

namespace sluice::libtorch {
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

bool has_bytes(const torch::Tensor& tensor) {
  return tensor.layout() == torch::kStrided && tensor.device().is_cpu();
}

void require_same_shapes(const NamedTensors& tensors, Communicator& communicator) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : tensors)
    lines.push_back(c10::str("'", name, "' of ", tensor.scalar_type(), " ", tensor.sizes()));
  const std::optional<gradient::Difference> found =
      gradient::difference_between_ranks(communicator, lines);
  if (!found) return;
  throw Error{Status{Code::Mismatch,
                     base::format("parameters and buffers: rank 0 has {} where rank {} has {}; all "
                                  "ranks must have the same model",
                                  found->expected, found->rank, found->theirs)}};
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

bool equalise(NamedTensors tensors, Communicator& communicator) {
  const torch::NoGradGuard no_gradient;
  std::erase_if(tensors, [](const auto& named) { return !has_bytes(named.second); });
  if (engine::same_everywhere(communicator, hash_of(tensors))) return false;
  require_same_shapes(tensors, communicator);
  for (const auto& [name, tensor] : tensors) broadcast(tensor, communicator);
  return true;
}

}  // namespace sluice::libtorch

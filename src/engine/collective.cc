#include "engine/collective.h"

#include <cstring>
#include <iterator>

#include "algorithms/schedule_file.h"
#include "base/format.h"
#include "base/random.h"

namespace sluice::engine {

namespace {

constexpr std::uint8_t kNoAlgorithm = 0xFF;
constexpr std::uint8_t kFileAlgorithm = 0xFE;

// The algorithm of a peer's call that names a file.
const Algorithm* peers_file(std::uint32_t hash) {
  static const algorithms::ScheduleFile kUnknown;
  static const Algorithm kAny{.name = "a schedule file", .file = &kUnknown};
  static const Algorithm kOther{.name = "a schedule file with other contents", .file = &kUnknown};
  if (hash == 0) return &kAny;
  const Algorithm* const own = algorithms::find_file_by_hash(hash);
  return own != nullptr ? own : &kOther;
}

}  // namespace

std::uint64_t packed_kind(const Request& request) {
  const bool file = request.algorithm != nullptr && request.algorithm->file != nullptr;
  const std::uint8_t algorithm =
      request.algorithm == nullptr ? kNoAlgorithm
      : file                       ? kFileAlgorithm
             : static_cast<std::uint8_t>(request.algorithm - built_in_algorithms().data());
  std::uint32_t upper = static_cast<std::uint32_t>(request.root);
  if (file)
    upper = request.first_use ? 0 : static_cast<std::uint32_t>(request.algorithm->file->hash);
  return std::uint64_t{upper} << 32U | std::uint64_t{algorithm} << 24U |
         static_cast<std::uint64_t>(request.collective) << 16U |
         static_cast<std::uint64_t>(request.type) << 8U | static_cast<std::uint64_t>(request.op);
}

std::optional<Request> unpacked(const Call& call, int ranks) {
  const auto all = built_in_algorithms();
  const std::size_t algorithm = call.kind >> 24U & 0xFF;
  const auto upper = static_cast<std::uint32_t>(call.kind >> 32U);
  const bool file = algorithm == kFileAlgorithm;
  const Request request{.number = call.number,
                        .collective = static_cast<Collective>(call.kind >> 16U & 0xFF),
                        .type = static_cast<DataType>(call.kind >> 8U & 0xFF),
                        .op = static_cast<ReduceOp>(call.kind & 0xFF),
                        .root = file ? 0 : static_cast<Rank>(upper),
                        .algorithm = file                     ? peers_file(upper)
                                     : algorithm < all.size() ? &all[algorithm]
                                                              : nullptr,
                        .count = call.count,
                        .kind = call.kind,
                        .signature = signature_of(call)};
  const bool possible = (request.algorithm != nullptr || algorithm == kNoAlgorithm) &&
                        static_cast<std::size_t>(request.collective) < std::size(kCollectives) &&
                        size_of(request.type) > 0 && !name(request.op).empty() &&
                        (!is_reduction(request.collective) || is_legal(request.type, request.op)) &&
                        0 <= request.root && request.root < ranks;
  return possible ? std::optional{request} : std::nullopt;
}

std::uint64_t signature_of(const Call& call) {
  return base::mixed({call.number, call.kind, call.count});
}

void sign(Request& request) {
  request.kind = packed_kind(request);
  request.signature =
      signature_of(Call{.number = request.number, .kind = request.kind, .count = request.count});
}

transport::MessageHeader header_of(const Request& request, std::uint64_t bytes) {
  return {request.signature, request.number, request.kind, request.count, bytes};
}

std::string describe(const Request& request) {
  std::string text =
      base::format("{} of {} {}", name(request.collective), request.count, name(request.type));
  if (is_reduction(request.collective)) text += base::format(" ({})", name(request.op));
  const bool file = request.algorithm != nullptr && request.algorithm->file != nullptr;
  if (has_root(request.collective) && !file) text += base::format(" with root {}", request.root);
  if (request.algorithm != nullptr) text += base::format(" by {}", request.algorithm->name);
  return text;
}

void EagerExchange::begin(const Request& request) {
  ++exchanges_;
  const transport::Group& group = endpoint_.group();
  signature_ = request.signature;
  reduction_ = request.op == ReduceOp::Mean
                   ? kernels::mean_over(group.size(), request.type)
                   : kernels::Reduction{.type = request.type, .op = request.op};
  data_ = request.data;
  count_ = request.count;
  arrived_ = 0;
  transport::Slot& slot = group.slot(group.rank(), exchanges_);
  slot.signature = request.signature;
  if (request.count > 0) std::memcpy(slot.payload.data(), request.data, request.bytes());
  slot.number.store(exchanges_, std::memory_order_seq_cst);
  for (Rank peer = 0; peer < group.size(); ++peer) {
    if (peer != group.rank()) group.ring(peer);
  }
}

bool EagerExchange::needs(Rank peer) const {
  return slot_of(peer).number.load(std::memory_order_seq_cst) != exchanges_;
}

Result<bool> EagerExchange::advance() {
  const int ranks = endpoint_.size();
  for (; arrived_ < ranks; ++arrived_) {
    if (needs(arrived_)) return false;
    if (slot_of(arrived_).signature != signature_)
      return Status{Code::Mismatch, "a peer called another collective"};
  }
  sources_.clear();
  for (Rank rank = 0; rank < ranks; ++rank) sources_.push_back(slot_of(rank).payload.data());
  if (count_ > 0) kernels::reduce_into(reduction_, data_, sources_, count_);
  return true;
}

}  // namespace sluice::engine

#include "sluice/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice {
namespace {

// The part of a flat list that belongs to one step.
template <class T, class Steps, class Field>
std::span<const T> of_step(const std::vector<T>& list, const Steps& steps, int step, Field begin) {
  const auto s = static_cast<std::size_t>(step);
  const std::size_t first = steps[s].*begin;
  const std::size_t last = s + 1 < steps.size() ? steps[s + 1].*begin : list.size();
  return std::span{list}.subspan(first, last - first);
}

__extension__ using Wide = __int128;

}  // namespace

std::string_view name(Collective collective) {
  switch (collective) {
    case Collective::AllReduce:
      return "all_reduce";
    case Collective::ReduceScatter:
      return "reduce_scatter";
    case Collective::AllGather:
      return "all_gather";
    case Collective::Broadcast:
      return "broadcast";
    case Collective::Reduce:
      return "reduce";
  }
  return "unknown";
}

Program::Program(Chunking chunking, std::vector<std::string> scratch,
                 std::vector<int> scratch_chunks)
    : chunking_{std::move(chunking)},
      scratch_{std::move(scratch)},
      scratch_chunks_{std::move(scratch_chunks)} {
  // Two ways to say the same are one.
  if (std::all_of(scratch_chunks_.begin(), scratch_chunks_.end(),
                  [&](int chunks) { return chunks == chunking_.chunks(); }))
    scratch_chunks_.clear();
}

int Program::chunks(BufferId buffer) const {
  return buffer == kUserBuffer || scratch_chunks_.empty()
             ? chunking_.chunks()
             : scratch_chunks_[static_cast<std::size_t>(buffer - 1)];
}

std::int64_t Program::all_chunks() const {
  std::int64_t sum = 0;
  for (BufferId buffer = 0; buffer < buffers(); ++buffer) sum += chunks(buffer);
  return sum;
}

void Program::begin_step() {
  steps_.push_back({static_cast<std::uint32_t>(sends_.size()),
                    static_cast<std::uint32_t>(receives_.size()),
                    static_cast<std::uint32_t>(locals_.size())});
}

void Program::send(Rank peer, Range range) { sends_.push_back({peer, range}); }

void Program::receive_copy(Rank peer, Range range) {
  receives_.push_back(write(Combine::Copy, range, {&peer, 1}, range.first));
}

void Program::receive_reduce(Range range, std::span<const Rank> sources) {
  receives_.push_back(write(Combine::Reduce, range, sources, range.first));
}

void Program::local_copy(Range range, BufferId source) { local_copy(range, source, range.first); }

void Program::local_copy(Range range, BufferId source, std::int32_t source_chunk) {
  locals_.push_back(write(Combine::Copy, range, {&source, 1}, source_chunk));
}

void Program::local_reduce(Range range, std::span<const BufferId> sources) {
  local_reduce(range, sources, range.first);
}

void Program::local_reduce(Range range, std::span<const BufferId> sources,
                           std::int32_t source_chunk) {
  locals_.push_back(write(Combine::Reduce, range, sources, source_chunk));
}

Range Program::source_range(const Write& local, BufferId source) {
  const bool own = local.combine == Combine::Reduce && source == local.range.buffer;
  return {source, own ? local.range.first : local.source_chunk, local.range.count};
}

Write Program::write(Combine combine, Range range, std::span<const std::int32_t> sources,
                     std::int32_t source_chunk) {
  const auto first = static_cast<std::uint32_t>(sources_.size());
  sources_.insert(sources_.end(), sources.begin(), sources.end());
  return {combine, range, first, static_cast<std::uint32_t>(sources.size()), source_chunk};
}

std::span<const Send> Program::sends(int step) const {
  return of_step(sends_, steps_, step, &StepBegin::send);
}

std::span<const Write> Program::receives(int step) const {
  return of_step(receives_, steps_, step, &StepBegin::receive);
}

std::span<const Write> Program::locals(int step) const {
  return of_step(locals_, steps_, step, &StepBegin::local);
}

bool operator==(const Program& a, const Program& b) {
  const auto same_write = [&](const Write& x, const Write& y) {
    return x.combine == y.combine && x.range == y.range && x.source_chunk == y.source_chunk &&
           std::ranges::equal(a.sources(x), b.sources(y));
  };
  if (a.chunking_ != b.chunking_ || a.scratch_ != b.scratch_ ||
      a.scratch_chunks_ != b.scratch_chunks_ || a.steps() != b.steps())
    return false;
  for (int step = 0; step < a.steps(); ++step) {
    const bool same = std::ranges::equal(a.sends(step), b.sends(step)) &&
                      std::ranges::equal(a.receives(step), b.receives(step), same_write) &&
                      std::ranges::equal(a.locals(step), b.locals(step), same_write);
    if (!same) return false;
  }
  return true;
}

std::span<const std::int32_t> Program::sources(const Write& write) const {
  return std::span{sources_}.subspan(write.first_source, write.source_count);
}

bool Program::contains(const Range& range) const {
  if (range.buffer < 0 || range.buffer >= buffers()) return false;
  const int own = chunks(range.buffer);
  return range.first >= 0 && range.first < own && range.count >= 1 && range.count <= own;
}

Chunking::Chunking(std::vector<std::int64_t> weights)
    : chunks_{static_cast<int>(weights.size())}, ends_{std::move(weights)} {
  bool uniform = true;
  for (const std::int64_t weight : ends_) uniform = uniform && weight == ends_.front();
  if (uniform) {
    ends_.clear();
  } else {
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  }
}

std::int64_t Chunking::weight(int chunk) const {
  if (uniform()) return 1;
  const auto c = static_cast<std::size_t>(chunk);
  return c == 0 ? ends_[0] : ends_[c] - ends_[c - 1];
}

std::int64_t Chunking::weight(const Range& range) const {
  if (uniform()) return range.count;
  const auto sum_to = [&](int end) {
    return end == 0 ? 0 : ends_[static_cast<std::size_t>(end) - 1];
  };
  const int end = range.first + range.count;
  if (end <= chunks_) return sum_to(end) - sum_to(range.first);
  return total_weight() - sum_to(range.first) + sum_to(end - chunks_);
}

std::int64_t Chunking::total_weight() const { return uniform() ? chunks_ : ends_.back(); }

std::int64_t Chunking::begin(int chunk, std::int64_t count) const {
  const std::int64_t before =
      uniform() ? chunk : (chunk == 0 ? 0 : ends_[static_cast<std::size_t>(chunk) - 1]);
  return static_cast<std::int64_t>(Wide{count} * before / total_weight());
}

Rank owner_of_chunk(const Chunking& chunking, int ranks, int chunk) {
  return chunk / (chunking.chunks() / ranks);
}

bool is_reduction(Collective collective) {
  return collective != Collective::AllGather && collective != Collective::Broadcast;
}

bool has_root(Collective collective) {
  return collective == Collective::Broadcast || collective == Collective::Reduce;
}

bool has_owners(Collective collective) {
  return collective == Collective::ReduceScatter || collective == Collective::AllGather;
}

bool contributes(const Shape& shape, const Chunking& chunking, Rank rank, int chunk) {
  switch (shape.collective) {
    case Collective::AllGather:
      return rank == owner_of_chunk(chunking, shape.ranks, chunk);
    case Collective::Broadcast:
      return rank == shape.root;
    default:
      return true;
  }
}

bool receives_result(const Shape& shape, const Chunking& chunking, Rank rank, int chunk) {
  switch (shape.collective) {
    case Collective::ReduceScatter:
      return rank == owner_of_chunk(chunking, shape.ranks, chunk);
    case Collective::Reduce:
      return rank == shape.root;
    default:
      return true;
  }
}

}  // namespace sluice

#include <algorithm>
#include <utility>

#include "sluice/schedule.h"

namespace sluice {
namespace {

// The part of a flat list that belongs to one step: from its begin to the next step's, or the end.
template <class T, class Steps, class Field>
std::span<const T> of_step(const std::vector<T>& list, const Steps& steps, int step, Field begin) {
  const auto s = static_cast<std::size_t>(step);
  const std::size_t first = steps[s].*begin;
  const std::size_t last = s + 1 < steps.size() ? steps[s + 1].*begin : list.size();
  return std::span{list}.subspan(first, last - first);
}

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

Program::Program(Chunking layout, std::vector<std::string> scratch)
    : layout_{std::move(layout)}, scratch_{std::move(scratch)} {}

void Program::begin_step() {
  steps_.push_back({static_cast<std::uint32_t>(sends_.size()),
                    static_cast<std::uint32_t>(receives_.size()),
                    static_cast<std::uint32_t>(locals_.size())});
}

void Program::send(Rank peer, Range range) { sends_.push_back({peer, range}); }

void Program::receive_copy(Rank peer, Range range) {
  receives_.push_back(write(Combine::Copy, range, {&peer, 1}));
}

void Program::receive_reduce(Range range, std::span<const Rank> sources) {
  receives_.push_back(write(Combine::Reduce, range, sources));
}

void Program::local_copy(Range range, BufferId source) {
  locals_.push_back(write(Combine::Copy, range, {&source, 1}));
}

void Program::local_reduce(Range range, std::span<const BufferId> sources) {
  locals_.push_back(write(Combine::Reduce, range, sources));
}

Write Program::write(Combine combine, Range range, std::span<const std::int32_t> sources) {
  const auto first = static_cast<std::uint32_t>(sources_.size());
  sources_.insert(sources_.end(), sources.begin(), sources.end());
  return {combine, range, first, static_cast<std::uint32_t>(sources.size())};
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
    return x.combine == y.combine && x.range == y.range &&
           std::ranges::equal(a.sources(x), b.sources(y));
  };
  if (a.layout_ != b.layout_ || a.scratch_ != b.scratch_ || a.steps() != b.steps()) return false;
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

}  // namespace sluice

#include "tests/mutation/interleaving.h"

namespace sluice::mutation {
namespace {

template <class Visit>
void for_each_waiting(const Event& event, bool window_of_one, const Visit& visit) {
  for (const int next : event.then) visit(next);
  if (!window_of_one) return;
  for (const int next : event.then_in_pair) visit(next);
}

}  // namespace

Interleaving::Interleaving(std::span<const Event> events, int ranks, std::mt19937_64& random)
    : events_{events},
      random_{random},
      window_of_one_{random() % 2 == 0},
      slow_{static_cast<Rank>(random() % ranks)},
      waits_(events.size()) {
  for (const Event& event : events)
    for_each_waiting(event, window_of_one_, [&](int next) { ++waits_[next]; });
  for (int e = 0; e < static_cast<int>(events.size()); ++e)
    if (waits_[e] == 0) ready_.push_back(e);
}

const Event* Interleaving::next() {
  if (ready_.empty()) return nullptr;
  std::size_t pick = random_() % ready_.size();
  // The slow rank's turn comes late, or when there is nothing else to do.
  for (int again = 8; again > 0 && events_[ready_[pick]].target.rank == slow_; --again)
    pick = random_() % ready_.size();
  const Event& event = events_[ready_[pick]];
  order_.push_back(ready_[pick]);
  ready_[pick] = ready_.back();
  ready_.pop_back();
  for_each_waiting(event, window_of_one_, [&](int next) {
    if (--waits_[next] == 0) ready_.push_back(next);
  });
  return &event;
}

}  // namespace sluice::mutation

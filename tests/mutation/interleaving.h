// interleaving.h - a random order of events that the execution model allows.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "tests/mutation/events.h"

namespace sluice::mutation {

// Draws the window (one or without bound) and a rank that is slower than the others, then event
// after event from those that may take place. Two transfers of one step come in any order, so a
// race shows in some interleaving. Keeps references to both arguments.
class Interleaving {
 public:
  Interleaving(std::span<const Event> events, int ranks, std::mt19937_64& random);

  // The next event, complete as soon as it is drawn; nullptr when no event may take place.
  const Event* next();

  // Those drawn so far.
  const std::vector<int>& order() const { return order_; }

 private:
  std::span<const Event> events_;
  std::mt19937_64& random_;
  bool window_of_one_;
  Rank slow_;
  std::vector<int> waits_;  // for how many events each event still waits
  std::vector<int> ready_;
  std::vector<int> order_;
};

}  // namespace sluice::mutation

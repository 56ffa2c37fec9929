// events.h - a schedule as the events of docs/execution-model.md and the waits between them.
//
// An event is a receive with the sends matched to it, or a local operation. Written from that page
// alone: nothing here comes from the verifier, whose oracle this is part of.
#pragma once

#include <vector>

#include "sluice/schedule.h"

namespace sluice::mutation {

struct Place {
  Rank rank;
  BufferId buffer;
};

// target = the sum of the sources, left to right, for each chunk of the range.
struct Event {
  Place target;
  Range range;
  std::vector<Place> sources = {};
  std::vector<int> then = {};          // events that wait for this one, whatever the window
  std::vector<int> then_in_pair = {};  // those that wait for it only when the window is one
};

struct Events {
  std::vector<Event> list;
  bool race = false;  // two transfers of one step conflict
};

// Throws std::invalid_argument when the schedule is malformed: a message without its other side or
// with other chunks, a chunk, buffer, peer or list of sources that cannot be.
Events events_of(const Schedule& schedule);

}  // namespace sluice::mutation

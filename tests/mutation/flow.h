// flow.h - does what a schedule computes get used?
#pragma once

#include <span>

#include "tests/mutation/events.h"
#include "tests/mutation/promise.h"

namespace sluice::mutation {

// After events in this order, does every value that one of them wrote flow into some output?
bool every_value_flows(const Promise& promise, std::span<const Event> events,
                       std::span<const int> order);

}  // namespace sluice::mutation

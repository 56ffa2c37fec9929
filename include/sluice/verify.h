// verify.h - is a schedule right, under every order that the execution model allows?
#pragma once

#include <cstdint>
#include <string>

#include "sluice/fraction.h"
#include "sluice/schedule.h"

namespace sluice {

struct Proof {
  bool proven = false;
  std::string reason;          // one sentence when not proven: rank, step, chunk, what is wrong
  int steps = 0;               // the longest program's
  Fraction bytes_factor;       // bytes sent by the busiest rank / bytes of the buffer
  std::int64_t transfers = 0;  // sends in all programs
};

// Proves (a) to (d) and (f) of docs/execution-model.md, or says in one sentence why not.
// Never throws on a wrong schedule. Memory: a few times the schedule, plus ranks^2 bits.
Proof verify(const Schedule& schedule);

// Bytes that a rank sends / bytes of the buffer.
Fraction sent_share(const Program& program);

}  // namespace sluice

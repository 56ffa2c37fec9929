// schedule_text.h - a schedule as text, one line a transfer. docs/schedule-format.md has the
// grammar.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice {

// Writes the text form: header, hash, and a line for every send, receive and local operation. What
// is read back equals what was written. Throws Error (InvalidArgument), before anything is written,
// on a schedule that the text form cannot say: programs that differ in layout or scratch, a rank,
// buffer or chunk that is not there.
void print_schedule(std::ostream& out, const Schedule& schedule);

// Reads the text form. An error names line and column; memory is bounded whatever the input. The
// hash line may be absent (a file written by hand); when present it must agree.
Result<Schedule> parse_schedule(std::istream& in);

// The hash of the schedule's canonical text: equal schedules, equal hashes. Throws as
// print_schedule does.
std::uint64_t hash_schedule(const Schedule& schedule);

}  // namespace sluice

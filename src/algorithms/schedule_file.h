// schedule_file.h - a schedule in a file, as an algorithm: "file:PATH".
//
// A file is read once a process, when its name is first used. Its schedule is one shape: other
// ranks, another collective or another root are refused. Reading it does not prove it.
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/algorithms.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::algorithms {

struct ScheduleFile {
  // Why the file cannot be used; the members below are then empty.
  Status status;
  Schedule schedule;
  std::uint64_t hash = 0;  // hash_schedule(schedule)
};

// Whether an algorithm's name is that of a file.
bool names_file(std::string_view name);
// REQUIRES: names_file(name).
std::string path_of_file(std::string_view name);

// The algorithm of such a name. If the file cannot be read, algorithm.file->status says why, and
// the algorithm supports no collective. It lives as long as the process.
const Algorithm& file_algorithm(std::string_view name);

// The algorithm of a file that was read and has that hash, cut to its lower 32 bits; null: none.
const Algorithm* find_file_by_hash(std::uint32_t hash);

// The file's shape if it answers the question of `asked`, or the reason why it does not.
Result<Shape> shape_of_file(const Algorithm& algorithm, const Shape& asked);

// An error if the file has equal chunks, and the number of elements is not a multiple of theirs.
Status check_count(const Algorithm& algorithm, std::int64_t count);

// Reads a schedule. The error names the file, and the line and column where there is one.
Result<Schedule> read_schedule_file(const std::string& path);

}  // namespace sluice::algorithms

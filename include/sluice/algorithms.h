// algorithms.h - the built-in algorithms: pure functions from a shape to Programs.
//
// find_algorithm() finds one by name. A variant has its name after a colon: "halving_doubling:far",
// "hierarchical:ring". docs/algorithms.md describes each, with a picture, its steps and its bytes.
// "file:PATH" is the schedule in a file (docs/schedule-format.md).
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/analysis/cost.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "sluice/verify.h"
#include "sluice/version.h"

namespace sluice {

namespace algorithms {
struct ScheduleFile;  // opaque to users
}

struct SLUICE_API Algorithm {
  std::string_view name;
  int version = 1;  // part of a proof's key: raised whenever a Program changes
  std::span<const Collective> collectives;
  bool ordered = false;    // every sum is rank 0 + rank 1 + ... from left to right
  bool uses_grid = false;  // if the shape has no grid, complete_shape() adds the most square one
  bool uses_segments = false;                      // Shape::segments has an effect
  bool equal_chunks = false;                       // as in Schedule
  const algorithms::ScheduleFile* file = nullptr;  // it is the schedule in this file

  std::function<Program(const Shape& shape, Rank rank)> program = nullptr;

  // Closed forms. They come from the paper, not from the Program; prove() compares the two. Those
  // of a file are counted.
  std::function<int(const Shape& shape)> steps = nullptr;
  // Bytes sent / bytes of the buffer.
  std::function<Fraction(const Shape& shape, Rank rank)> sent = nullptr;
  // Reports the messages of each step, without building any Program.
  std::function<void(const Shape& shape, TrafficSink& sink)> traffic = nullptr;
  // The marks of a rank's Program. A file has none before its proof.
  std::function<Marks(const Shape& shape, Rank rank)> marks = nullptr;

  bool supports(Collective collective) const;
};

// All built-in algorithms, in the order in which lists show them.
SLUICE_API std::span<const Algorithm> built_in_algorithms();

// The algorithm of that name; the error suggests the nearest name. "file:PATH" reads the file, once
// a process. The error says why it cannot be read; whether it is right is for prove() to say.
SLUICE_API Result<const Algorithm*> find_algorithm(std::string_view name);

// The shape with everything that the algorithm needs (a grid), or the reason why there is no such
// shape. All functions below require a shape that was completed for their algorithm.
SLUICE_API Result<Shape> complete_shape(const Algorithm& algorithm, Shape shape);

// The programs of all ranks.
SLUICE_API Schedule build_schedule(const Algorithm& algorithm, const Shape& shape);

// Builds the schedule, verifies it, and compares its steps, bytes and marks with the closed forms.
SLUICE_API Proof prove(const Algorithm& algorithm, const Shape& shape);

// The load on the links of a topology, by the closed form.
SLUICE_API Load load_of(const Algorithm& algorithm, const Shape& shape, const Topology& topology);

// The grid of x rows of y ranks with x * y = ranks, x <= y and x as large as possible: {y, y, ...}.
SLUICE_API std::vector<int> most_square_grid(int ranks);

}  // namespace sluice

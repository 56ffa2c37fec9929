// For any bytes, the parser must return a schedule or an error of one sentence. A schedule that it
// has read must be printed and read back unchanged, and verify() must return a proof without a
// crash.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "sluice/schedule.h"
#include "sluice/verify.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "schedule_text_fuzz: %s\n", what);
  std::abort();
}

std::string printed(const sluice::Schedule& schedule) {
  std::ostringstream out;
  sluice::print_schedule(out, schedule);
  return out.str();
}

// Limits the time of one input to milliseconds: a file of a few bytes can have 32,768 ranks.
bool is_small(const sluice::Schedule& schedule) {
  constexpr std::int64_t kMaxPositions = 1 << 16;
  const auto& first = schedule.programs.front();
  std::int64_t positions =
      std::int64_t{schedule.shape.ranks} * first.chunking().chunks() * first.buffers();
  for (const auto& program : schedule.programs) positions += program.steps();
  return positions <= kMaxPositions;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in{std::string{data, data + size}};
  const sluice::Result<sluice::Schedule> schedule = sluice::parse_schedule(in);
  if (!schedule.ok()) {
    const std::string message = schedule.status().message();
    require(schedule.status().code() == sluice::Code::InvalidInput, "a wrong code");
    require(message.starts_with("line ") && message.size() < 1000, "a message without a location");
    return 0;
  }
  if (!is_small(schedule.value())) return 0;

  const std::string text = printed(schedule.value());
  std::istringstream again_in{text};
  const sluice::Result<sluice::Schedule> again = sluice::parse_schedule(again_in);
  require(again.ok(), "a printed schedule cannot be read");
  require(again.value() == schedule.value(), "a printed schedule reads differently");
  require(printed(again.value()) == text, "one schedule has two texts");

  const sluice::Proof proof = sluice::verify(schedule.value());
  require(proof.proven == proof.reason.empty(), "a proof has a reason, or a rejection has none");
  return 0;
}

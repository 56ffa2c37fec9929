// Values that no rank sends arrive from another node. None of them may be used as an index, a size
// or an enum: the rank that receives one ends its connection to that peer and names it.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "engine/collective.h"
#include "tests/base/has.h"
#include "tests/engine/forged_network.h"
#include "transport/control.h"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t kCount = 100;

Request expected_request() {
  return {.number = 1, .algorithm = find_algorithm("ring").value(), .count = kCount};
}

transport::MessageHeader header_with(std::uint64_t bytes) {
  Request request = expected_request();
  sign(request);
  return header_of(request, bytes);
}

// A header of another call, with the signature that fits it.
transport::MessageHeader header_of_kind(std::uint64_t kind) {
  transport::MessageHeader header = header_with(4);
  header.kind = kind;
  header.signature = 77;
  return header;
}

// The failure of rank 0's all_reduce.
std::string failure_after(const std::function<void(ForgedNetwork&)>& forge) {
  auto network = std::make_unique<ForgedNetwork>();
  forge(*network);
  return std::string{failure_of_all_reduce(0, kCount, std::move(network), 5s).message()};
}

std::string failure_by(const transport::StatusUpdate& status) {
  return failure_after([&](ForgedNetwork& network) { network.status = status; });
}
std::string failure_by(const transport::MessageHeader& header) {
  return failure_after([&](ForgedNetwork& network) { network.header = header; });
}

void expect_lost(const std::string& failure, const std::string& why) {
  EXPECT_TRUE(base::has(failure, "rank 1 is lost (it sent an invalid " + why + ", on b)"))
      << failure;
}

TEST(InvalidStatusUpdate, EndsTheConnection) {
  expect_lost(failure_by({.blamed = 2'000'000'000, .failed = transport::kFailed}),
              "status update: it blames rank 1999999999 of 2");
  expect_lost(failure_by({.blamed = 3, .failed = transport::kFailed}),
              "status update: it blames rank 2 of 2");
  expect_lost(failure_by({.blamed = -1, .failed = transport::kMismatched}),
              "status update: it blames rank -2 of 2");
  expect_lost(failure_by({.waits_for = std::numeric_limits<std::int32_t>::min()}),
              "status update: it waits for rank -2147483649 of 2");
  expect_lost(failure_by({.waits_for = 3}), "status update: it waits for rank 2 of 2");
  expect_lost(failure_by({.failed = 4}), "status update: its failure has kind 4");
  expect_lost(failure_by({.step = -2}), "status update: it is in step -2");
}

TEST(InvalidMessage, OfAnImpossibleLengthEndsTheConnection) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{3}, 4 * kCount + 4, ~0UL}) {
    expect_lost(failure_by(header_with(bytes)),
                base::format("message: {} bytes of a collective of {} bytes", bytes, 4 * kCount));
  }
}

TEST(InvalidMessage, OfAnImpossibleCollectiveEndsTheConnection) {
  const std::uint64_t real = packed_kind(expected_request());
  const std::string why = "message: there is no such collective";
  for (const int byte : {0, 1, 2, 3}) {  // operation, type, collective, algorithm
    const std::uint64_t kind = (real & ~(0xFFULL << 8 * byte)) | 0xEEULL << 8 * byte;
    expect_lost(failure_by(header_of_kind(kind)), why);
  }
  expect_lost(failure_by(header_of_kind(real | 2ULL << 32)), why);            // root 2 of 2
  expect_lost(failure_by(header_of_kind(real | 0x8000'0000ULL << 32)), why);  // root -2^31
  expect_lost(failure_by(header_of_kind(real)), why);  // the signature does not fit
}

TEST(InvalidMessage, AnotherPossibleCollectiveIsAMismatch) {
  Request other = expected_request();
  other.count = kCount + 1;
  sign(other);
  const std::string failure = failure_by(header_of(other, 4));
  EXPECT_TRUE(base::has(failure, "but rank 1 calls all_reduce of 101 f32 (sum) by ring"))
      << failure;
}

}  // namespace
}  // namespace sluice::engine

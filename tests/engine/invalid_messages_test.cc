// Values that no rank sends arrive from another node. None of them may be used as an index, a size
// or an enum: the rank that receives one ends its connection to that peer and names it.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/format.h"
#include "engine/communicator_state.h"
#include "engine/select/constants.h"
#include "tests/base/has.h"
#include "transport/control.h"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t kCount = 100;

// The network of rank 0 of two. A test sets what rank 1 sends.
class ForgedNetwork final : public transport::Network {
 public:
  std::string_view name() const override { return "forged"; }
  std::shared_ptr<transport::Waiter> waiter() override { return waiter_; }
  void send(Rank, const transport::MessageHeader&, const std::byte*) override { ++sent_; }
  std::uint64_t sent(Rank) override { return sent_; }
  std::uint64_t send_progress() const override { return sent_; }
  const transport::MessageHeader* incoming(Rank) override {
    return header && death_.empty() ? &*header : nullptr;
  }
  std::span<const std::byte> arrived(Rank) override { return {}; }
  void consume(Rank, std::size_t) override {}
  void send_status(Rank, const transport::StatusUpdate&) override {}
  bool receive_status(Rank, transport::StatusUpdate& update) override {
    if (!status || !death_.empty()) return false;
    update = *status;
    return true;
  }
  std::string death_of(Rank) override { return death_; }
  void drop(Rank, const std::string& why) override { death_ = why; }
  Result<std::unique_ptr<Network>> split(const std::vector<Rank>&, std::uint64_t,
                                         const transport::SplitWait&) override {
    return Status{Code::InvalidArgument, "this network has no parts"};
  }

  std::optional<transport::MessageHeader> header;
  std::optional<transport::StatusUpdate> status;

 private:
  std::shared_ptr<transport::Waiter> waiter_ = std::make_shared<transport::Waiter>();
  std::uint64_t sent_ = 0;
  std::string death_;
};

Request expected_request() {
  return {.number = 1, .algorithm = find_algorithm("ring").value(), .count = kCount};
}

transport::MessageHeader header_with(std::uint64_t bytes) {
  Request request = expected_request();
  request.signature = signature_of(request);
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
  auto context = std::make_shared<RankContext>(*network);
  auto memory = transport::make_single_rank_memory();
  std::byte* const control = memory->allocate(transport::ControlBlock::bytes(1)).value().data;
  const std::vector<transport::RankLocation> locations{{.node = 0}, {.node = 1, .host = "b"}};
  auto group =
      std::make_unique<transport::Group>(0, locations, memory, control, std::move(network));
  Choices choices{RankOrder{*group}, 0, typical_constants(), {}};
  CommunicatorState state{std::move(group), std::move(context), std::move(choices)};
  std::array<float, kCount> data{};
  const auto number =
      state.issue(Collective::AllReduce, data.data(), kCount, {.algorithm = "ring"});
  if (!number.ok()) return number.status().message();
  const Status status = state.wait(number.value(), 5s);
  return std::string{status.message()};
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
  expect_lost(failure_by({.failed = 3}), "status update: its failure has kind 3");
  expect_lost(failure_by({.step = -1}), "status update: it is in step -1");
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
  other.signature = signature_of(other);
  const std::string failure = failure_by(header_of(other, 4));
  EXPECT_TRUE(base::has(failure, "but rank 1 calls all_reduce of 101 f32 (sum) by ring"))
      << failure;
}

}  // namespace
}  // namespace sluice::engine

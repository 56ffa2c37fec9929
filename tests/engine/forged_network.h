// forged_network.h - a rank whose only peer, on another node, sends what a test says.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/communicator_state.h"
#include "engine/select/constants.h"
#include "transport/control.h"

namespace sluice::engine {

// The network of a rank of two, whose peer is on another node. A test sets what the peer sends.
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
    if (status_comes_once) status.reset();
    return true;
  }
  std::string death_of(Rank) override {
    if (transport::Clock::now() >= death_comes) death_ = "its connection ended";
    return death_;
  }
  void drop(Rank, const std::string& why) override { death_ = why; }
  Result<std::unique_ptr<Network>> split(const std::vector<Rank>&, std::uint64_t,
                                         const transport::SplitWait&) override {
    return Status{Code::InvalidArgument, "this network has no parts"};
  }

  std::optional<transport::MessageHeader> header;
  std::optional<transport::StatusUpdate> status;
  bool status_comes_once = false;
  transport::Clock::time_point death_comes = transport::Clock::time_point::max();

 private:
  std::shared_ptr<transport::Waiter> waiter_ = std::make_shared<transport::Waiter>();
  std::uint64_t sent_ = 0;
  std::string death_;
};

// The failure of the all_reduce of a rank of two, by ring, of that many f32.
inline Status failure_of_all_reduce(Rank rank, std::size_t count,
                                    std::unique_ptr<ForgedNetwork> network,
                                    std::chrono::milliseconds deadline) {
  auto context = std::make_shared<RankContext>(*network);
  auto memory = transport::make_single_rank_memory();
  std::byte* const control = memory->allocate(transport::ControlBlock::bytes(1)).value().data;
  std::vector<transport::RankLocation> locations(2);
  for (Rank each = 0; each < 2; ++each) {
    locations[static_cast<std::size_t>(each)] = {.node = each, .host = each == rank ? "" : "b"};
  }
  auto group =
      std::make_unique<transport::Group>(rank, locations, memory, control, std::move(network));
  Choices choices{RankOrder{*group}, 0, typical_constants(), {}};
  CommunicatorState state{std::move(group), std::move(context), std::move(choices)};
  std::vector<float> data(count);
  const auto number = state.issue(Collective::AllReduce, data, {.algorithm = "ring"});
  return number.ok() ? state.wait(number.value(), deadline) : number.status();
}

}  // namespace sluice::engine

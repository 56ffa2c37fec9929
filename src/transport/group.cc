#include "transport/group.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace sluice::transport {
namespace {

std::vector<RankLocation> locations_in(const Memory& memory) {
  std::vector<RankLocation> locations;
  for (Rank rank = 0; rank < memory.size(); ++rank)
    locations.push_back({.local = rank, .in_job = rank});
  return locations;
}

std::vector<RankLocation> locations_of(const Group& whole, const std::vector<Rank>& ranks) {
  std::vector<RankLocation> locations;
  for (const Rank rank : ranks) locations.push_back(whole.location(rank));
  return locations;
}

int count_local(const Group& whole, const std::vector<Rank>& ranks) {
  return static_cast<int>(
      std::count_if(ranks.begin(), ranks.end(), [&](Rank rank) { return whole.is_local(rank); }));
}

// The first field that no rank of a group of that size can send; "" if there is none.
std::string fault_in(const StatusUpdate& update, int ranks) {
  const auto is_rank_plus_one = [&](std::int32_t value) { return 0 <= value && value <= ranks; };
  if (!is_rank_plus_one(update.waits_for))
    return base::format("it waits for rank {} of {}", std::int64_t{update.waits_for} - 1, ranks);
  if (!is_rank_plus_one(update.blamed))
    return base::format("it blames rank {} of {}", std::int64_t{update.blamed} - 1, ranks);
  if (update.failed > kLost) return base::format("its failure has kind {}", update.failed);
  if (update.step < kProvingStep) return base::format("it is in step {}", update.step);
  return "";
}

}  // namespace

Group::Group(std::shared_ptr<Memory> memory, std::byte* control)
    : memory_{std::move(memory)},
      rank_{memory_->rank()},
      control_{control, memory_->size()},
      whole_{control_} {
  add_members(locations_in(*memory_));
}

Group::Group(Rank rank, const std::vector<RankLocation>& locations, std::shared_ptr<Memory> memory,
             std::byte* control, std::unique_ptr<Network> network)
    : memory_{std::move(memory)},
      rank_{rank},
      control_{control, memory_->size()},
      whole_{control_},
      network_{std::move(network)} {
  add_members(locations);
}

Group::Group(const Group& whole, const std::vector<Rank>& ranks, std::byte* control,
             std::unique_ptr<Network> network)
    : memory_{whole.memory_},
      rank_{static_cast<Rank>(std::find(ranks.begin(), ranks.end(), whole.rank_) - ranks.begin())},
      control_{control, count_local(whole, ranks)},
      whole_{whole.whole_},
      network_{std::move(network)} {
  add_members(locations_of(whole, ranks));
}

void Group::add_members(const std::vector<RankLocation>& locations) {
  const int own_node = locations[index(rank_)].node;
  Rank next_index = 0;
  for (const RankLocation& location : locations) {
    const bool local = location.node == own_node;
    members_.push_back({.location = location,
                        .control_index = local ? next_index++ : -1,
                        .copy = local ? nullptr : std::make_unique<StatusBoard>(),
                        .last_heard = Clock::now()});
  }
}

StatusBoard& Group::board(Rank rank) const {
  const Member& member = members_[index(rank)];
  return member.copy ? *member.copy : control_.rank_control(member.control_index).board;
}

void Group::publish_status() const {
  if (!network_) return;
  const StatusUpdate update = own_board().read();
  for (Rank peer = 0; peer < size(); ++peer) {
    if (!is_local(peer)) network_->send_status(peer, update);
  }
}

void Group::receive_status() const {
  for (Rank peer = 0; network_ && peer < size(); ++peer) {
    if (!is_local(peer)) receive_status(peer);
  }
}

void Group::receive_status(Rank peer) const {
  StatusUpdate update;
  if (!network_->receive_status(peer, update)) return;
  if (const std::string fault = fault_in(update, size()); !fault.empty()) {
    network_->drop(peer, "it sent an invalid status update: " + fault);
    return;
  }
  members_[index(peer)].copy->write(update);
  members_[index(peer)].last_heard = Clock::now();
}

std::string Group::death_of(Rank peer) const {
  if (is_local(peer)) return memory_->death_of(location(peer).local);
  std::string how = network_->death_of(peer);
  if (!how.empty()) receive_status(peer);  // its last update may have just arrived
  if (!how.empty() && !location(peer).host.empty()) {
    how += base::format(", on {}", location(peer).host);
  }
  return how;
}

void Group::watch(Rank peer) const {
  if (peer != kOwn && is_local(peer)) memory_->watch(location(peer).local);
}

std::string Group::stall_of(Rank peer) const {
  constexpr auto kLongestSilence = std::chrono::seconds{1};
  if (is_local(peer)) return memory_->stall_of(location(peer).local);
  // A rank that waits for another one, or for a proof, sends a status update several times a
  // second.
  const StatusBoard& board_of_peer = board(peer);
  const bool waits = board_of_peer.waits_for.load(std::memory_order_relaxed) != 0 ||
                     board_of_peer.step.load(std::memory_order_relaxed) == kProvingStep;
  const auto silence = Clock::now() - last_heard(peer);
  if (!waits || silence < kLongestSilence) return "";
  return base::format("no status update for {:.1f} s, on {}",
                      std::chrono::duration<double>(silence).count(),
                      location(peer).host.empty() ? "another host" : location(peer).host);
}

}  // namespace sluice::transport

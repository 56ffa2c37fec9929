#include "transport/group.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace sluice::transport {
namespace {

// A rank that waits tells so several times a second.
constexpr auto kSilence = std::chrono::seconds{1};

std::vector<RankLocation> places_of(const Memory& memory) {
  std::vector<RankLocation> places;
  for (Rank rank = 0; rank < memory.size(); ++rank) places.push_back({0, rank, ""});
  return places;
}

std::vector<RankLocation> some_of(const Group& whole, const std::vector<Rank>& ranks) {
  std::vector<RankLocation> places;
  for (const Rank rank : ranks) places.push_back(whole.location(rank));
  return places;
}

int count_on(int node, const std::vector<RankLocation>& places) {
  return static_cast<int>(std::count_if(
      places.begin(), places.end(), [&](const RankLocation& place) { return place.node == node; }));
}

}  // namespace

Group::Group(std::shared_ptr<Memory> memory, std::byte* control)
    : memory_{std::move(memory)},
      rank_{memory_->rank()},
      control_{control, memory_->size()},
      whole_{control_} {
  take_places(places_of(*memory_));
}

Group::Group(Rank rank, const std::vector<RankLocation>& places, std::shared_ptr<Memory> memory,
             std::byte* control, std::unique_ptr<Network> network)
    : memory_{std::move(memory)},
      rank_{rank},
      control_{control, memory_->size()},
      whole_{control_},
      network_{std::move(network)} {
  take_places(places);
}

Group::Group(const Group& whole, const std::vector<Rank>& ranks, std::byte* control,
             std::unique_ptr<Network> network)
    : memory_{whole.memory_},
      rank_{static_cast<Rank>(std::find(ranks.begin(), ranks.end(), whole.rank_) - ranks.begin())},
      control_{control, count_on(whole.node(), some_of(whole, ranks))},
      whole_{whole.whole_},
      network_{std::move(network)} {
  take_places(some_of(whole, ranks));
}

void Group::take_places(const std::vector<RankLocation>& places) {
  const int own_node = places[index(rank_)].node;
  Rank next_seat = 0;
  for (const RankLocation& place : places) {
    const bool local = place.node == own_node;
    members_.push_back({.place = place,
                        .seat = local ? next_seat++ : -1,
                        .copy = local ? nullptr : std::make_unique<StatusBoard>(),
                        .heard = Clock::now()});
  }
}

StatusBoard& Group::board(Rank rank) const {
  const Member& member = members_[index(rank)];
  return member.copy ? *member.copy : control_.rank_control(member.seat).board;
}

void Group::publish_status() const {
  if (!network_) return;
  const StatusUpdate note = own_board().read();
  for (Rank peer = 0; peer < size(); ++peer) {
    if (!is_local(peer)) network_->send_status(peer, note);
  }
}

void Group::receive_status() const {
  for (Rank peer = 0; network_ && peer < size(); ++peer) {
    if (!is_local(peer)) receive_status(peer);
  }
}

void Group::receive_status(Rank peer) const {
  StatusUpdate note;
  if (!network_->receive_status(peer, note)) return;
  members_[index(peer)].copy->write(note);
  members_[index(peer)].heard = Clock::now();
}

std::string Group::death_of(Rank peer) const {
  if (is_local(peer)) return memory_->death_of(location(peer).local);
  std::string how = network_->death_of(peer);
  if (!how.empty())
    receive_status(peer);  // what it said last is on its board before its end is known
  if (!how.empty() && !location(peer).host.empty())
    how += base::format(", on {}", location(peer).host);
  return how;
}

std::string Group::stall_of(Rank peer) const {
  if (is_local(peer)) return memory_->stall_of(location(peer).local);
  // Who said that it waits would go on saying so.
  const auto silence = Clock::now() - last_heard(peer);
  if (board(peer).waits_for.load(std::memory_order_relaxed) == 0 || silence < kSilence) return "";
  return base::format("nothing has been heard of it for {:.1f} s, on {}",
                      std::chrono::duration<double>(silence).count(),
                      location(peer).host.empty() ? "another host" : location(peer).host);
}

}  // namespace sluice::transport

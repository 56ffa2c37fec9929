#include "bootstrap/rendezvous/roster.h"

#include <algorithm>
#include <map>

#include "base/format.h"

namespace sluice::bootstrap {

void Roster::add(Rank rank, RankInfo participant, int local_ranks) {
  present_[static_cast<std::size_t>(rank)] = Entry{std::move(participant), local_ranks};
  ++joined_;
}

std::vector<RankInfo> Roster::participants() const {
  std::vector<RankInfo> all;
  all.reserve(present_.size());
  for (const auto& entry : present_) all.push_back(entry.value().participant);
  return all;
}

std::string Roster::who(Rank rank) const {
  return base::format("rank {} on host {}", rank,
                      present_[static_cast<std::size_t>(rank)].value().participant.host);
}

std::string Roster::text() const {
  std::string text = base::format("{} of {} ranks joined", joined_, ranks());
  if (complete()) return text;
  const std::string by_host = missing_by_host();
  if (!by_host.empty()) return text + ", waiting for " + by_host;
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (!has(rank)) missing.push_back(rank);
  }
  return text + ", waiting for " + show_ranks(missing);
}

std::string Roster::missing_by_host() const {
  struct Host {
    std::string name;
    int joined = 0;
    int expected = 0;
  };
  std::map<std::string, Host> hosts;  // by node: two may have one name
  for (const auto& entry : present_) {
    if (!entry) continue;
    if (entry->local_ranks == 0) return "";
    Host& host = hosts[entry->participant.node];
    host.name = entry->participant.host;
    host.expected = std::max(host.expected, entry->local_ranks);
    ++host.joined;
  }
  std::vector<std::string> waits;
  int missing = 0;
  for (const auto& [node, host] : hosts) {
    if (host.joined >= host.expected) continue;
    missing += host.expected - host.joined;
    waits.push_back(base::format("{} on host {}", host.expected - host.joined, host.name));
  }
  constexpr std::size_t kShown = 8;
  if (missing != ranks() - joined_ || waits.size() > kShown) return "";
  return base::format("{}", base::join(waits, ", "));
}

std::string show_ranks(const std::vector<Rank>& ranks) {
  constexpr std::size_t kShortRun = 3;  // up to here every one is written
  constexpr std::size_t kShown = 12;
  std::vector<std::string> shown;
  std::size_t at = 0;
  while (at < ranks.size() && shown.size() < kShown) {
    std::size_t run = 1;
    while (at + run < ranks.size() && ranks[at + run] == ranks[at] + static_cast<Rank>(run)) ++run;
    if (run > kShortRun) {
      shown.push_back(base::format("{}-{}", ranks[at], ranks[at + run - 1]));
    } else {
      run = 1;
      shown.push_back(std::to_string(ranks[at]));
    }
    at += run;
  }
  std::string text =
      base::format("rank{} {}", ranks.size() == 1 ? "" : "s", base::join(shown, ", "));
  if (at < ranks.size()) text += base::format(" and {} more", ranks.size() - at);
  return text;
}

}  // namespace sluice::bootstrap

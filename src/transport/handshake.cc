#include "transport/handshake.h"

#include "base/format.h"
#include "base/text.h"
#include "transport/token_proof.h"

namespace sluice::transport {

Status check_join(Rank rank, int ranks, int most_ranks, std::string_view token) {
  if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) {
    return {Code::InvalidArgument,
            base::format("rank {} of {} cannot join: ranks count from 0, and there are 1 to {}",
                         rank, ranks, most_ranks)};
  }
  if (token.size() > kLongestToken) {
    return {Code::InvalidArgument,
            base::format("the job's token has {} characters; at most {} are allowed", token.size(),
                         kLongestToken)};
  }
  if (!prove(token, Side::Client, {.handshake = "", .hello = {}, .challenge = Nonce{}})) {
    return {Code::InvalidArgument,
            "libcrypto does not offer HMAC-SHA-256, which proves the job's token: check the "
            "configuration of OpenSSL"};
  }
  return {};
}

std::string reason_to_refuse(const JoinClaim& claim, int ranks) {
  if (claim.ranks != ranks) return base::format("it counts {} ranks, not {}", claim.ranks, ranks);
  if (claim.rank < 0 || claim.rank >= ranks) {
    return base::format("rank {} is not one of {} ranks", claim.rank, ranks);
  }
  return "";
}

std::string show_ranks(const std::vector<Rank>& ranks) {
  constexpr std::size_t kShortRun = 3;  // longer runs are shown as a range
  constexpr std::size_t kShown = 12;
  std::vector<std::string> shown;
  std::size_t next = 0;
  while (next < ranks.size() && shown.size() < kShown) {
    std::size_t run = 1;
    while (next + run < ranks.size() && ranks[next + run] == ranks[next] + static_cast<Rank>(run)) {
      ++run;
    }
    if (run > kShortRun) {
      shown.push_back(base::format("{}-{}", ranks[next], ranks[next + run - 1]));
    } else {
      run = 1;
      shown.push_back(std::to_string(ranks[next]));
    }
    next += run;
  }
  std::string text =
      base::format("rank{} {}", ranks.size() == 1 ? "" : "s", base::join(shown, ", "));
  if (next < ranks.size()) text += base::format(" and {} more", ranks.size() - next);
  return text;
}

}  // namespace sluice::transport

// rendezvous_message.h - what the ranks of several machines say to each other before they have met.
//
// A message is a head of 12 bytes - "SLCR", version, kind, length of the rest - and the rest.
// Numbers go with their lowest byte first; a text has a byte for its length in front. Nothing is
// believed: a head without the four letters, a length beyond what the reader allows, or a body that
// does not end where its parts do is garbage. The head stays the same in all versions, so that one
// version can refuse another with a sentence.
//
//   Hello    caller to rank 0: who it is, its token, and how long it can wait
//   Welcome  rank 0 to a caller: it belongs here; nothing else
//   Refusal  rank 0 to a caller: a sentence
//   GivesUp  rank 0 to all that are welcome: a code and a sentence
//   Table    rank 0 to all: every Participant, by rank
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/rendezvous/rendezvous.h"

namespace sluice::bootstrap {

constexpr std::uint16_t kRendezvousVersion = 1;
constexpr std::size_t kLongestText = 255;
constexpr std::size_t kLongestShortMessage = 2048;  // all but a Table

enum class RendezvousMessageKind : std::uint16_t { Hello = 1, Welcome, Refusal, GivesUp, Table };

struct RendezvousMessage {
  std::uint16_t version = 0;
  RendezvousMessageKind kind{};  // maybe none of those above
  std::string body;
};

struct Hello {
  std::int64_t rank = 0;  // as it says
  std::int64_t ranks = 0;
  int local_ranks = 0;
  std::int64_t patience_ms = 0;  // until its deadline
  std::string token;
  RankInfo self;
};

// Whole messages, as they travel.
std::string hello_message(const Hello& hello);
std::string welcome_message();
std::string refusal_message(std::string_view sentence);
std::string gives_up_message(const Status& status);
std::string table_message(const std::vector<RankInfo>& participants);

// The bodies again; none where they are garbage.
std::optional<Hello> read_hello(std::string_view body);
std::string read_refusal(std::string_view body);
Status read_gives_up(std::string_view body);
std::optional<std::vector<RankInfo>> read_table(std::string_view body, int ranks);
std::size_t longest_table(int ranks);

// One end of a connection. Never blocks.
class MessageStream {
 public:
  explicit MessageStream(base::Fd socket, std::size_t longest_body = kLongestShortMessage)
      : socket_{std::move(socket)}, longest_body_{longest_body} {}

  enum class State : std::uint8_t { Nothing, Arrived, Closed, Garbage };
  // Reads what is there, up to the end of one message.
  State read(RendezvousMessage& message);

  // Sends what the connection takes now; the rest goes with later calls. False: it is broken.
  // REQUIRES: !sending() for the first.
  bool send(std::shared_ptr<const std::string> bytes);
  bool send_more();
  bool sending() const { return out_ != nullptr; }

  int number() const { return socket_.number(); }

 private:
  base::Fd socket_;
  std::size_t longest_body_;
  std::string in_;
  std::shared_ptr<const std::string> out_;
  std::size_t sent_ = 0;
};

}  // namespace sluice::bootstrap

// rendezvous_message.h - the messages between the rendezvous server and its clients.
//
// A message is a head of 12 bytes - "SLCR", version, kind, length of the body - and a body. Numbers
// are little-endian; one byte with its length precedes a text. The reader trusts nothing: a head
// without the four letters, a length beyond the limit, or a body that is too short or too long is
// garbage. The head is the same in all versions, so one version can refuse another and say why.
//
//   Hello      client to server: rank, RankInfo, the time until its deadline, and a nonce
//   Challenge  server to client: another nonce
//   Proof      client to server: it knows the token (transport/token_proof.h)
//   Welcome    server to client: the client is accepted, and the server's own proof
//   Refusal    server to client: the reason
//   Failure    server to all clients: an error code and its message
//   Table      server to all clients: the RankInfo of every rank
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/rendezvous/rendezvous.h"
#include "transport/token_proof.h"

namespace sluice::bootstrap {

constexpr std::uint16_t kRendezvousVersion = 2;
constexpr std::size_t kLongestText = 255;
constexpr std::size_t kLongestShortMessage = 2048;  // bytes of any message but a Table

enum class RendezvousMessageKind : std::uint16_t {
  Hello = 1,
  Welcome,
  Refusal,  // the same number in all versions
  Failure,
  Table,
  Challenge,
  Proof,
};

struct RendezvousMessage {
  std::uint16_t version = 0;
  RendezvousMessageKind kind{};  // may be an unknown value
  std::string body;
};

struct Hello {
  std::int64_t rank = 0;  // as sent: no member of a Hello is checked yet
  std::int64_t ranks = 0;
  int local_ranks = 0;
  std::int64_t milliseconds_left = 0;  // until its deadline
  transport::Nonce nonce{};
  RankInfo self;
};

// These return whole messages, with the head.
std::string hello_message(const Hello& hello);
std::string challenge_message(const transport::Nonce& challenge);
std::string proof_message(const transport::TokenProof& proof);
std::string welcome_message(const transport::TokenProof& proof);
std::string refusal_message(std::string_view reason);
std::string failure_message(const Status& status);
std::string table_message(const std::vector<RankInfo>& ranks);

// The body of a whole message.
std::string_view body_of(std::string_view message);

// These parse bodies. They return nullopt for garbage.
std::optional<Hello> read_hello(std::string_view body);
std::optional<transport::Nonce> read_challenge(std::string_view body);
std::optional<transport::TokenProof> read_proof(std::string_view body);  // of a Proof or a Welcome
std::string read_refusal(std::string_view body);
Status read_failure(std::string_view body);
std::optional<std::vector<RankInfo>> read_table(std::string_view body, int ranks);
std::size_t longest_table(int ranks);  // bytes of its body

// `hello` is the body of the hello.
transport::Transcript transcript_of(std::string_view hello, const transport::Nonce& challenge);

// One end of a connection. Never blocks.
class MessageStream {
 public:
  explicit MessageStream(base::Fd socket, std::size_t longest_body = kLongestShortMessage)
      : socket_{std::move(socket)}, longest_body_{longest_body} {}

  enum class State : std::uint8_t { Nothing, Arrived, Closed, Garbage };
  // Reads the available bytes, up to the end of one message.
  State read(RendezvousMessage& message);

  // Sends as many bytes as the socket takes now; send_more() sends the rest. False: the connection
  // is broken. REQUIRES for send(): !sending()
  bool send(std::shared_ptr<const std::string> bytes);
  bool send_more();
  bool sending() const { return out_ != nullptr; }

  int fd() const { return socket_.number(); }

 private:
  base::Fd socket_;
  std::size_t longest_body_;
  std::string in_;
  std::shared_ptr<const std::string> out_;
  std::size_t sent_ = 0;
};

}  // namespace sluice::bootstrap

#include "bootstrap/rendezvous/rendezvous_message.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <tuple>

#include "transport/tcp/tcp_socket.h"

namespace sluice::bootstrap {
namespace {

constexpr std::string_view kMagic = "SLCR";
constexpr std::size_t kHeadBytes = 12;
constexpr std::size_t kLongestReason = 1500;
constexpr std::size_t kLongestInfo = 3 * (1 + kLongestText) + 2 + 4;

class Writer {
 public:
  void number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void text(std::string_view text) {
    text = text.substr(0, kLongestText);
    number(text.size(), 1);
    bytes_ += text;
  }
  void bytes(std::span<const std::byte> bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());  // NOLINT
  }
  void info(const RankInfo& info) {
    text(info.host);
    text(info.node);
    text(info.address);
    number(info.port, 2);
    number(static_cast<std::uint64_t>(info.process), 4);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Once a part does not fit, all later parts are empty and at_end() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_{bytes} {}

  std::uint32_t number(int bytes) {
    const std::string_view taken = take(static_cast<std::size_t>(bytes));
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < taken.size(); ++i)
      value |= std::uint32_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  std::string text() { return std::string{take(number(1))}; }
  template <std::size_t N>
  std::array<std::byte, N> bytes() {
    std::array<std::byte, N> read{};
    const std::string_view taken = take(N);
    std::transform(taken.begin(), taken.end(), read.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return read;
  }
  RankInfo info() {
    RankInfo read;
    read.host = text();
    read.node = text();
    read.address = text();
    read.port = static_cast<std::uint16_t>(number(2));
    read.process = static_cast<int>(number(4));
    const auto printable = [](unsigned char c) { return c > ' ' && c != 127; };
    valid_ = valid_ && std::all_of(read.host.begin(), read.host.end(), printable) &&
             read.port != 0 && transport::SocketAddress::numeric(read.address, read.port);
    return read;
  }
  bool at_end() const { return valid_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t bytes) {
    valid_ = valid_ && bytes <= rest_.size();
    if (!valid_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  bool valid_ = true;
};

std::string message(RendezvousMessageKind kind, std::string_view body) {
  Writer head;
  head.number(kRendezvousVersion, 2);
  head.number(static_cast<std::uint64_t>(kind), 2);
  head.number(body.size(), 4);
  return std::string{kMagic}.append(head.take()).append(body);
}

std::string message(RendezvousMessageKind kind, std::span<const std::byte> bytes) {
  return message(
      kind, std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()});  // NOLINT
}

template <std::size_t N>
std::optional<std::array<std::byte, N>> read_bytes(std::string_view body) {
  Reader reader{body};
  const auto bytes = reader.bytes<N>();
  if (!reader.at_end()) return std::nullopt;
  return bytes;
}

// Text from a network may contain control characters, and it is shown on a terminal.
std::string printable(std::string_view text) {
  std::string clean{text.substr(0, kLongestReason)};
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return clean;
}

}  // namespace

std::string hello_message(const Hello& hello) {
  Writer body;
  body.number(static_cast<std::uint64_t>(hello.rank), 4);
  body.number(static_cast<std::uint64_t>(hello.ranks), 4);
  body.number(static_cast<std::uint64_t>(hello.local_ranks), 4);
  body.number(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(hello.milliseconds_left, 0, INT32_MAX)),
      4);
  body.bytes(hello.nonce);
  body.info(hello.self);
  return message(RendezvousMessageKind::Hello, body.take());
}

std::string challenge_message(const transport::Nonce& challenge) {
  return message(RendezvousMessageKind::Challenge, challenge);
}
std::string proof_message(const transport::TokenProof& proof) {
  return message(RendezvousMessageKind::Proof, proof);
}
std::string welcome_message(const transport::TokenProof& proof) {
  return message(RendezvousMessageKind::Welcome, proof);
}

std::string_view body_of(std::string_view message) { return message.substr(kHeadBytes); }

std::string refusal_message(std::string_view reason) {
  return message(RendezvousMessageKind::Refusal, reason.substr(0, kLongestReason));
}

std::string failure_message(const Status& status) {
  Writer body;
  body.number(static_cast<std::uint64_t>(status.code()), 1);
  return message(RendezvousMessageKind::Failure,
                 body.take() + status.message().substr(0, kLongestReason));
}

std::string table_message(const std::vector<RankInfo>& ranks) {
  Writer body;
  for (const RankInfo& info : ranks) body.info(info);
  return message(RendezvousMessageKind::Table, body.take());
}

std::optional<Hello> read_hello(std::string_view body) {
  Reader reader{body};
  Hello hello;
  hello.rank = reader.number(4);
  hello.ranks = reader.number(4);
  hello.local_ranks = static_cast<int>(std::min<std::uint32_t>(reader.number(4), INT32_MAX));
  hello.milliseconds_left = reader.number(4);
  hello.nonce = reader.bytes<std::tuple_size_v<transport::Nonce>>();
  hello.self = reader.info();
  if (!reader.at_end()) return std::nullopt;
  return hello;
}

std::optional<transport::Nonce> read_challenge(std::string_view body) {
  return read_bytes<std::tuple_size_v<transport::Nonce>>(body);
}

std::optional<transport::TokenProof> read_proof(std::string_view body) {
  return read_bytes<std::tuple_size_v<transport::TokenProof>>(body);
}

transport::Transcript transcript_of(std::string_view hello, const transport::Nonce& challenge) {
  return {"rendezvous", std::as_bytes(std::span{hello}), challenge};
}

std::string read_refusal(std::string_view body) { return printable(body); }

Status read_failure(std::string_view body) {
  const auto code = static_cast<Code>(Reader{body}.number(1));
  const bool known = code > Code::Ok && code <= Code::DeadlineExceeded;
  return {known ? code : Code::PeerLost,
          printable(body.substr(std::min<std::size_t>(1, body.size())))};
}

std::optional<std::vector<RankInfo>> read_table(std::string_view body, int ranks) {
  Reader reader{body};
  std::vector<RankInfo> infos;
  for (int i = 0; i < ranks; ++i) infos.push_back(reader.info());
  if (!reader.at_end()) return std::nullopt;
  return infos;
}

std::size_t longest_table(int ranks) {
  return std::max(kLongestShortMessage, static_cast<std::size_t>(ranks) * kLongestInfo);
}

MessageStream::State MessageStream::read(RendezvousMessage& message) {
  while (true) {
    std::size_t wanted = kHeadBytes;
    if (in_.size() >= kHeadBytes) {
      Reader head{std::string_view{in_}.substr(kMagic.size())};
      message.version = static_cast<std::uint16_t>(head.number(2));
      message.kind = static_cast<RendezvousMessageKind>(head.number(2));
      wanted += head.number(4);
      if (wanted - kHeadBytes > longest_body_) return State::Garbage;
      if (in_.size() == wanted) {
        message.body = in_.substr(kHeadBytes);
        in_.clear();
        return State::Arrived;
      }
    }
    std::array<char, 16384> chunk;  // NOLINT: filled by recv
    const ssize_t got = recv(fd(), chunk.data(), std::min(chunk.size(), wanted - in_.size()), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return State::Nothing;
    if (got <= 0) return State::Closed;
    in_.append(chunk.data(), static_cast<std::size_t>(got));
    const std::size_t here = std::min(in_.size(), kMagic.size());
    if (in_.compare(0, here, kMagic.substr(0, here)) != 0) return State::Garbage;
  }
}

bool MessageStream::send(std::shared_ptr<const std::string> bytes) {
  out_ = std::move(bytes);
  sent_ = 0;
  return send_more();
}

bool MessageStream::send_more() {
  while (out_ != nullptr && sent_ < out_->size()) {
    const ssize_t put =
        ::send(fd(), out_->data() + sent_, out_->size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += static_cast<std::size_t>(put);
  }
  out_.reset();
  return true;
}

}  // namespace sluice::bootstrap

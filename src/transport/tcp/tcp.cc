#include "transport/tcp/tcp.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/format.h"
#include "transport/control.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::transport {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
// The most that one call sends or receives: both directions take turns, so that the bytes on the
// way stay few enough for the cache.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 18;
// What is read along with a header: the rest of a longer message goes directly to its destination.
constexpr std::size_t kShortBytes = std::size_t{1} << 12;
constexpr std::size_t kLongestElement = 8;

// A message on a status socket.
struct StatusFrame {
  std::uint64_t goodbye = 0;
  StatusUpdate update;
};

// The outcome of a send or receive: some bytes, none at present, or none ever again (see errno).
enum class Io : std::uint8_t { Some, Nothing, Over };

Io outcome(ssize_t bytes) {
  if (bytes > 0) return Io::Some;
  if (bytes == 0) errno = 0;  // end of file; clear the stale errno
  if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Io::Nothing;
  return Io::Over;
}

// Bytes that the peer's kernel has not acknowledged.
std::size_t unacknowledged(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

// Sends messages on a connection.
class Outgoing {
 public:
  void add(const MessageHeader& header, const std::byte* data) {
    queue_[posted_++ % kWindow] = {header, data};
  }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t bytes() const { return bytes_; }

  // Sends up to kMostAtOnce bytes.
  Io send_more(int socket) {
    Io io = Io::Nothing;
    for (std::size_t room = kMostAtOnce; sent_ < posted_ && room > 0;) {
      const Entry& entry = queue_[sent_ % kWindow];
      const std::size_t total = sizeof(MessageHeader) + entry.header.bytes;
      std::array<iovec, 2> parts{};
      std::size_t count = 0;
      if (done_ < sizeof(MessageHeader)) {
        auto* const header = reinterpret_cast<const std::byte*>(&entry.header);  // NOLINT: as bytes
        parts[count++] = part(header + done_, sizeof(MessageHeader) - done_);
      }
      const std::size_t data_done =
          done_ > sizeof(MessageHeader) ? done_ - sizeof(MessageHeader) : 0;
      const std::size_t data_now = std::min<std::size_t>(room, entry.header.bytes - data_done);
      if (data_now > 0) parts[count++] = part(entry.data + data_done, data_now);
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = count;
      const int more = data_done + data_now < entry.header.bytes ? MSG_MORE : 0;
      const ssize_t bytes = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL | more);
      if (const Io now = outcome(bytes); now != Io::Some) return now == Io::Over ? now : io;
      io = Io::Some;
      done_ += static_cast<std::size_t>(bytes);
      bytes_ += static_cast<std::size_t>(bytes);
      room -= std::min(room, static_cast<std::size_t>(bytes));
      if (done_ < total) continue;
      done_ = 0;
      ++sent_;
    }
    return io;
  }

 private:
  struct Entry {
    MessageHeader header;
    const std::byte* data = nullptr;
  };
  static iovec part(const std::byte* data, std::size_t bytes) {
    return {const_cast<std::byte*>(data), bytes};  // NOLINT: sendmsg() only reads it
  }

  std::array<Entry, kWindow> queue_;
  std::uint64_t posted_ = 0;
  std::uint64_t sent_ = 0;
  std::size_t done_ = 0;     // sent bytes of the oldest unsent message, its header included
  std::uint64_t bytes_ = 0;  // sent bytes of all messages, headers included
};

// Receives messages on a connection.
class Incoming {
 public:
  // The header of the present message, or null while it is incomplete. `io` is the outcome of the
  // read.
  const MessageHeader* header(int socket, Io& io) {
    io = Io::Nothing;
    if (begun_) return &header_;
    if (end_ - begin_ < sizeof header_) io = fill(socket, sizeof header_ + kShortBytes);
    if (end_ - begin_ < sizeof header_) return nullptr;
    std::memcpy(&header_, buffer_.data() + begin_, sizeof header_);
    begin_ += sizeof header_;
    left_ = header_.bytes;
    begun_ = true;
    return &header_;
  }

  std::span<const std::byte> bytes(int socket, Io& io) {
    io = Io::Nothing;
    if (here() < std::min<std::uint64_t>(left_, kLongestElement)) io = fill(socket, kBufferBytes);
    return {buffer_.data() + begin_, here()};
  }

  void consume(std::size_t bytes) {
    begin_ += bytes;
    advance(bytes);
  }

  std::size_t read(int socket, std::byte* to, std::size_t bytes, Io& io) {
    io = Io::Nothing;
    const std::size_t buffered = std::min(bytes, here());
    if (buffered > 0) std::memcpy(to, buffer_.data() + begin_, buffered);
    begin_ += buffered;
    const std::uint64_t wanted =
        std::min<std::uint64_t>({bytes, left_, buffered + kMostAtOnce}) - buffered;
    std::size_t direct = 0;
    if (wanted > 0) {
      const ssize_t got = recv(socket, to + buffered, wanted, MSG_DONTWAIT);
      io = outcome(got);
      if (io == Io::Some) direct = static_cast<std::size_t>(got);
    }
    advance(buffered + direct);
    return buffered + direct;
  }

 private:
  std::size_t here() const { return std::min<std::uint64_t>(end_ - begin_, left_); }
  void advance(std::size_t bytes) {
    left_ -= bytes;
    if (left_ == 0) begun_ = false;
  }

  // Receives up to `most` bytes into the buffer.
  Io fill(int socket, std::size_t most) {
    if (buffer_.empty()) buffer_.resize(kBufferBytes);
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const ssize_t got =
        recv(socket, buffer_.data() + end_, std::min(most, buffer_.size() - end_), MSG_DONTWAIT);
    const Io io = outcome(got);
    if (io == Io::Some) end_ += static_cast<std::size_t>(got);
    return io;
  }

  std::vector<std::byte> buffer_;  // received and not consumed: [begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  MessageHeader header_;
  bool begun_ = false;
  std::uint64_t left_ = 0;  // unconsumed bytes of the present message
};

// Sends and receives status updates. An update that waits for the socket is replaced by the next.
class StatusStream {
 public:
  void send(int socket, const StatusFrame& frame) {
    // A peer that does not read gets no more updates, so that there is room for the final one. Its
    // window never closes, so its host acknowledges every update, however long it computes.
    constexpr std::size_t kMostUnacknowledged = 16 * 1024;
    constexpr std::uint64_t kLeastWindow = 4 * 1024;
    const bool final = frame.goodbye != 0 || frame.update.failed != 0;
    if (!final &&
        (unacknowledged(socket) > kMostUnacknowledged || window_of_peer(socket) < kLeastWindow))
      return;
    next_ = frame;
    has_next_ = true;
    while (has_next_ || sent_ < sizeof out_) {
      if (sent_ == sizeof out_) {
        out_ = next_;
        has_next_ = false;
        sent_ = 0;
      }
      const auto* const bytes = reinterpret_cast<const std::byte*>(&out_);  // NOLINT: as bytes
      const ssize_t sent =
          ::send(socket, bytes + sent_, sizeof out_ - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent <= 0) return;
      sent_ += static_cast<std::size_t>(sent);
    }
  }

  void receive(int socket) {
    while (!over_) {
      auto* const bytes = reinterpret_cast<std::byte*>(&in_);  // NOLINT: as bytes
      const ssize_t got = recv(socket, bytes + received_, sizeof in_ - received_, MSG_DONTWAIT);
      const Io io = outcome(got);
      if (io == Io::Over) {
        over_ = true;
        error_ = errno;
      }
      if (io != Io::Some) return;
      received_ += static_cast<std::size_t>(got);
      if (received_ < sizeof in_) continue;
      received_ = 0;
      if (in_.goodbye != 0) {
        goodbye_ = true;
      } else {
        newest_ = in_.update;
        is_new_ = true;
      }
    }
  }
  // True: `update` is the newest, and was not taken before.
  bool take(StatusUpdate& update) {
    if (is_new_) update = newest_;
    return std::exchange(is_new_, false);
  }

  bool over() const { return over_; }
  int error() const { return error_; }  // of the connection; 0: none, or its peer has closed it
  bool goodbye() const { return goodbye_; }

 private:
  StatusFrame out_;
  std::size_t sent_ = sizeof(StatusFrame);  // bytes of out_
  StatusFrame next_;
  bool has_next_ = false;
  StatusFrame in_;
  std::size_t received_ = 0;  // bytes of in_
  StatusUpdate newest_;
  bool is_new_ = false;
  bool over_ = false;
  int error_ = 0;
  bool goodbye_ = false;
};

// The state that all TCP networks of one rank share.
struct TcpProcess {
  TcpListener listener;
  std::string own_address;
  std::shared_ptr<EpollWaiter> waiter;
  std::size_t receive_buffer = 0;  // for limit_receive_buffers(); 0: leave it to the system
  pid_t process = getpid();
};

class TcpNetwork final : public Network {
 public:
  static Result<std::unique_ptr<Network>> join(std::shared_ptr<TcpProcess> process,
                                               const TcpJoin& join) {
    auto sockets = connect_tcp(join, process->listener, process->own_address);
    if (!sockets.ok()) return sockets.status();
    return std::unique_ptr<Network>{
        new TcpNetwork{std::move(process), join, std::move(sockets).value()}};  // NOLINT: private
  }
  ~TcpNetwork() override { leave(); }
  TcpNetwork(const TcpNetwork&) = delete;
  TcpNetwork& operator=(const TcpNetwork&) = delete;

  std::string_view name() const override { return "tcp"; }
  std::shared_ptr<Waiter> waiter() override { return process_->waiter; }

  void set_link(const Link& between) override {
    process_->receive_buffer = receive_buffer_for(between, most_receive_buffer());
  }
  void limit_receive_buffers() override {
    if (limits_buffers_ || process_->receive_buffer == 0) return;
    limits_buffers_ = true;
    for (const auto& connection : connections_) {
      if (connection)
        set_receive_buffer(connection->sockets.messages.number(), process_->receive_buffer);
    }
  }

  void send(Rank peer, const MessageHeader& header, const std::byte* data) override {
    Connection& connection = this->connection(peer);
    connection.out.add(header, data);
    (void)sent(peer);
  }

  std::uint64_t sent(Rank peer) override {
    Connection& connection = this->connection(peer);
    if (connection.death.empty())
      note(connection, connection.out.send_more(connection.sockets.messages.number()));
    return connection.out.sent();
  }

  std::uint64_t send_progress() const override {
    std::uint64_t bytes = 0;
    for (const auto& connection : connections_) bytes += connection ? connection->out.bytes() : 0;
    return bytes;
  }

  const MessageHeader* incoming(Rank peer) override {
    Connection& connection = this->connection(peer);
    Io io{};
    const MessageHeader* const header =
        connection.in.header(connection.sockets.messages.number(), io);
    note(connection, io);
    return header;
  }

  std::span<const std::byte> arrived(Rank peer) override {
    Connection& connection = this->connection(peer);
    Io io{};
    const auto bytes = connection.in.bytes(connection.sockets.messages.number(), io);
    note(connection, io);
    return bytes;
  }

  void consume(Rank peer, std::size_t bytes) override { connection(peer).in.consume(bytes); }

  std::size_t read(Rank peer, std::byte* to, std::size_t bytes) override {
    Connection& connection = this->connection(peer);
    Io io{};
    const std::size_t got = connection.in.read(connection.sockets.messages.number(), to, bytes, io);
    note(connection, io);
    return got;
  }

  void send_status(Rank peer, const StatusUpdate& update) override {
    failed_ = failed_ || update.failed != 0;
    connection(peer).status.send(connection(peer).sockets.status.number(), {0, update});
  }

  bool receive_status(Rank peer, StatusUpdate& update) override {
    connection(peer).status.receive(connection(peer).sockets.status.number());
    return connection(peer).status.take(update);
  }

  // One of the two sockets may end before all data of the other has arrived, so a death is reported
  // only when both have ended, or some time after the messages have.
  std::string death_of(Rank peer) override {
    constexpr auto kGrace = std::chrono::milliseconds{300};
    Connection& connection = this->connection(peer);
    connection.status.receive(connection.sockets.status.number());
    const bool ended = connection.status.over() || connection.status.goodbye();
    // Status updates are sent while a rank waits, so they show the silence of a host. The messages
    // of a host that is silent do not end by themselves for a long time.
    if (!ended && is_silent(connection.sockets.status.number(), join_.longest_silence))
      return lose(connection, ETIMEDOUT);
    if (ended && is_unreachable(connection.status.error()))
      return lose(connection, connection.status.error());
    if (connection.death.empty() && ended) {
      std::byte next{};
      if (outcome(recv(connection.sockets.messages.number(), &next, 1, MSG_PEEK | MSG_DONTWAIT)) ==
          Io::Over)
        end(connection);
    }
    return ended || Clock::now() - connection.died > kGrace ? connection.death : "";
  }

  void drop(Rank peer, const std::string& why) override {
    Connection& connection = this->connection(peer);
    if (!connection.death.empty()) return;
    connection.death = why;
    connection.died = Clock::now();
    connection.in = {};  // later messages of such a peer do not count either
    shutdown(connection.sockets.messages.number(), SHUT_RDWR);
    shutdown(connection.sockets.status.number(), SHUT_RDWR);
  }

  Result<std::unique_ptr<Network>> split(const std::vector<Rank>& ranks, std::uint64_t id,
                                         const SplitWait& wait) override {
    TcpJoin join{.network = id, .wait = wait, .longest_silence = join_.longest_silence};
    for (const Rank rank : ranks) {
      if (rank == join_.rank) join.rank = static_cast<Rank>(join.addresses.size());
      join.addresses.push_back(join_.addresses[static_cast<std::size_t>(rank)]);
    }
    return TcpNetwork::join(process_, join);
  }

 private:
  struct Connection {
    TcpSockets sockets;
    Outgoing out;
    Incoming in;
    StatusStream status;
    std::string death;         // why no more messages come
    Clock::time_point died{};  // when that was noticed
  };

  TcpNetwork(std::shared_ptr<TcpProcess> process, const TcpJoin& join,
             std::vector<TcpSockets> sockets)
      : process_{std::move(process)}, join_{join}, connections_(sockets.size()) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (!sockets[i].messages.open()) continue;
      connections_[i] = std::make_unique<Connection>();
      connections_[i]->sockets = std::move(sockets[i]);
      process_->waiter->add(connections_[i]->sockets.messages.number(), false);
      process_->waiter->add(connections_[i]->sockets.status.number(), true);
    }
  }

  Connection& connection(Rank peer) { return *connections_[static_cast<std::size_t>(peer)]; }

  void note(Connection& connection, Io io) {
    if (io == Io::Some) process_->waiter->note_progress();
    if (io == Io::Over) end(connection);
  }

  // The system's error number tells how the connection ended.
  static void end(Connection& connection) {
    if (!connection.death.empty()) return;
    const int error = errno;
    connection.died = Clock::now();
    connection.status.receive(connection.sockets.status.number());  // may bring a goodbye
    if (connection.status.goodbye()) {
      connection.death = "it has left";
    } else if (is_unreachable(error)) {
      lose(connection, error);
    } else {
      connection.death = "its connection was closed";
    }
  }

  static bool is_unreachable(int error) {
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  }

  // Records that the peer's host does not answer; returns the reason of the peer's death.
  static const std::string& lose(Connection& connection, int error) {
    if (connection.death.empty())
      connection.death = base::format("it cannot be reached: {}", std::strerror(error));
    return connection.death;
  }

  // Says goodbye and waits until the sent data is acknowledged: once a socket is closed, its
  // unacknowledged data is lost as soon as the peer sends to it.
  void leave() {
    constexpr auto kAfterSuccess = std::chrono::seconds{2};
    constexpr auto kAfterFailure = std::chrono::milliseconds{200};
    if (getpid() != process_->process)
      return;  // a forked child must not end its parent's connections
    for (const auto& connection : connections_) {
      if (!connection) continue;
      connection->status.send(connection->sockets.status.number(), {1, {}});
      shutdown(connection->sockets.status.number(), SHUT_WR);
      shutdown(connection->sockets.messages.number(), SHUT_WR);
    }
    const auto until = Clock::now() + (failed_ ? std::chrono::milliseconds{kAfterFailure}
                                               : std::chrono::milliseconds{kAfterSuccess});
    for (const auto& connection : connections_) {
      while (connection && connection->death.empty() && has_unacknowledged(*connection) &&
             Clock::now() < until) {
        connection->status.receive(connection->sockets.status.number());
        if (connection->status.over()) break;
        std::this_thread::sleep_for(std::chrono::microseconds{200});
      }
    }
  }

  static bool has_unacknowledged(const Connection& connection) {
    return unacknowledged(connection.sockets.messages.number()) > 0 ||
           unacknowledged(connection.sockets.status.number()) > 0;
  }

  std::shared_ptr<TcpProcess> process_;
  TcpJoin join_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by rank; null for ranks on this node
  bool failed_ = false;
  bool limits_buffers_ = false;
};

}  // namespace

Result<std::unique_ptr<Network>> make_tcp_network(TcpOptions options) {
  auto waiter = EpollWaiter::make(options.wake_descriptor, options.spins);
  if (!waiter.ok()) return waiter.status();
  auto process = std::make_shared<TcpProcess>(TcpProcess{
      .listener = {std::move(options.listener), std::move(options.token), options.addresses.size()},
      .own_address = options.own_address,
      .waiter = std::move(waiter).value()});
  return TcpNetwork::join(std::move(process), {.network = 0,
                                               .rank = options.rank,
                                               .addresses = std::move(options.addresses),
                                               .wait = {options.deadline},
                                               .longest_silence = options.longest_silence});
}

}  // namespace sluice::transport

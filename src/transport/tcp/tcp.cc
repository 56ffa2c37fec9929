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
constexpr std::size_t kLongestElement = 8;

// What travels on a socket of notes.
struct Frame {
  std::uint64_t goodbye = 0;
  StatusUpdate note;
};

// What was sent is out when the kernel has it; errno is kept for who asks.
enum class Io : std::uint8_t { Some, Nothing, Over };

Io outcome(ssize_t bytes) {
  if (bytes > 0) return Io::Some;
  if (bytes == 0) errno = 0;  // the end, and no error: what is there is of another call
  if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Io::Nothing;
  return Io::Over;
}

// Bytes that the kernel has and the peer's does not.
std::size_t unsent(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

// The sending half of a connection.
class Outgoing {
 public:
  void add(const MessageHeader& header, const std::byte* data) {
    queue_[posted_++ % kWindow] = {header, data};
  }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t bytes() const { return bytes_; }

  Io move(int socket) {
    while (sent_ < posted_) {
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
      if (entry.header.bytes > data_done)
        parts[count++] = part(entry.data + data_done, entry.header.bytes - data_done);
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = count;
      const ssize_t bytes = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (const Io io = outcome(bytes); io != Io::Some) return io;
      done_ += static_cast<std::size_t>(bytes);
      bytes_ += static_cast<std::size_t>(bytes);
      if (done_ < total) continue;
      done_ = 0;
      ++sent_;
    }
    return Io::Some;
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
  std::size_t done_ = 0;     // bytes of the oldest, its header included
  std::uint64_t bytes_ = 0;  // of all, likewise
};

// The receiving half.
class Incoming {
 public:
  // The header of the present message, when it is here whole; what was read is in `io`.
  const MessageHeader* header(int socket, Io& io) {
    io = Io::Some;
    if (begun_) return &header_;
    if (end_ - begin_ < sizeof header_) io = fill(socket);
    if (end_ - begin_ < sizeof header_) return nullptr;
    std::memcpy(&header_, buffer_.data() + begin_, sizeof header_);
    begin_ += sizeof header_;
    left_ = header_.bytes;
    begun_ = true;
    return &header_;
  }

  std::span<const std::byte> bytes(int socket, Io& io) {
    io = Io::Some;
    if (here() < std::min<std::uint64_t>(left_, kLongestElement)) io = fill(socket);
    return {buffer_.data() + begin_, here()};
  }

  void consume(std::size_t bytes) {
    begin_ += bytes;
    pass(bytes);
  }

  std::size_t read(int socket, std::byte* to, std::size_t bytes, Io& io) {
    io = Io::Some;
    const std::size_t buffered = std::min(bytes, here());
    if (buffered > 0) std::memcpy(to, buffer_.data() + begin_, buffered);
    begin_ += buffered;
    const std::uint64_t wanted = std::min<std::uint64_t>(bytes, left_) - buffered;
    std::size_t direct = 0;
    if (wanted > 0) {
      const ssize_t got = recv(socket, to + buffered, wanted, MSG_DONTWAIT);
      io = outcome(got);
      if (io == Io::Some) direct = static_cast<std::size_t>(got);
    }
    pass(buffered + direct);
    return buffered + direct;
  }

 private:
  std::size_t here() const { return std::min<std::uint64_t>(end_ - begin_, left_); }
  void pass(std::size_t bytes) {
    left_ -= bytes;
    if (left_ == 0) begun_ = false;
  }

  Io fill(int socket) {
    if (buffer_.empty()) buffer_.resize(kBufferBytes);
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const ssize_t got = recv(socket, buffer_.data() + end_, buffer_.size() - end_, MSG_DONTWAIT);
    const Io io = outcome(got);
    if (io == Io::Some) end_ += static_cast<std::size_t>(got);
    return io;
  }

  std::vector<std::byte> buffer_;  // what has been read and not been used: [begin, end)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  MessageHeader header_;
  bool begun_ = false;
  std::uint64_t left_ = 0;  // of the present message
};

// Notes both ways. A note that cannot go at once is replaced by the next.
class Notes {
 public:
  void tell(int socket, const Frame& frame) {
    // To a peer that has long not listened: the last words must find room.
    constexpr std::size_t kMostUnsent = 16 * 1024;
    const bool last = frame.goodbye != 0 || frame.note.failed != 0;
    if (!last && unsent(socket) > kMostUnsent) return;
    next_ = frame;
    has_next_ = true;
    while (has_next_ || done_ < sizeof out_) {
      if (done_ == sizeof out_) {
        out_ = next_;
        has_next_ = false;
        done_ = 0;
      }
      const auto* const bytes = reinterpret_cast<const std::byte*>(&out_);  // NOLINT: as bytes
      const ssize_t sent =
          send(socket, bytes + done_, sizeof out_ - done_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent <= 0) return;
      done_ += static_cast<std::size_t>(sent);
    }
  }

  void listen(int socket) {
    while (!over_) {
      auto* const bytes = reinterpret_cast<std::byte*>(&in_);  // NOLINT: as bytes
      const ssize_t got = recv(socket, bytes + heard_, sizeof in_ - heard_, MSG_DONTWAIT);
      const Io io = outcome(got);
      if (io == Io::Over) over_ = true;
      if (io != Io::Some) return;
      heard_ += static_cast<std::size_t>(got);
      if (heard_ < sizeof in_) continue;
      heard_ = 0;
      if (in_.goodbye != 0) {
        goodbye_ = true;
      } else {
        newest_ = in_.note;
        is_new_ = true;
      }
    }
  }
  // True: `note` is the newest that was heard, and has not been taken before.
  bool take(StatusUpdate& note) {
    if (is_new_) note = newest_;
    return std::exchange(is_new_, false);
  }

  bool over() const { return over_; }
  bool goodbye() const { return goodbye_; }

 private:
  Frame out_;
  std::size_t done_ = sizeof(Frame);  // of out_
  Frame next_;
  bool has_next_ = false;
  Frame in_;
  std::size_t heard_ = 0;
  StatusUpdate newest_;
  bool is_new_ = false;
  bool over_ = false;
  bool goodbye_ = false;
};

// What the networks of one rank have in common.
struct TcpProcess {
  TcpListener door;
  std::string own_address;
  std::shared_ptr<EpollWaiter> waiter;
  std::size_t receive_buffer = 0;  // of messages that come in turns; 0: as the system has it
  pid_t process = getpid();
};

class TcpNetwork final : public Network {
 public:
  static Result<std::unique_ptr<Network>> join(std::shared_ptr<TcpProcess> process,
                                               const TcpJoin& join) {
    auto links = join_tcp(join, process->door, process->own_address);
    if (!links.ok()) return links.status();
    return std::unique_ptr<Network>{
        new TcpNetwork{std::move(process), join, std::move(links).value()}};  // NOLINT: private
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
    if (takes_turns_ || process_->receive_buffer == 0) return;
    takes_turns_ = true;
    for (const auto& route : routes_) {
      if (route) set_receive_buffer(route->link.messages.number(), process_->receive_buffer);
    }
  }

  void send(Rank peer, const MessageHeader& header, const std::byte* data) override {
    Route& route = this->route(peer);
    route.out.add(header, data);
    (void)sent(peer);
  }

  std::uint64_t sent(Rank peer) override {
    Route& route = this->route(peer);
    if (route.death.empty()) note_end(route, route.out.move(route.link.messages.number()));
    return route.out.sent();
  }

  std::uint64_t send_progress() const override {
    std::uint64_t bytes = 0;
    for (const auto& route : routes_) bytes += route ? route->out.bytes() : 0;
    return bytes;
  }

  const MessageHeader* incoming(Rank peer) override {
    Route& route = this->route(peer);
    Io io{};
    const MessageHeader* const header = route.in.header(route.link.messages.number(), io);
    note_end(route, io);
    return header;
  }

  std::span<const std::byte> arrived(Rank peer) override {
    Route& route = this->route(peer);
    Io io{};
    const auto bytes = route.in.bytes(route.link.messages.number(), io);
    note_end(route, io);
    return bytes;
  }

  void consume(Rank peer, std::size_t bytes) override { route(peer).in.consume(bytes); }

  std::size_t read(Rank peer, std::byte* to, std::size_t bytes) override {
    Route& route = this->route(peer);
    Io io{};
    const std::size_t got = route.in.read(route.link.messages.number(), to, bytes, io);
    note_end(route, io);
    return got;
  }

  void send_status(Rank peer, const StatusUpdate& note) override {
    failed_ = failed_ || note.failed != 0;
    route(peer).notes.tell(route(peer).link.notes.number(), {0, note});
  }

  bool receive_status(Rank peer, StatusUpdate& note) override {
    route(peer).notes.listen(route(peer).link.notes.number());
    return route(peer).notes.take(note);
  }

  // Who has said no more may still have messages on the way, and the other way round: one of the
  // two connections may tell of the end before the other has brought all.
  std::string death_of(Rank peer) override {
    constexpr auto kLastWords = std::chrono::milliseconds{300};
    Route& route = this->route(peer);
    route.notes.listen(route.link.notes.number());
    const bool silent = route.notes.over() || route.notes.goodbye();
    if (route.death.empty() && silent) {
      std::byte next{};
      note_end(route,
               outcome(recv(route.link.messages.number(), &next, 1, MSG_PEEK | MSG_DONTWAIT)));
    }
    return silent || Clock::now() - route.died > kLastWords ? route.death : "";
  }

  Result<std::unique_ptr<Network>> split(const std::vector<Rank>& ranks, std::uint64_t id,
                                         Clock::time_point deadline) override {
    TcpJoin join{.network = id, .deadline = deadline};
    for (const Rank rank : ranks) {
      if (rank == join_.rank) join.rank = static_cast<Rank>(join.addresses.size());
      join.addresses.push_back(join_.addresses[static_cast<std::size_t>(rank)]);
    }
    return TcpNetwork::join(process_, join);
  }

 private:
  struct Route {
    TcpLink link;
    Outgoing out;
    Incoming in;
    Notes notes;
    std::string death;         // how its messages ended
    Clock::time_point died{};  // and when that was seen
  };

  TcpNetwork(std::shared_ptr<TcpProcess> process, const TcpJoin& join, std::vector<TcpLink> links)
      : process_{std::move(process)}, join_{join}, routes_(links.size()) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (!links[i].messages.open()) continue;
      routes_[i] = std::make_unique<Route>();
      routes_[i]->link = std::move(links[i]);
      process_->waiter->watch(routes_[i]->link.messages.number(), false);
      process_->waiter->watch(routes_[i]->link.notes.number(), true);
    }
  }

  Route& route(Rank peer) { return *routes_[static_cast<std::size_t>(peer)]; }

  static void note_end(Route& route, Io io) {
    if (io != Io::Over || !route.death.empty()) return;
    const int error = errno;
    route.died = Clock::now();
    route.notes.listen(route.link.notes.number());  // a goodbye may lie there
    if (route.notes.goodbye()) {
      route.death = "it has left";
    } else if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
      route.death = base::format("it cannot be reached: {}", std::strerror(error));
    } else {
      route.death = "its connection was closed";
    }
  }

  // Says goodbye and sees that what was sent goes out. What the kernel still holds when a socket is
  // closed is lost as soon as the peer sends to it.
  void leave() {
    constexpr auto kPatience = std::chrono::seconds{2};
    constexpr auto kAfterFailure = std::chrono::milliseconds{200};
    if (getpid() != process_->process) return;  // a forked child must not speak for its parent
    for (const auto& route : routes_) {
      if (!route) continue;
      route->notes.tell(route->link.notes.number(), {1, {}});
      shutdown(route->link.notes.number(), SHUT_WR);
      shutdown(route->link.messages.number(), SHUT_WR);
    }
    const auto until = Clock::now() + (failed_ ? std::chrono::milliseconds{kAfterFailure}
                                               : std::chrono::milliseconds{kPatience});
    for (const auto& route : routes_) {
      while (route && route->death.empty() && holds_unsent(*route) && Clock::now() < until) {
        route->notes.listen(route->link.notes.number());
        if (route->notes.over()) break;
        std::this_thread::sleep_for(std::chrono::microseconds{200});
      }
    }
  }

  static bool holds_unsent(const Route& route) {
    return unsent(route.link.messages.number()) > 0 || unsent(route.link.notes.number()) > 0;
  }

  std::shared_ptr<TcpProcess> process_;
  TcpJoin join_;
  std::vector<std::unique_ptr<Route>> routes_;  // by rank; none to those of this node
  bool failed_ = false;
  bool takes_turns_ = false;
};

}  // namespace

Result<std::unique_ptr<Network>> make_tcp_network(TcpOptions options) {
  auto waiter = EpollWaiter::make(options.wake_descriptor);
  if (!waiter.ok()) return waiter.status();
  auto process = std::make_shared<TcpProcess>();
  process->door.listener = std::move(options.listener);
  process->door.token = std::move(options.token);
  process->own_address = options.own_address;
  process->waiter = std::move(waiter).value();
  return TcpNetwork::join(std::move(process), {.network = 0,
                                               .rank = options.rank,
                                               .addresses = std::move(options.addresses),
                                               .deadline = options.deadline});
}

}  // namespace sluice::transport

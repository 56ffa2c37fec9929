// mpi_link.h - one MPI communicator and the traffic between this rank and each peer on it.
//
// A message consists of a frame and, if it is long, of segments. The frame is the header and the
// first kInlineBytes of the payload. The segments have the rest, and are sent directly from the
// caller's memory. Both sides cut a message in the same way, and MPI keeps the order of messages
// with one tag from one rank to another, so frames and segments have no numbers. The receiver posts
// receives for kFrames frames and up to kSegments segments in advance, across messages, so a
// sender of many mid-sized messages does not wait until the receiver has read each header.
//
// No function blocks, except MpiLink::leave(). After an MPI error a connection sends and receives
// nothing, and error() has the reason. Memory is allocated when a peer first needs it; the steady
// state allocates nothing.
#pragma once

// A C++ binding of MPI would be a second library to link.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/network.h"
#include "transport/wait.h"

namespace sluice::transport {

inline constexpr std::chrono::microseconds kPollInterval{50};

inline constexpr int kFrameTag = 1;
inline constexpr int kPayloadTag = 2;
inline constexpr int kStatusTag = 3;

// The longest part of a payload that is sent with its header. It keeps the link busy while MPI
// negotiates the rest.
inline constexpr std::size_t kInlineBytes = std::size_t{32} << 10U;
// Open MPI over TCP sends up to 64 KiB at once, its own header included. For longer messages it
// asks the receiver first, and in a ring every answer waits behind the data that its sender is
// sending.
inline constexpr std::size_t kSegmentBytes = std::size_t{60} << 10U;
inline constexpr std::uint64_t kSegments = 64;  // the most outstanding segments in each direction
inline constexpr std::uint64_t kFrames = 8;     // the most outstanding frames in each direction

// MPI offers no descriptor to sleep on, so this waiter polls. Its sleeps are short while messages
// make progress.
class BackoffWaiter : public Waiter {
 public:
  bool sleep(Doorbell& doorbell, std::uint32_t rings, Clock::time_point until) override;
  // May be called from any thread.
  void note_progress() { pause_.store(kShortest, std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::microseconds kShortest{5};
  static constexpr std::chrono::microseconds kLongest{100};
  std::atomic<std::chrono::microseconds> pause_{kShortest};
  Clock::time_point last_check_;
};

// Sends and receives to and from one peer.
class MpiConnection {
 public:
  MpiConnection(MPI_Comm comm, Rank peer, BackoffWaiter& waiter)
      : comm_{comm}, peer_{peer}, waiter_{&waiter} {}

  const std::string& error() const { return error_; }
  void send(const void* data, std::size_t bytes, int tag, MPI_Request& request);
  void receive(void* data, std::size_t bytes, int tag, MPI_Request& request);
  bool done(MPI_Request& request);
  // Likewise for a receive. `bytes` is the length of the message.
  bool done(MPI_Request& request, std::size_t& bytes);
  void fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }
  // Cancels a receive unless it is complete. False: it is neither cancelled nor complete yet.
  bool cancel(MPI_Request& request);

 private:
  void check(int code);

  MPI_Comm comm_;
  Rank peer_;
  BackoffWaiter* waiter_;
  std::string error_;
};

// A header with the payload, or with its first part.
struct MessageFrame {
  MessageHeader header;
  std::array<std::byte, kInlineBytes> payload;
};

class Outbox {
 public:
  explicit Outbox(MpiConnection& connection) : connection_{&connection} {}

  void send(const MessageHeader& header, const std::byte* data);
  // Continues pending sends. Returns the number of messages that will arrive without another call.
  std::uint64_t sent();
  std::uint64_t send_progress() const { return segments_done_ + frames_done_; }
  std::uint64_t messages() const { return posted_ + queue_.size() - first_; }
  // Continues pending sends. True: all are complete.
  bool idle();
  // Whether MPI may still read a caller's memory. Calls no MPI function.
  bool in_use() const { return segments_done_ < segments_posted_; }

 private:
  struct Outgoing {
    MessageHeader header;
    const std::byte* data;
  };
  struct Segment {
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint64_t message = 0;
  };

  void send_more();
  bool send_frame(const Outgoing& message);
  void pop();

  MpiConnection* connection_;
  std::vector<Outgoing> queue_;  // from first_ on, messages that are not completely posted
  std::size_t first_ = 0;
  std::uint64_t posted_ = 0;         // completely posted messages
  std::uint64_t frames_posted_ = 0;  // messages with a posted frame
  std::uint64_t offset_ = 0;         // posted bytes of the first message in the queue
  std::unique_ptr<std::array<MessageFrame, kFrames>> frames_;
  std::array<MPI_Request, kFrames> frame_requests_;
  std::uint64_t frames_done_ = 0;
  std::array<Segment, kSegments> segments_;
  std::uint64_t segments_posted_ = 0;
  std::uint64_t segments_done_ = 0;
};

class Inbox {
 public:
  explicit Inbox(MpiConnection& connection) : connection_{&connection} {}

  const MessageHeader* incoming();
  std::span<const std::byte> arrived();
  void consume(std::size_t bytes);
  std::uint64_t messages_read() const { return read_; }
  // Cancels the posted receives. False: MPI may still write to their memory.
  bool close();

 private:
  MessageFrame& frame(std::uint64_t message) { return (*frames_)[message % kFrames]; }
  void post_frame(std::uint64_t message);
  void post_segments();

  MpiConnection* connection_;
  std::unique_ptr<std::array<MessageFrame, kFrames>> frames_;
  std::array<MPI_Request, kFrames> frame_requests_;
  std::uint64_t seen_ = 0;    // messages with a received header
  std::uint64_t read_ = 0;    // completely read messages
  std::uint64_t offset_ = 0;  // read bytes of the present message
  std::unique_ptr<std::byte[]> staging_;
  std::array<MPI_Request, kSegments> segment_requests_;
  std::uint64_t segments_posted_ = 0;
  std::uint64_t segments_read_ = 0;
  std::uint64_t posting_ = 0;         // the message whose segments are posted next
  std::uint64_t posting_offset_ = 0;  // the bytes of that message before these segments
  bool closed_ = false;
};

// Status updates to and from one peer. The last one is a goodbye.
class StatusBox {
 public:
  explicit StatusBox(MpiConnection& connection) : connection_{&connection} {}

  void send(const StatusUpdate& update);
  bool receive(StatusUpdate& update);
  // REQUIRES: no send() afterwards. The peer reports the goodbye when it has read that many
  // messages.
  void send_goodbye(std::uint64_t messages);
  // Continues pending sends. True: the newest update is in flight.
  bool all_sent() {
    if (waiting_) idle();
    return !waiting_;
  }
  // Continues pending sends. True: all are complete.
  bool idle();

  bool received_goodbye();
  std::uint64_t messages_before_goodbye() const { return received_.messages; }
  std::int32_t pid_of_goodbye() const { return received_.pid; }
  bool close();

 private:
  struct StatusFrame {
    StatusUpdate update;
    std::uint64_t messages = 0;
    std::int32_t pid = 0;      // not 0: goodbye
    std::uint32_t is_new = 0;  // 0: the update was sent before
  };

  void poll();

  MpiConnection* connection_;
  StatusFrame newest_;  // it is sent when the send before it is complete
  StatusFrame sending_;
  bool waiting_ = false;
  MPI_Request send_request_ = MPI_REQUEST_NULL;
  StatusFrame received_;
  StatusFrame receiving_;
  bool is_new_ = false;
  bool has_posted_ = false;
  bool closed_ = false;
  MPI_Request receive_request_ = MPI_REQUEST_NULL;
};

struct MpiPeer {
  MpiPeer(MPI_Comm comm, Rank rank, BackoffWaiter& waiter) : connection{comm, rank, waiter} {}
  MpiConnection connection;
  Outbox out{connection};
  Inbox in{connection};
  StatusBox status{connection};
  bool dropped = false;  // it sent an impossible value, so nothing of it counts any more
};

// The text of an MPI error code.
std::string mpi_error(int code);

// An MPI communicator, with all traffic on it.
class MpiLink {
 public:
  MpiLink(MPI_Comm comm, std::shared_ptr<BackoffWaiter> waiter)
      : comm_{comm}, waiter_{std::move(waiter)} {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank_);
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    peers_.resize(static_cast<std::size_t>(ranks));
    unsent_.reserve(peers_.size());
  }

  MPI_Comm comm() const { return comm_; }
  Rank rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  const std::shared_ptr<BackoffWaiter>& waiter() const { return waiter_; }

  std::uint64_t send_progress() const {
    std::uint64_t progress = 0;
    for (const std::unique_ptr<MpiPeer>& peer : peers_)
      progress += peer ? peer->out.send_progress() : 0;
    return progress;
  }

  MpiPeer& peer(Rank rank) {
    std::unique_ptr<MpiPeer>& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer == nullptr) peer = std::make_unique<MpiPeer>(comm_, rank, *waiter_);
    return *peer;
  }

  void send_status(Rank rank, const StatusUpdate& update);
  // Continues pending status updates to all peers, because a wait for one peer must not delay the
  // updates to others.
  void send_pending_status() {
    std::erase_if(unsent_, [](MpiPeer* other) { return other->status.all_sent(); });
  }
  std::string death_of(Rank rank);
  // Sends pending messages, then a goodbye to all peers. Blocks up to two seconds. False: not
  // everything could be sent.
  bool leave();
  bool memory_in_use() const;
  // True: no peer sends or waits on this communicator any more, so it can be freed.
  bool over();
  void cancel_status_receives();
  void free() { MPI_Comm_free(&comm_); }

 private:
  MPI_Comm comm_;
  Rank rank_ = 0;
  std::shared_ptr<BackoffWaiter> waiter_;
  std::vector<std::unique_ptr<MpiPeer>> peers_;
  std::vector<MpiPeer*> unsent_;  // the peers with pending status updates
};

}  // namespace sluice::transport

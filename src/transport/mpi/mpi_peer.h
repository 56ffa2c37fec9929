// mpi_peer.h - what goes between this rank and one peer of an MPI communicator.
//
// A message is a header message, with the bytes in it if they are few, else followed by segments
// that go straight from the sender's memory. Both sides cut a message alike, and MPI keeps the
// order of what one rank sends to another with one tag, so nothing has to be numbered. The receiver
// has kHeaders header messages and up to kSegments segments posted ahead, across messages: a
// sender of many mid-sized messages does not wait for the receiver to read each header.
//
// Nothing blocks. An MPI error ends the line: it says why, and nothing moves on it any more. In the
// steady state nothing is allocated; what a peer needs, on first use.
#pragma once

// A C++ binding of MPI would be a second library to link.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/network.h"
#include "transport/wait.h"

namespace sluice::transport {

inline constexpr int kHeaderTag = 1;
inline constexpr int kPayloadTag = 2;
inline constexpr int kNoteTag = 3;

// So much of a payload goes with its header, and keeps the link busy while MPI arranges for the
// rest.
inline constexpr std::size_t kInlineBytes = std::size_t{32} << 10U;
// Few enough that Open MPI over TCP sends them at once (it does so up to 64 KiB, its own header
// included). For longer ones it asks the receiver first, whose answer waits behind all that the
// receiver is itself sending: in a ring everybody's answers do.
inline constexpr std::size_t kSegmentBytes = std::size_t{60} << 10U;
inline constexpr std::uint64_t kSegments = 64;  // outstanding in each direction
inline constexpr std::uint64_t kHeaders = 8;    // likewise

// MPI has nothing to sleep on but to be asked again: naps, short ones while something moves.
class BackoffWaiter : public Waiter {
 public:
  bool sleep(Doorbell& bell, std::uint32_t rings, Clock::time_point until) override;
  void stir() { nap_ = kShortest; }

 private:
  static constexpr std::chrono::microseconds kShortest{5};
  static constexpr std::chrono::microseconds kLongest{100};
  std::chrono::microseconds nap_ = kShortest;
  Clock::time_point looked_;
};

// The way to a peer, and what broke it.
class Line {
 public:
  Line(MPI_Comm comm, Rank peer, BackoffWaiter& waiter)
      : comm_{comm}, peer_{peer}, waiter_{&waiter} {}

  const std::string& error() const { return error_; }
  void send(const void* data, std::size_t bytes, int tag, MPI_Request& request);
  void receive(void* data, std::size_t bytes, int tag, MPI_Request& request);
  bool done(MPI_Request& request);
  // Takes a receive back, or completes it; false while neither could be.
  bool withdraw(MPI_Request& request);

 private:
  void check(int code);

  MPI_Comm comm_;
  Rank peer_;
  BackoffWaiter* waiter_;
  std::string error_;
};

// A header as it travels, with the first bytes of its payload.
struct Frame {
  MessageHeader header;
  std::array<std::byte, kInlineBytes> payload;
};

class Outbox {
 public:
  explicit Outbox(Line& line) : line_{&line} {}

  void send(const MessageHeader& header, const std::byte* data);
  // Messages that arrive whether or not anything here is called again. Sends on what waits.
  std::uint64_t sent();
  std::uint64_t send_progress() const { return segments_done_ + frames_done_; }
  std::uint64_t messages() const { return posted_ + queue_.size() - first_; }
  // Whether MPI needs nothing of this box any more.
  bool idle();
  // Whether MPI may still read a caller's memory. Does not ask MPI.
  bool in_use() const { return segments_done_ < segments_posted_; }

 private:
  struct Outgoing {
    MessageHeader header;
    const std::byte* data;
  };
  struct MemoryBlock {
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint64_t message = 0;
  };

  void move_on();
  bool send_header(const Outgoing& message);
  void pop();

  Line* line_;
  std::vector<Outgoing> queue_;  // from first_: not all handed to MPI yet
  std::size_t first_ = 0;
  std::uint64_t posted_ = 0;      // messages all of which was handed to MPI
  std::uint64_t header_for_ = 0;  // messages whose header was
  std::uint64_t offset_ = 0;      // of what is left of the first one in the queue
  std::unique_ptr<std::array<Frame, kHeaders>> frames_;
  std::array<MPI_Request, kHeaders> frame_requests_;
  std::uint64_t frames_done_ = 0;
  std::array<MemoryBlock, kSegments> segments_;
  std::uint64_t segments_posted_ = 0;
  std::uint64_t segments_done_ = 0;
};

class Inbox {
 public:
  explicit Inbox(Line& line) : line_{&line} {}

  const MessageHeader* incoming();
  std::span<const std::byte> arrived();
  void consume(std::size_t bytes);
  std::uint64_t messages_read() const { return read_; }
  // Takes back what was posted; false while MPI may still write here.
  bool close();

 private:
  Frame& frame(std::uint64_t message) { return (*frames_)[message % kHeaders]; }
  void post_header(std::uint64_t message);
  void post_segments();

  Line* line_;
  std::unique_ptr<std::array<Frame, kHeaders>> frames_;
  std::array<MPI_Request, kHeaders> frame_requests_;
  std::uint64_t seen_ = 0;    // messages whose header is here
  std::uint64_t read_ = 0;    // messages read to their end
  std::uint64_t offset_ = 0;  // read of the present one
  std::unique_ptr<std::byte[]> staging_;
  std::array<MPI_Request, kSegments> segment_requests_;
  std::uint64_t segments_posted_ = 0;
  std::uint64_t segments_read_ = 0;
  std::uint64_t posting_ = 0;         // the message whose segments are posted next,
  std::uint64_t posting_offset_ = 0;  // from here
  bool closed_ = false;
};

// Notes of one peer and to it. The last one of all is a goodbye.
class NoteBox {
 public:
  explicit NoteBox(Line& line) : line_{&line} {}

  void tell(const StatusUpdate& note);
  bool hear(StatusUpdate& note);
  // REQUIRES: no tell() afterwards. `messages`: how many the peer is to read before it hears of it.
  void say_goodbye(std::uint64_t messages);
  // Sends on what waits. True: the newest note is on its way.
  bool told() {
    if (waiting_) idle();
    return !waiting_;
  }
  // The same; true when MPI needs nothing of this box any more.
  bool idle();

  bool goodbye_heard();
  std::uint64_t messages_before_goodbye() const { return heard_.messages; }
  std::int32_t pid_of_goodbye() const { return heard_.pid; }
  bool close();

 private:
  struct NoteFrame {
    StatusUpdate note;
    std::uint64_t messages = 0;
    std::int32_t pid = 0;    // not 0: goodbye
    std::uint32_t news = 0;  // 0: the note was told before
  };

  void listen();

  Line* line_;
  NoteFrame newest_;  // to be sent once the one before is on its way
  NoteFrame sending_;
  bool waiting_ = false;
  MPI_Request send_request_ = MPI_REQUEST_NULL;
  NoteFrame heard_;
  NoteFrame receiving_;
  bool fresh_ = false;
  bool listening_ = false;
  bool closed_ = false;
  MPI_Request receive_request_ = MPI_REQUEST_NULL;
};

struct Peer {
  Peer(MPI_Comm comm, Rank rank, BackoffWaiter& waiter) : line{comm, rank, waiter} {}
  Line line;
  Outbox out{line};
  Inbox in{line};
  NoteBox notes{line};
};

}  // namespace sluice::transport

#include "transport/mpi/mpi_link.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/format.h"

namespace sluice::transport {
namespace {

std::size_t inline_bytes(const MessageHeader& header) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(kInlineBytes, header.bytes));
}

std::size_t segment_bytes(std::uint64_t bytes, std::uint64_t offset) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(kSegmentBytes, bytes - offset));
}

}  // namespace

bool BackoffWaiter::sleep(Doorbell& doorbell, std::uint32_t rings, Clock::time_point until) {
  const std::chrono::microseconds pause = pause_.load(std::memory_order_relaxed);
  pause_.store(std::min(pause * 2, kLongest), std::memory_order_relaxed);
  Waiter::sleep(doorbell, rings, std::min(until, Clock::now() + pause));
  const Clock::time_point now = Clock::now();
  if (now - last_check_ < std::chrono::milliseconds{100}) return false;
  last_check_ = now;
  return true;
}

std::string mpi_error(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return text.data();
}

void MpiConnection::check(int code) {
  if (code == MPI_SUCCESS || !error_.empty()) return;
  error_ = base::format("MPI could not reach it: {}", mpi_error(code));
}

void MpiConnection::send(const void* data, std::size_t bytes, int tag, MPI_Request& request) {
  request = MPI_REQUEST_NULL;
  if (!error_.empty()) return;
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer_, tag, comm_, &request));
}

void MpiConnection::receive(void* data, std::size_t bytes, int tag, MPI_Request& request) {
  request = MPI_REQUEST_NULL;
  if (!error_.empty()) return;
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer_, tag, comm_, &request));
}

bool MpiConnection::done(MPI_Request& request) {
  std::size_t bytes = 0;
  return done(request, bytes);
}

bool MpiConnection::done(MPI_Request& request, std::size_t& bytes) {
  if (!error_.empty()) return false;
  int flag = 0;
  MPI_Status status{};
  check(MPI_Test(&request, &flag, &status));
  if (!error_.empty() || flag == 0) return false;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  bytes = static_cast<std::size_t>(std::max(count, 0));
  waiter_->note_progress();
  return true;
}

bool MpiConnection::cancel(MPI_Request& request) {
  if (request == MPI_REQUEST_NULL) return true;
  int flag = 0;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  if (flag != 0) return true;
  MPI_Cancel(&request);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

void Outbox::send(const MessageHeader& header, const std::byte* data) {
  queue_.push_back({header, data});
  send_more();
}

std::uint64_t Outbox::sent() {
  send_more();
  // Segments and frames are checked in order, so all messages before the oldest incomplete one are
  // sent. A frame counts only when it is complete: MPI may have to ask the receiver first, and
  // makes progress only inside its own calls.
  const std::uint64_t whole =
      segments_done_ < segments_posted_ ? segments_[segments_done_ % kSegments].message : posted_;
  return std::min(whole, frames_done_);
}

bool Outbox::idle() {
  send_more();
  return first_ == queue_.size() && segments_done_ == segments_posted_ &&
         frames_done_ == frames_posted_;
}

void Outbox::send_more() {
  while (frames_done_ < frames_posted_ &&
         connection_->done(frame_requests_[frames_done_ % kFrames])) {
    ++frames_done_;
  }
  while (segments_done_ < segments_posted_ &&
         connection_->done(segments_[segments_done_ % kSegments].request)) {
    ++segments_done_;
  }
  while (first_ < queue_.size() && connection_->error().empty()) {
    const Outgoing& message = queue_[first_];
    if (frames_posted_ == posted_ && !send_frame(message)) return;
    while (offset_ < message.header.bytes) {
      if (segments_posted_ - segments_done_ == kSegments) return;
      Segment& segment = segments_[segments_posted_ % kSegments];
      const std::size_t bytes = segment_bytes(message.header.bytes, offset_);
      segment.message = posted_;
      connection_->send(message.data + offset_, bytes, kPayloadTag, segment.request);
      ++segments_posted_;
      offset_ += bytes;
    }
    pop();
  }
}

// False: there is no room for another frame.
bool Outbox::send_frame(const Outgoing& message) {
  if (frames_ == nullptr) frames_ = std::make_unique<std::array<MessageFrame, kFrames>>();
  if (frames_posted_ - frames_done_ == kFrames) return false;
  const std::size_t slot = frames_posted_ % kFrames;
  MessageFrame& frame = (*frames_)[slot];
  frame.header = message.header;
  offset_ = inline_bytes(message.header);
  if (offset_ > 0) std::memcpy(frame.payload.data(), message.data, offset_);
  connection_->send(&frame, sizeof(MessageHeader) + offset_, kFrameTag, frame_requests_[slot]);
  ++frames_posted_;
  return true;
}

void Outbox::pop() {
  ++posted_;
  ++first_;
  offset_ = 0;
  if (first_ == queue_.size()) {
    queue_.clear();
    first_ = 0;
  } else if (first_ >= 64 && first_ * 2 >= queue_.size()) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void Inbox::post_frame(std::uint64_t message) {
  connection_->receive(&frame(message), sizeof(MessageFrame), kFrameTag,
                       frame_requests_[message % kFrames]);
}

const MessageHeader* Inbox::incoming() {
  if (frames_ == nullptr) {
    frames_ = std::make_unique<std::array<MessageFrame, kFrames>>();
    for (std::uint64_t message = 0; message < kFrames; ++message) post_frame(message);
  }
  std::size_t bytes = 0;
  while (seen_ - read_ < kFrames && connection_->done(frame_requests_[seen_ % kFrames], bytes)) {
    const MessageHeader& header = frame(seen_).header;
    if (bytes < sizeof header || bytes != sizeof header + inline_bytes(header)) {
      connection_->fail(base::format("it sent an invalid message: a frame of {} bytes", bytes));
      return nullptr;
    }
    ++seen_;
    post_segments();
  }
  return read_ < seen_ ? &frame(read_).header : nullptr;
}

void Inbox::post_segments() {
  while (posting_ < seen_) {
    const std::uint64_t bytes = frame(posting_).header.bytes;
    posting_offset_ =
        std::max<std::uint64_t>(posting_offset_, inline_bytes(frame(posting_).header));
    if (posting_offset_ < bytes) {
      if (staging_ == nullptr) {
        staging_ = std::make_unique_for_overwrite<std::byte[]>(kSegments * kSegmentBytes);
      }
      while (posting_offset_ < bytes) {
        if (segments_posted_ - segments_read_ == kSegments) return;
        const std::size_t slot = segments_posted_ % kSegments;
        const std::size_t part = segment_bytes(bytes, posting_offset_);
        connection_->receive(&staging_[slot * kSegmentBytes], part, kPayloadTag,
                             segment_requests_[slot]);
        ++segments_posted_;
        posting_offset_ += part;
      }
    }
    ++posting_;
    posting_offset_ = 0;
  }
}

std::span<const std::byte> Inbox::arrived() {
  const MessageFrame& present = frame(read_);
  const std::uint64_t bytes = present.header.bytes;
  const std::size_t first = inline_bytes(present.header);
  if (offset_ < first || bytes == first)
    return std::span{present.payload}.first(first).subspan(offset_);
  const std::size_t slot = segments_read_ % kSegments;
  // A completed request is null, and a null request counts as done.
  if (segments_read_ == segments_posted_ || !connection_->done(segment_requests_[slot])) return {};
  const std::uint64_t within = (offset_ - first) % kSegmentBytes;
  const std::size_t here = segment_bytes(bytes, offset_ - within) - within;
  return {&staging_[slot * kSegmentBytes + within], here};
}

void Inbox::consume(std::size_t bytes) {
  const std::uint64_t whole = frame(read_).header.bytes;
  const std::size_t first = inline_bytes(frame(read_).header);
  offset_ += bytes;
  const bool at_end = offset_ == whole;
  if (bytes > 0 && offset_ > first && (at_end || (offset_ - first) % kSegmentBytes == 0)) {
    ++segments_read_;
    post_segments();
  }
  if (!at_end) return;
  offset_ = 0;
  post_frame(read_ + kFrames);
  ++read_;
}

bool Inbox::close() {
  if (frames_ == nullptr || closed_) return true;
  closed_ = true;
  for (std::uint64_t message = seen_; message < read_ + kFrames; ++message) {
    closed_ = connection_->cancel(frame_requests_[message % kFrames]) && closed_;
  }
  for (std::uint64_t segment = segments_read_; segment < segments_posted_; ++segment) {
    closed_ = connection_->cancel(segment_requests_[segment % kSegments]) && closed_;
  }
  return closed_;
}

void StatusBox::send(const StatusUpdate& update) {
  newest_.update = update;
  newest_.is_new = 1;
  waiting_ = true;
  idle();
}

void StatusBox::send_goodbye(std::uint64_t messages) {
  newest_.messages = messages;
  newest_.pid = getpid();
  waiting_ = true;
  idle();
}

bool StatusBox::idle() {
  if (send_request_ != MPI_REQUEST_NULL && !connection_->done(send_request_)) return false;
  if (!waiting_) return true;
  sending_ = newest_;
  newest_.is_new = 0;
  waiting_ = false;
  connection_->send(&sending_, sizeof sending_, kStatusTag, send_request_);
  return false;
}

void StatusBox::poll() {
  if (closed_ || received_.pid != 0) return;
  if (!has_posted_) {
    has_posted_ = true;
    connection_->receive(&receiving_, sizeof receiving_, kStatusTag, receive_request_);
  }
  std::size_t bytes = 0;
  while (connection_->done(receive_request_, bytes)) {
    if (bytes != sizeof receiving_) {
      connection_->fail(base::format("it sent an invalid status update of {} bytes", bytes));
      return;
    }
    is_new_ = is_new_ || receiving_.is_new != 0;
    received_ = receiving_;
    if (received_.pid != 0) return;
    connection_->receive(&receiving_, sizeof receiving_, kStatusTag, receive_request_);
  }
}

bool StatusBox::receive(StatusUpdate& update) {
  poll();
  if (!is_new_) return false;
  is_new_ = false;
  update = received_.update;
  return true;
}

bool StatusBox::received_goodbye() {
  poll();
  return received_.pid != 0;
}

bool StatusBox::close() {
  closed_ = connection_->cancel(receive_request_);
  return closed_;
}

void MpiLink::send_status(Rank rank, const StatusUpdate& update) {
  MpiPeer& other = peer(rank);
  other.status.send(update);
  if (!other.status.all_sent() &&
      std::find(unsent_.begin(), unsent_.end(), &other) == unsent_.end()) {
    unsent_.push_back(&other);
  }
}

std::string MpiLink::death_of(Rank rank) {
  MpiPeer& other = peer(rank);
  if (!other.connection.error().empty()) return other.connection.error();
  if (!other.status.received_goodbye()) return "";
  // Messages that the peer sent before its goodbye come first.
  if (other.in.messages_read() < other.status.messages_before_goodbye()) return "";
  return base::format("process {} has left", other.status.pid_of_goodbye());
}

bool MpiLink::leave() {
  constexpr auto kMostTime = std::chrono::seconds{2};
  const Clock::time_point deadline = Clock::now() + kMostTime;
  const auto finish = [&](auto&& is_done) {
    for (Rank rank = 0; rank < ranks(); ++rank) {
      if (rank == rank_) continue;
      MpiPeer& other = peer(rank);
      while (other.connection.error().empty() && !is_done(other)) {
        if (Clock::now() > deadline) return false;
        std::this_thread::sleep_for(kPollInterval);
      }
    }
    return true;
  };
  // A peer that has left reads nothing, so do not wait for messages to it.
  bool all =
      finish([](MpiPeer& other) { return other.out.idle() || other.status.received_goodbye(); });
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (rank != rank_) peer(rank).status.send_goodbye(peer(rank).out.messages());
  }
  all = finish([](MpiPeer& other) { return other.status.idle(); }) && all;
  for (const std::unique_ptr<MpiPeer>& other : peers_) {
    if (other == nullptr) continue;
    other->in.close();
    all = all && other->connection.error().empty() && other->out.idle();
  }
  return all;
}

bool MpiLink::memory_in_use() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const std::unique_ptr<MpiPeer>& other) {
    return other != nullptr && other->out.in_use();
  });
}

bool MpiLink::over() {
  return std::all_of(peers_.begin(), peers_.end(), [](const std::unique_ptr<MpiPeer>& other) {
    return other == nullptr || (other->status.received_goodbye() && other->out.idle() &&
                                other->status.idle() && other->in.close());
  });
}

void MpiLink::cancel_status_receives() {
  for (const std::unique_ptr<MpiPeer>& other : peers_) {
    if (other != nullptr) other->status.close();
  }
}

}  // namespace sluice::transport

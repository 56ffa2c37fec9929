#include "transport/mpi/mpi_peer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

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

bool BackoffWaiter::sleep(Doorbell& bell, std::uint32_t rings, Clock::time_point until) {
  Waiter::sleep(bell, rings, std::min(until, Clock::now() + nap_));
  nap_ = std::min(nap_ * 2, kLongest);
  const Clock::time_point now = Clock::now();
  if (now - looked_ < std::chrono::milliseconds{100}) return false;
  looked_ = now;
  return true;
}

void Line::check(int code) {
  if (code == MPI_SUCCESS || !error_.empty()) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  error_ = base::format("MPI could not reach it: {}", text.data());
}

void Line::send(const void* data, std::size_t bytes, int tag, MPI_Request& request) {
  request = MPI_REQUEST_NULL;
  if (!error_.empty()) return;
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer_, tag, comm_, &request));
}

void Line::receive(void* data, std::size_t bytes, int tag, MPI_Request& request) {
  request = MPI_REQUEST_NULL;
  if (!error_.empty()) return;
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer_, tag, comm_, &request));
}

bool Line::done(MPI_Request& request) {
  if (!error_.empty()) return false;
  int flag = 0;
  check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
  if (!error_.empty() || flag == 0) return false;
  waiter_->stir();
  return true;
}

bool Line::withdraw(MPI_Request& request) {
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
  move_on();
}

std::uint64_t Outbox::sent() {
  move_on();
  // Both complete in order here, so all before the oldest outstanding one's message is sent. MPI
  // may have to ask the receiver before it sends a frame, too, and moves only while it is asked
  // itself.
  const std::uint64_t whole =
      segments_done_ < segments_posted_ ? segments_[segments_done_ % kSegments].message : posted_;
  return std::min(whole, frames_done_);
}

bool Outbox::idle() {
  move_on();
  return first_ == queue_.size() && segments_done_ == segments_posted_ &&
         frames_done_ == header_for_;
}

void Outbox::move_on() {
  while (frames_done_ < header_for_ && line_->done(frame_requests_[frames_done_ % kHeaders])) {
    ++frames_done_;
  }
  while (segments_done_ < segments_posted_ &&
         line_->done(segments_[segments_done_ % kSegments].request)) {
    ++segments_done_;
  }
  while (first_ < queue_.size() && line_->error().empty()) {
    const Outgoing& message = queue_[first_];
    if (header_for_ == posted_ && !send_header(message)) return;
    while (offset_ < message.header.bytes) {
      if (segments_posted_ - segments_done_ == kSegments) return;
      MemoryBlock& segment = segments_[segments_posted_ % kSegments];
      const std::size_t bytes = segment_bytes(message.header.bytes, offset_);
      segment.message = posted_;
      line_->send(message.data + offset_, bytes, kPayloadTag, segment.request);
      ++segments_posted_;
      offset_ += bytes;
    }
    pop();
  }
}

// False: there is no room for another header.
bool Outbox::send_header(const Outgoing& message) {
  if (frames_ == nullptr) frames_ = std::make_unique<std::array<Frame, kHeaders>>();
  if (header_for_ - frames_done_ == kHeaders) return false;
  const std::size_t slot = header_for_ % kHeaders;
  Frame& frame = (*frames_)[slot];
  frame.header = message.header;
  offset_ = inline_bytes(message.header);
  if (offset_ > 0) std::memcpy(frame.payload.data(), message.data, offset_);
  line_->send(&frame, sizeof(MessageHeader) + offset_, kHeaderTag, frame_requests_[slot]);
  ++header_for_;
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

void Inbox::post_header(std::uint64_t message) {
  line_->receive(&frame(message), sizeof(Frame), kHeaderTag, frame_requests_[message % kHeaders]);
}

const MessageHeader* Inbox::incoming() {
  if (frames_ == nullptr) {
    frames_ = std::make_unique<std::array<Frame, kHeaders>>();
    for (std::uint64_t message = 0; message < kHeaders; ++message) post_header(message);
  }
  while (seen_ - read_ < kHeaders && line_->done(frame_requests_[seen_ % kHeaders])) {
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
        line_->receive(&staging_[slot * kSegmentBytes], part, kPayloadTag, segment_requests_[slot]);
        ++segments_posted_;
        posting_offset_ += part;
      }
    }
    ++posting_;
    posting_offset_ = 0;
  }
}

std::span<const std::byte> Inbox::arrived() {
  const Frame& present = frame(read_);
  const std::uint64_t bytes = present.header.bytes;
  const std::size_t first = inline_bytes(present.header);
  if (offset_ < first || bytes == first)
    return std::span{present.payload}.first(first).subspan(offset_);
  const std::size_t slot = segments_read_ % kSegments;
  // A request that is done is null, and done again.
  if (segments_read_ == segments_posted_ || !line_->done(segment_requests_[slot])) return {};
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
  post_header(read_ + kHeaders);
  ++read_;
}

bool Inbox::close() {
  if (frames_ == nullptr || closed_) return true;
  closed_ = true;
  for (std::uint64_t message = seen_; message < read_ + kHeaders; ++message) {
    closed_ = line_->withdraw(frame_requests_[message % kHeaders]) && closed_;
  }
  for (std::uint64_t segment = segments_read_; segment < segments_posted_; ++segment) {
    closed_ = line_->withdraw(segment_requests_[segment % kSegments]) && closed_;
  }
  return closed_;
}

void NoteBox::tell(const StatusUpdate& note) {
  newest_.note = note;
  newest_.news = 1;
  waiting_ = true;
  idle();
}

void NoteBox::say_goodbye(std::uint64_t messages) {
  newest_.messages = messages;
  newest_.pid = getpid();
  waiting_ = true;
  idle();
}

bool NoteBox::idle() {
  if (send_request_ != MPI_REQUEST_NULL && !line_->done(send_request_)) return false;
  if (!waiting_) return true;
  sending_ = newest_;
  newest_.news = 0;
  waiting_ = false;
  line_->send(&sending_, sizeof sending_, kNoteTag, send_request_);
  return false;
}

void NoteBox::listen() {
  if (closed_ || heard_.pid != 0) return;
  if (!listening_) {
    listening_ = true;
    line_->receive(&receiving_, sizeof receiving_, kNoteTag, receive_request_);
  }
  while (line_->done(receive_request_)) {
    fresh_ = fresh_ || receiving_.news != 0;
    heard_ = receiving_;
    if (heard_.pid != 0) return;
    line_->receive(&receiving_, sizeof receiving_, kNoteTag, receive_request_);
  }
}

bool NoteBox::hear(StatusUpdate& note) {
  listen();
  if (!fresh_) return false;
  fresh_ = false;
  note = heard_.note;
  return true;
}

bool NoteBox::goodbye_heard() {
  listen();
  return heard_.pid != 0;
}

bool NoteBox::close() {
  closed_ = line_->withdraw(receive_request_);
  return closed_;
}

}  // namespace sluice::transport

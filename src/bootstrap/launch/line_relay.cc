#include "bootstrap/launch/line_relay.h"

#include <poll.h>

#include <array>
#include <cerrno>

namespace sluice::bootstrap {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // someone else made our output non-blocking
      pollfd polled{fd, POLLOUT, 0};
      poll(&polled, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

LineRelay::Read LineRelay::read_some() {
  std::array<char, 1 << 16> part;
  while (true) {
    const ssize_t count = read(source_.number(), part.data(), part.size());
    if (count > 0) {
      pending_.append(part.data(), static_cast<std::size_t>(count));
      return Read::Some;
    }
    if (count < 0 && errno == EINTR) continue;
    return count < 0 && errno == EAGAIN ? Read::NothingNow : Read::End;
  }
}

bool LineRelay::pass_on() {
  if (!open()) return true;
  if (read_some() != Read::End) return write_lines(false);
  source_.reset();
  return write_lines(true);
}

bool LineRelay::finish() {
  bool written = true;
  while (open() && written && read_some() == Read::Some) written = write_lines(false);
  source_.reset();
  return write_lines(true) && written;
}

bool LineRelay::write_lines(bool also_partial) {
  std::string out;
  std::string_view rest = pending_;
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;
       rest.remove_prefix(end + 1)) {
    keep(rest.substr(0, end));
    out.append(prefix_).append(rest.substr(0, end + 1));
  }
  if (!rest.empty() && (also_partial || rest.size() > kLongestLine)) {
    keep(rest);
    out.append(prefix_).append(rest).append("\n");
    rest = {};
  }
  pending_.erase(0, pending_.size() - rest.size());
  return write_all(target_, out);
}

void LineRelay::keep(std::string_view line) {
  constexpr std::size_t kKeptBytes = 2000;  // of one line
  if (kept_lines_ == 0) return;
  if (last_lines_.size() == kept_lines_) last_lines_.pop_front();
  last_lines_.emplace_back(line.substr(0, kKeptBytes));
}

}  // namespace sluice::bootstrap

// line_relay.h - passes on what a process writes, in whole lines, each with a prefix.
//
// Bytes that do not end a line wait for the rest of it, so lines of several processes never mix. A
// line of more than kLongestLine is passed on in pieces, so memory is bounded whatever is written.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/file.h"

namespace sluice::bootstrap {

class LineRelay {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  // Reads from `source`, which must not block; writes to `target`. Keeps that many of the last
  // lines.
  LineRelay(base::Fd source, int target, std::string prefix, std::size_t kept_lines)
      : source_{std::move(source)},
        target_{target},
        prefix_{std::move(prefix)},
        kept_lines_{kept_lines} {}

  bool open() const { return source_.open(); }
  int source() const { return source_.number(); }

  // Passes on what can be read now, some at a time. False: the target can no longer be written.
  bool pass_on();
  // The same to the last byte there is, a line without an end included; then closes the source.
  bool finish();

  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  enum class Read : std::uint8_t { Some, NothingNow, End };
  Read read_some();
  bool write_lines(bool also_partial);
  void keep(std::string_view line);

  base::Fd source_;
  int target_;
  std::string prefix_;
  std::size_t kept_lines_;
  std::string pending_;  // read, not yet passed on
  std::deque<std::string> last_lines_;
};

// Blocks; false where it cannot be written.
bool write_all(int fd, std::string_view text);

}  // namespace sluice::bootstrap

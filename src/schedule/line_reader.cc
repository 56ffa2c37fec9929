#include "schedule/line_reader.h"

#include "base/format.h"
#include "schedule/text_limits.h"

namespace sluice::schedule {
namespace {
constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
}

bool LineReader::next() {
  if (!status_.ok()) return false;
  std::size_t searched = 0;  // bytes from begin_ known to hold no newline
  std::size_t length = std::string::npos;
  while (true) {
    const std::size_t newline = buffer_.find('\n', begin_ + searched);
    searched = buffer_.size() - begin_;
    if (newline != std::string::npos) length = newline - begin_;
    const std::size_t at_least = newline != std::string::npos ? length : searched;
    if (at_least > static_cast<std::size_t>(kMaxLineBytes)) {
      ++number_;
      return fail(kMaxLineBytes + 1,
                  base::format("the line is longer than {} bytes", kMaxLineBytes));
    }
    if (newline != std::string::npos) break;
    if (!fill()) {
      if (!status_.ok() || searched == 0) return false;
      length = searched;
      ended_by_newline_ = false;
      break;
    }
  }
  if (++number_ > kMaxLines) {
    return fail(1, base::format("the file has more than {} lines", kMaxLines));
  }
  line_ = std::string_view{buffer_}.substr(begin_, length);
  begin_ += length + (ended_by_newline_ ? 1 : 0);
  return true;
}

// Reads another block behind what is left of the buffer; false at the end of the input.
bool LineReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kBlockBytes);
  in_.read(buffer_.data() + kept, static_cast<std::streamsize>(kBlockBytes));
  const auto got = static_cast<std::size_t>(in_.gcount());
  buffer_.resize(kept + got);
  bytes_ += static_cast<std::int64_t>(got);
  if (in_.bad() || (in_.fail() && !in_.eof())) {
    ++number_;
    return fail(1, "the input cannot be read");
  }
  if (bytes_ > kMaxTextBytes) {
    ++number_;
    return fail(1, base::format("the file is longer than {} bytes", kMaxTextBytes));
  }
  return got > 0;
}

bool LineReader::fail(std::int64_t column, std::string_view what) {
  status_ =
      Status{Code::InvalidInput, base::format("line {}, column {}: {}", number_, column, what)};
  return false;
}

}  // namespace sluice::schedule

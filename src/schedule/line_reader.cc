#include "schedule/line_reader.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "schedule/text_form.h"

namespace sluice::schedule {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name_part(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == ':';
}

// 0 to 15, or 16 if it is not a digit. Lower case only, so that one hash has one spelling.
unsigned hexadecimal_digit(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  return c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10 : 16;
}

}  // namespace

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

// Appends another block to the rest of the buffer. Returns false at the end of the input.
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

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= static_cast<std::size_t>(kMaxNameBytes) &&
         is_letter(text.front()) && std::all_of(text.begin(), text.end(), is_name_part);
}

LineCursor::LineCursor(std::string_view line, std::int64_t number, std::string_view end)
    : line_{line.substr(0, line.find('#'))}, number_{number}, end_{end} {
  while (!line_.empty() && is_blank(line_.back())) line_.remove_suffix(1);
  go_past(0);
  last_ = position_;
}

std::string_view LineCursor::peek_word() const {
  const std::string_view rest = line_.substr(position_);
  if (rest.empty() || !is_letter(rest.front())) return {};
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_name_part);
  return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
}

bool LineCursor::accept(std::string_view token) {
  if (!ok()) return false;
  const bool found =
      is_letter(token.front()) ? peek_word() == token : line_.substr(position_).starts_with(token);
  if (found) go_past(token.size());
  return found;
}

bool LineCursor::accept_char(char c) {
  if (!ok() || at_end() || line_[position_] != c) return false;
  go_past(1);
  return true;
}

void LineCursor::expect(std::string_view token) {
  if (!accept(token)) fail_expecting(base::quote(token));
}

void LineCursor::expect_end() {
  if (!at_end()) fail_expecting("the end of the line");
}

std::string_view LineCursor::word(std::string_view what) {
  const std::string_view word = peek_word();
  if (word.empty()) fail_expecting(what);
  if (!ok()) return {};
  go_past(word.size());
  return word;
}

std::size_t LineCursor::one_of(std::span<const std::string_view> words) {
  const std::string_view word = peek_word();
  const auto match = std::find(words.begin(), words.end(), word);
  if (match == words.end()) {
    const std::string_view nearest = word.empty() ? word : base::nearest_name(word, words);
    const std::string hint = nearest.empty() ? "" : base::format(" (did you mean {}?)", nearest);
    fail_at(position_, base::format("expected {}, found {}{}", either(words), found(), hint));
  }
  if (!ok()) return 0;
  go_past(word.size());
  return static_cast<std::size_t>(match - words.begin());
}

std::int64_t LineCursor::digits(std::string_view what, std::int64_t least, std::int64_t most) {
  const std::string_view rest = line_.substr(position_);
  std::size_t length = 0;
  std::int64_t value = 0;
  for (; length < rest.size() && is_digit(rest[length]); ++length) {
    // Stops adding digits once the value is out of bounds: it must not overflow.
    if (value <= most) value = value * 10 + (rest[length] - '0');
  }
  if (length == 0 || value < least || value > most) {
    fail_expecting(least == most ? base::format("{} (only {})", what, least)
                                 : base::format("{} from {} to {}", what, least, most));
  }
  if (!ok()) return 0;
  go_past(length);
  return value;
}

std::int64_t LineCursor::number(std::string_view what, std::int64_t least, std::int64_t most) {
  const std::size_t begin = position_;
  const std::int64_t value = digits(what, least, most);
  const std::size_t end = std::min(line_.find_first_not_of("0123456789", begin), line_.size());
  if (ok() && end < line_.size() && is_name_part(line_[end])) {
    position_ = begin;
    fail_expecting(what);
  }
  return ok() ? value : 0;
}

std::uint64_t LineCursor::hexadecimal(std::string_view what, std::size_t digits) {
  const std::string_view rest = line_.substr(position_);
  std::size_t length = 0;
  std::uint64_t value = 0;
  for (; length < rest.size() && hexadecimal_digit(rest[length]) < 16; ++length) {
    value = value << 4 | hexadecimal_digit(rest[length]);
  }
  const bool continues = length < rest.size() && is_name_part(rest[length]);
  if (length != digits || continues) fail_expecting(what);
  if (!ok()) return 0;
  go_past(length);
  return value;
}

void LineCursor::fail_expecting(std::string_view expected) {
  fail_at(position_, base::format("expected {}, found {}", expected, found()));
}

std::string LineCursor::last_location() const {
  return base::format("line {}, column {}", number_, last_ + 1);
}

void LineCursor::fail_at(std::size_t position, std::string_view message) {
  if (!ok()) return;
  status_ = Status{Code::InvalidInput,
                   base::format("line {}, column {}: {}", number_, position + 1, message)};
}

void LineCursor::go_past(std::size_t bytes) {
  last_ = position_;
  position_ += bytes;
  while (position_ < line_.size() && is_blank(line_[position_])) ++position_;
}

// The next token for a message, up to the next blank.
std::string LineCursor::found() const {
  if (at_end()) return std::string{end_};
  const std::string_view rest = line_.substr(position_);
  const auto end = std::find_if(rest.begin(), rest.end(), is_blank);
  return base::quote(rest.substr(0, static_cast<std::size_t>(end - rest.begin())));
}

std::string either(std::span<const std::string_view> words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 < words.size() ? ", " : " or ";
    list += words[i];
  }
  return list;
}

}  // namespace sluice::schedule

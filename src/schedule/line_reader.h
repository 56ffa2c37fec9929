// line_reader.h - reads untrusted text. LineReader returns its lines; their length and the memory
// are bounded. LineCursor reads the tokens of one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <string_view>

#include "sluice/status.h"

namespace sluice::schedule {

// Not thread-safe. Use one reader per stream.
class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_{in} {}

  // Reads the next line. False at the end of the input, or if status() is an error: a line or the
  // input is longer than text_form.h allows, or the stream cannot be read.
  bool next();

  std::string_view text() const { return line_; }  // without its newline; valid until next()
  std::int64_t number() const { return number_; }  // of this line; the first is 1
  bool ended_by_newline() const { return ended_by_newline_; }
  const Status& status() const { return status_; }

 private:
  bool fill();
  bool fail(std::int64_t column, std::string_view what);

  std::istream& in_;
  std::string buffer_;
  std::size_t begin_ = 0;   // of the bytes in buffer_ that next() has not returned yet
  std::int64_t bytes_ = 0;  // read so far
  std::int64_t number_ = 0;
  bool ended_by_newline_ = true;
  std::string_view line_;
  Status status_;
};

// Tokens are words, numbers and punctuation. Blanks between them are ignored, and '#' begins a
// comment. The first unexpected token becomes the status, with line and column. From then on every
// read fails and returns 0, so a caller may read a whole phrase and then call ok() once.
class LineCursor {
 public:
  // `end` is the name of the end of the line in messages.
  LineCursor(std::string_view line, std::int64_t number,
             std::string_view end = "the end of the line");

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  bool at_end() const { return position_ == line_.size(); }
  std::string_view peek_word() const;  // "" if the next token is not a word

  bool accept(std::string_view token);  // reads it if it is the next token
  bool accept_char(char c);             // the same, whatever character follows it
  void expect(std::string_view token);  // a word or punctuation
  void expect_end();

  // Reads a word. The message for anything else is "expected", then `what`.
  std::string_view word(std::string_view what);

  // Reads one of `words` and returns its index. The message for another word suggests the nearest.
  std::size_t one_of(std::span<const std::string_view> words);

  // Reads a whole number in [least, most]. For any other it fails: "expected a rank from 0 to 3".
  // REQUIRES: most < 2^59.
  std::int64_t number(std::string_view what, std::int64_t least, std::int64_t most);

  // Like number(), but a letter may follow directly: the 2 of "2x4".
  std::int64_t digits(std::string_view what, std::int64_t least, std::int64_t most);

  // Reads exactly `digits` hexadecimal digits.
  std::uint64_t hexadecimal(std::string_view what, std::size_t digits);

  std::string last_location() const;  // of the last token: "line 2, column 6"

  // For errors that the caller finds: at the last token, or at the next one.
  void fail(std::string_view message) { fail_at(last_, message); }
  void fail_expecting(std::string_view expected);

 private:
  void fail_at(std::size_t position, std::string_view message);
  void go_past(std::size_t bytes);
  std::string found() const;

  std::string_view line_;
  std::int64_t number_;
  std::string_view end_;
  std::size_t position_ = 0;  // of the next token
  std::size_t last_ = 0;      // of the last token
  Status status_;
};

// "a, b or c".
std::string either(std::span<const std::string_view> words);

}  // namespace sluice::schedule

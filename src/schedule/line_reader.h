// line_reader.h - reads an input that may be anything: LineReader hands out its lines, in bounded
// memory and of bounded length; LineCursor reads one of them from left to right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <string_view>

#include "sluice/status.h"

namespace sluice::schedule {

// Thread-safety: none; one reader a stream.
class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_{in} {}

  // Moves on to the next line; false at the end of the input or when status() is no longer ok: a
  // line, or the input, is longer than text_form.h allows, or the stream cannot be read.
  bool next();

  std::string_view text() const { return line_; }  // without its newline; valid until next()
  std::int64_t number() const { return number_; }  // of this line, the first being 1
  bool ended_by_newline() const { return ended_by_newline_; }
  const Status& status() const { return status_; }

 private:
  bool fill();
  bool fail(std::int64_t column, std::string_view what);

  std::istream& in_;
  std::string buffer_;
  std::size_t begin_ = 0;   // of what has been read and not yet handed out
  std::int64_t bytes_ = 0;  // read in all
  std::int64_t number_ = 0;
  bool ended_by_newline_ = true;
  std::string_view line_;
  Status status_;
};

// Tokens are words, numbers and punctuation; blanks between them do not matter, a '#' ends the
// line. The first thing that is not as expected is kept as the status, with line and column; from
// there on every read fails at once and yields 0, so a caller may read a whole phrase and ask ok()
// once.
class LineCursor {
 public:
  // `end` is what messages call the place behind the last token.
  LineCursor(std::string_view line, std::int64_t number,
             std::string_view end = "the end of the line");

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  bool at_end() const { return place_ == line_.size(); }
  std::string_view peek_word() const;  // "" when a word does not come next

  bool accept(std::string_view token);  // goes past it if it comes next
  bool accept_char(char c);             // likewise, whatever follows it
  void expect(std::string_view token);  // a word or punctuation
  void expect_end();

  // A word; `what` says in the message what it should have been.
  std::string_view word(std::string_view what);

  // The place in `words` of the word that comes next; a wrong one is told the nearest.
  std::size_t one_of(std::span<const std::string_view> words);

  // A whole number in [least, most]: "expected a rank from 0 to 3". REQUIRES: most < 2^59.
  std::int64_t number(std::string_view what, std::int64_t least, std::int64_t most);

  // Like number(), but a letter may follow at once: the 2 of "2x4".
  std::int64_t digits(std::string_view what, std::int64_t least, std::int64_t most);

  // `digits` hexadecimal digits, exactly.
  std::uint64_t hexadecimal(std::string_view what, std::size_t digits);

  std::string last_place() const;  // "line 2, column 6": of the token just read

  // Failures found by the caller: at the token just read, or at the one that comes next.
  void fail(std::string_view message) { fail_at(last_, message); }
  void fail_expecting(std::string_view expected);

 private:
  void fail_at(std::size_t place, std::string_view message);
  void go_past(std::size_t bytes);
  std::string found() const;

  std::string_view line_;
  std::int64_t number_;
  std::string_view end_;
  std::size_t place_ = 0;  // of the next token
  std::size_t last_ = 0;   // of the token read last
  Status status_;
};

// "a, b or c".
std::string either(std::span<const std::string_view> words);

}  // namespace sluice::schedule

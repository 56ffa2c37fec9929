// line_reader.h - lines of an input that may be anything: bounded memory, bounded length.
//
// Thread-safety: none; one reader a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "sluice/status.h"

namespace sluice::schedule {

class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_{in} {}

  // Moves on to the next line; false at the end of the input or when status() is no longer ok: a
  // line, or the input, is longer than text_limits.h allows, or the stream cannot be read.
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

}  // namespace sluice::schedule

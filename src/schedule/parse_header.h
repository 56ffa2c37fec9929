// parse_header.h - reads the header of the text form: the fields before the first rank line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/line_reader.h"
#include "sluice/schedule.h"

namespace sluice::schedule {

struct ScheduleHeader {
  std::optional<std::uint64_t> hash;
  std::string hash_place;  // "line 2, column 6"
  std::string algorithm;
  Shape shape;
  int chunks = 1;
  std::vector<std::int64_t> weights;  // empty: not given
  bool ordered = false;
  std::vector<std::string> scratch;
};

class HeaderParser {
 public:
  void read_line(LineCursor& line);

  // Fails at the line's next token if something is still missing: a rank line, or the end of the
  // file, is then out of place.
  void expect_complete(LineCursor& line) const;

  const ScheduleHeader& header() const { return header_; }

 private:
  struct Field {
    std::string_view keyword;
    bool required;
    void (HeaderParser::*read)(LineCursor&);
  };
  static const Field kFields[11];  // in the order in which they must stand

  bool needed(const Field& field) const;
  std::vector<std::string_view> words_to_come() const;

  void read_hash(LineCursor& line);
  void read_algorithm(LineCursor& line);
  void read_collective(LineCursor& line);
  void read_ranks(LineCursor& line);
  void read_chunks(LineCursor& line);
  void read_weights(LineCursor& line);
  void read_grid(LineCursor& line);
  void read_root(LineCursor& line);
  void read_segments(LineCursor& line);
  void read_ordered(LineCursor& line);
  void read_scratch(LineCursor& line);

  ScheduleHeader header_;
  std::size_t next_field_ = 0;
};

}  // namespace sluice::schedule

#include "schedule/parse_header.h"

#include <iterator>
#include <span>

#include "base/format.h"
#include "base/text.h"
#include "schedule/text_form.h"

namespace sluice::schedule {

const HeaderParser::Field HeaderParser::kFields[11] = {
    {"hash", false, &HeaderParser::read_hash},
    {"algorithm", true, &HeaderParser::read_algorithm},
    {"collective", true, &HeaderParser::read_collective},
    {"ranks", true, &HeaderParser::read_ranks},
    {"chunks", true, &HeaderParser::read_chunks},
    {"weights", false, &HeaderParser::read_weights},
    {"grid", false, &HeaderParser::read_grid},
    {"root", false, &HeaderParser::read_root},
    {"segments", false, &HeaderParser::read_segments},
    {"ordered", false, &HeaderParser::read_ordered},
    {"scratch", false, &HeaderParser::read_scratch},
};

bool HeaderParser::needed(const Field& field) const {
  return field.required || (field.keyword == "root" && has_root(header_.shape.collective));
}

// Up to the next one that must be there; when none must, a rank line may come as well.
std::vector<std::string_view> HeaderParser::words_to_come() const {
  std::vector<std::string_view> words;
  for (const Field& field : std::span{kFields}.subspan(next_field_)) {
    words.push_back(field.keyword);
    if (needed(field)) return words;
  }
  words.push_back(kRankWord);
  return words;
}

void HeaderParser::read_line(LineCursor& line) {
  const std::vector<std::string_view> words = words_to_come();
  const std::size_t chosen = line.one_of(words);
  if (!line.ok()) return;
  const Field& field = kFields[next_field_ + chosen];
  next_field_ += chosen + 1;
  (this->*field.read)(line);
}

void HeaderParser::expect_complete(LineCursor& line) const {
  const std::vector<std::string_view> words = words_to_come();
  if (words.back() != kRankWord) line.fail_expecting(either(words));
}

void HeaderParser::read_hash(LineCursor& line) {
  header_.hash = line.hexadecimal("a hash of 16 hexadecimal digits", 16);
  header_.hash_place = line.last_place();
}

void HeaderParser::read_algorithm(LineCursor& line) {
  const std::string_view name = line.word("an algorithm's name");
  if (line.ok() && !is_name(name)) {
    line.fail(base::format("a name has at most {} bytes", kMaxNameBytes));
  }
  header_.algorithm = name;
}

void HeaderParser::read_collective(LineCursor& line) {
  std::vector<std::string_view> names;
  for (const Collective collective : kCollectives) names.push_back(name(collective));
  header_.shape.collective = kCollectives[line.one_of(names)];
}

void HeaderParser::read_ranks(LineCursor& line) {
  header_.shape.ranks = static_cast<int>(line.number("a number of ranks", 1, kMaxRanks));
}

void HeaderParser::read_chunks(LineCursor& line) {
  header_.chunks = static_cast<int>(line.number("a number of chunks", 1, kMaxChunks));
  if (std::int64_t{header_.chunks} * header_.shape.ranks > kMaxRanksTimesChunks) {
    line.fail(base::format("ranks times chunks may be at most {}", kMaxRanksTimesChunks));
  }
}

void HeaderParser::read_weights(LineCursor& line) {
  std::int64_t left = kMaxTotalWeight;
  for (int chunk = 0; chunk < header_.chunks && line.ok(); ++chunk) {
    // Every chunk still to come needs a weight of at least one.
    const std::int64_t most = left - (header_.chunks - chunk - 1);
    header_.weights.push_back(line.number(base::format("the weight of chunk {}", chunk), 1, most));
    left -= header_.weights.back();
  }
}

void HeaderParser::read_grid(LineCursor& line) {
  std::vector<int>& grid = header_.shape.grid;
  std::int64_t left = header_.shape.ranks;
  const auto node = [&] {
    grid.push_back(static_cast<int>(line.digits("a node's number of ranks", 1, left)));
    left -= grid.back();
  };
  node();
  if (line.accept_char('x')) {
    const int nodes = grid.front();
    const auto each = line.number("a node's number of ranks", 1, header_.shape.ranks);
    grid.assign(static_cast<std::size_t>(nodes), static_cast<int>(each));
    left = header_.shape.ranks - nodes * each;
  }
  while (left > 0 && line.accept("+")) node();
  if (line.ok() && left != 0) {
    line.fail(base::format("the grid does not hold {} ranks", header_.shape.ranks));
  }
}

void HeaderParser::read_root(LineCursor& line) {
  if (!has_root(header_.shape.collective)) {
    line.fail(base::format("{} has no root", name(header_.shape.collective)));
  }
  header_.shape.root = static_cast<Rank>(line.number("a rank", 0, header_.shape.ranks - 1));
}

void HeaderParser::read_segments(LineCursor& line) {
  header_.shape.segments = static_cast<int>(line.number("a number of segments", 1, kMaxSegments));
}

void HeaderParser::read_ordered(LineCursor&) { header_.ordered = true; }

void HeaderParser::read_scratch(LineCursor& line) {
  do {
    header_.scratch.emplace_back(line.word("a scratch buffer's name"));
    if (line.ok() && !are_scratch_names(header_.scratch)) {
      line.fail(
          base::format("expected another name, of at most {} bytes, for each scratch buffer, "
                       "found {}",
                       kMaxNameBytes, base::quote(header_.scratch.back())));
    }
    if (line.ok() && std::ssize(header_.scratch) > kMaxScratch) {
      line.fail(base::format("there may be at most {} scratch buffers", kMaxScratch));
    }
  } while (line.ok() && !line.at_end());
}

}  // namespace sluice::schedule

// parse.cc - reads the text form of a schedule, line by line.
//
// A chunk, rank or buffer that does not exist is an error here, with line and column. verify()
// checks whether the schedule is right.
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "schedule/line_reader.h"
#include "schedule/text_form.h"
#include "sluice/schedule.h"

namespace sluice::schedule {
namespace {

constexpr std::string_view kEndOfFile = "the end of the file";

struct ScheduleHeader {
  std::optional<std::uint64_t> hash;
  std::string hash_location;  // "line 2, column 6"
  std::string algorithm;
  Shape shape;
  int chunks = 1;
  std::vector<std::int64_t> weights;  // empty: not given
  bool ordered = false;
  bool equal_chunks = false;
  std::vector<std::string> scratch;
  std::vector<int> scratch_chunks;
};

// Reads the fields before the first rank line.
class HeaderParser {
 public:
  void read_line(LineCursor& line) {
    const std::vector<std::string_view> words = next_words();
    const std::size_t chosen = line.one_of(words);
    if (!line.ok()) return;
    const Field& field = kFields[next_field_ + chosen];
    next_field_ += chosen + 1;
    (this->*field.read)(line);
  }

  // Call this at the first rank line or at the end of the file. If a field is missing, it fails at
  // the next token of the line.
  void expect_complete(LineCursor& line) const {
    const std::vector<std::string_view> words = next_words();
    if (words.back() != kRankWord) line.fail_expecting(either(words));
  }

  const ScheduleHeader& header() const { return header_; }

 private:
  struct Field {
    std::string_view keyword;
    bool required;
    void (HeaderParser::*read)(LineCursor&);
  };

  bool is_required(const Field& field) const {
    return field.required || (field.keyword == "root" && has_root(header_.shape.collective));
  }

  // The fields that may come next, up to the first required one. If none is required, a rank line
  // may come next as well.
  std::vector<std::string_view> next_words() const {
    std::vector<std::string_view> words;
    for (const Field& field : std::span{kFields}.subspan(next_field_)) {
      words.push_back(field.keyword);
      if (is_required(field)) return words;
    }
    words.push_back(kRankWord);
    return words;
  }

  void read_hash(LineCursor& line) {
    header_.hash = line.hexadecimal("a hash of 16 hexadecimal digits", 16);
    header_.hash_location = line.last_location();
  }

  void read_algorithm(LineCursor& line) {
    const std::string_view name = line.word("an algorithm's name");
    if (line.ok() && !is_name(name)) {
      line.fail(base::format("a name has at most {} bytes", kMaxNameBytes));
    }
    header_.algorithm = name;
  }

  void read_collective(LineCursor& line) {
    std::vector<std::string_view> names;
    for (const Collective collective : kCollectives) names.push_back(name(collective));
    header_.shape.collective = kCollectives[line.one_of(names)];
  }

  void read_ranks(LineCursor& line) {
    header_.shape.ranks = static_cast<int>(line.number("a number of ranks", 1, kMaxRanks));
  }

  void read_chunks(LineCursor& line) {
    header_.chunks = static_cast<int>(line.number("a number of chunks", 1, kMaxChunks));
    if (std::int64_t{header_.chunks} * header_.shape.ranks > kMaxRanksTimesChunks) {
      line.fail(base::format("ranks times chunks may be at most {}", kMaxRanksTimesChunks));
    }
  }

  void read_weights(LineCursor& line) {
    std::int64_t left = kMaxTotalWeight;
    for (int chunk = 0; chunk < header_.chunks && line.ok(); ++chunk) {
      // Every later chunk needs a weight of at least one.
      const std::int64_t most = left - (header_.chunks - chunk - 1);
      header_.weights.push_back(
          line.number(base::format("the weight of chunk {}", chunk), 1, most));
      left -= header_.weights.back();
    }
  }

  void read_grid(LineCursor& line) {
    std::vector<int>& grid = header_.shape.grid;
    std::int64_t left = header_.shape.ranks;
    const auto read_node = [&] {
      grid.push_back(static_cast<int>(line.digits("a node's number of ranks", 1, left)));
      left -= grid.back();
    };
    read_node();
    if (line.accept_char('x')) {
      const int nodes = grid.front();
      const auto each = line.number("a node's number of ranks", 1, header_.shape.ranks);
      grid.assign(static_cast<std::size_t>(nodes), static_cast<int>(each));
      left = header_.shape.ranks - nodes * each;
    }
    while (left > 0 && line.accept("+")) read_node();
    if (line.ok() && left != 0) {
      line.fail(
          base::format("the nodes of the grid do not add up to {} ranks", header_.shape.ranks));
    }
  }

  void read_root(LineCursor& line) {
    if (!has_root(header_.shape.collective)) {
      line.fail(base::format("{} has no root", name(header_.shape.collective)));
    }
    header_.shape.root = static_cast<Rank>(line.number("a rank", 0, header_.shape.ranks - 1));
  }

  void read_segments(LineCursor& line) {
    header_.shape.segments = static_cast<int>(line.number("a number of segments", 1, kMaxSegments));
  }

  void read_ordered(LineCursor&) { header_.ordered = true; }

  void read_equal_chunks(LineCursor& line) {
    header_.equal_chunks = true;
    if (!header_.weights.empty()) line.fail("chunks with weights are not equal");
  }

  void read_scratch(LineCursor& line) {
    do {
      header_.scratch.emplace_back(line.word("a scratch buffer's name"));
      if (line.ok() && !are_scratch_names(header_.scratch)) {
        line.fail(
            base::format("expected another name, of at most {} bytes, for each scratch "
                         "buffer, found {}",
                         kMaxNameBytes, base::quote(header_.scratch.back())));
      }
      if (line.ok() && std::ssize(header_.scratch) > kMaxScratch) {
        line.fail(base::format("there may be at most {} scratch buffers", kMaxScratch));
      }
      header_.scratch_chunks.push_back(header_.chunks);
      if (header_.equal_chunks && line.accept("[")) {
        const std::int64_t most = kMaxRanksTimesChunks / header_.shape.ranks / kMaxScratch;
        header_.scratch_chunks.back() = static_cast<int>(
            line.number("a number of chunks", 1, std::max<std::int64_t>(header_.chunks, most)));
        line.expect("]");
      }
    } while (line.ok() && !line.at_end());
  }

  // In the required order.
  static constexpr Field kFields[] = {
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
      {"equal_chunks", false, &HeaderParser::read_equal_chunks},
      {"scratch", false, &HeaderParser::read_scratch},
  };

  ScheduleHeader header_;
  std::size_t next_field_ = 0;
};

class Parser {
 public:
  explicit Parser(std::istream& in) : lines_{in} {}

  Result<Schedule> parse();

 private:
  struct Progress {           // of one rank
    bool has_locals = false;  // in its current step
    bool ended = false;       // its "steps" line has been read
  };

  Status read_version();
  void end_header(LineCursor& line);
  Status check_complete() const;

  void read_rank_line(LineCursor& line);
  void go_to_step(LineCursor& line, Program& program, std::int64_t step);
  void read_operation(LineCursor& line, Program& program, Progress& progress);
  void read_local(LineCursor& line, Program& program);
  Range read_range(LineCursor& line);
  Range read_chunks(LineCursor& line, BufferId buffer);
  BufferId read_buffer(LineCursor& line);
  Rank read_rank(LineCursor& line);
  bool count_source(LineCursor& line);

  LineReader lines_;
  HeaderParser header_;
  bool in_header_ = true;
  Schedule schedule_;
  std::vector<std::string_view> buffers_;  // names by BufferId
  std::vector<Progress> progress_;         // by rank

  std::vector<std::int32_t> sources_;  // of the current line
  std::int64_t operations_ = 0;
  std::int64_t all_sources_ = 0;
  std::int64_t all_steps_ = 0;
};

Result<Schedule> Parser::parse() {
  if (Status status = read_version(); !status.ok()) return status;
  while (lines_.next()) {
    LineCursor line{lines_.text(), lines_.number()};
    if (line.at_end()) continue;
    if (in_header_ && line.peek_word() != kRankWord) {
      header_.read_line(line);
    } else {
      if (in_header_) end_header(line);
      if (line.ok()) read_rank_line(line);
    }
    line.expect_end();
    if (!line.ok()) return line.status();
  }
  if (!lines_.status().ok()) return lines_.status();
  if (in_header_) {
    LineCursor end{"", lines_.number() + 1, kEndOfFile};
    end_header(end);
    if (!end.ok()) return end.status();
  }
  if (Status status = check_complete(); !status.ok()) return status;
  return std::move(schedule_);
}

Status Parser::read_version() {
  const bool any = lines_.next();
  if (!lines_.status().ok()) return lines_.status();
  LineCursor line = any ? LineCursor{lines_.text(), 1} : LineCursor{"", 1, kEndOfFile};
  line.expect("sluice-schedule");
  line.number("a version that this program reads", kTextVersion, kTextVersion);
  line.expect_end();
  return line.status();
}

void Parser::end_header(LineCursor& line) {
  header_.expect_complete(line);
  if (!line.ok()) return;
  in_header_ = false;
  const ScheduleHeader& header = header_.header();
  const auto ranks = static_cast<std::size_t>(header.shape.ranks);
  const Chunking chunking =
      header.weights.empty() ? Chunking{header.chunks} : Chunking{header.weights};
  schedule_ = {
      header.algorithm, header.shape, header.ordered,
      std::vector<Program>(ranks, Program{chunking, header.scratch, header.scratch_chunks}),
      header.equal_chunks};
  buffers_.push_back(kUserBufferName);
  buffers_.insert(buffers_.end(), header.scratch.begin(), header.scratch.end());
  progress_.resize(ranks);
}

// A file that was cut short has a wrong hash. If it has no hash, its last line has no newline,
// unless it was cut between two lines.
Status Parser::check_complete() const {
  const ScheduleHeader& header = header_.header();
  if (!header.hash && !lines_.ended_by_newline()) {
    return {Code::InvalidInput,
            base::format("line {}, column {}: the last line does not end with a newline, so the "
                         "file may be cut short; if it is complete, add the newline",
                         lines_.number(), lines_.text().size() + 1)};
  }
  const std::uint64_t hash = header.hash ? hash_schedule(schedule_) : 0;
  if (header.hash && hash != *header.hash) {
    return {Code::InvalidInput,
            base::format("{}: the file has hash {:016x}, but its schedule has {:016x}: it was cut "
                         "short or changed; if you meant the change, remove the hash line",
                         header.hash_location, *header.hash, hash)};
  }
  return {};
}

void Parser::read_rank_line(LineCursor& line) {
  line.expect(kRankWord);
  const auto rank = static_cast<std::size_t>(read_rank(line));
  Program& program = schedule_.programs[rank];
  Progress& progress = progress_[rank];
  if (line.ok() && progress.ended) {
    line.fail(base::format("rank {} has ended with its steps line", rank));
  }

  constexpr std::string_view kStepWords[] = {"step", "steps"};
  progress.ended = line.one_of(kStepWords) == 1;
  const auto step = line.number("a step", 1, kMaxSteps);
  if (step > program.steps()) progress.has_locals = false;
  go_to_step(line, program, step);
  if (line.ok() && !progress.ended) read_operation(line, program, progress);
}

void Parser::go_to_step(LineCursor& line, Program& program, std::int64_t step) {
  if (!line.ok()) return;
  if (step < program.steps()) {
    line.fail(base::format("step {} comes after step {} of the same rank", step, program.steps()));
    return;
  }
  all_steps_ += step - program.steps();
  if (all_steps_ > kMaxAllSteps) {
    line.fail(base::format("the steps of all ranks may add up to at most {}", kMaxAllSteps));
    return;
  }
  while (program.steps() < step) program.begin_step();
}

void Parser::read_operation(LineCursor& line, Program& program, Progress& progress) {
  if (++operations_ > kMaxOperations) {
    line.fail(base::format("there may be at most {} operations", kMaxOperations));
  }
  constexpr std::string_view kVerbs[] = {"send", "copy", "reduce", "local"};
  const std::string_view verb = kVerbs[line.one_of(kVerbs)];
  if (verb == "local") {
    progress.has_locals = true;
    return read_local(line, program);
  }
  if (progress.has_locals) line.fail("the transfers of a step come before its local operations");

  const Range range = read_range(line);
  line.expect(verb == "send" ? "to" : "from");
  sources_.clear();
  do {
    const bool own = verb == "reduce" && line.accept("own");
    sources_.push_back(own ? kOwn : read_rank(line));
  } while (verb == "reduce" && count_source(line) && line.accept("+"));
  if (!line.ok()) return;
  if (verb == "send") {
    program.send(sources_.front(), range);
  } else if (verb == "copy") {
    program.receive_copy(sources_.front(), range);
  } else {
    program.receive_reduce(range, sources_);
  }
}

void Parser::read_local(LineCursor& line, Program& program) {
  constexpr std::string_view kVerbs[] = {"copy", "reduce"};
  const std::string_view verb = kVerbs[line.one_of(kVerbs)];
  const Range range = read_range(line);
  line.expect("=");
  sources_.clear();
  std::optional<std::int32_t> source_chunk;  // of the sources other than the old value
  do {
    sources_.push_back(read_buffer(line));
    const bool own = verb == "reduce" && sources_.back() == range.buffer;
    const Range read = line.accept("[") ? read_chunks(line, sources_.back())
                                        : Range{sources_.back(), range.first, range.count};
    const std::int32_t expected = own ? range.first : source_chunk.value_or(read.first);
    if (line.ok() && (read.count != range.count || read.first != expected)) {
      line.fail(
          "a local operation reads as many chunks as it writes, the same of each source but "
          "its old value");
    }
    if (!own) source_chunk = read.first;
  } while (verb == "reduce" && count_source(line) && line.accept("+"));
  if (!line.ok()) return;
  if (verb == "copy") {
    program.local_copy(range, sources_.front(), *source_chunk);
  } else {
    program.local_reduce(range, sources_, source_chunk.value_or(range.first));
  }
}

// "buffer[3]", or "buffer[6..1]": the chunks from 6 to the last, then 0 and 1.
Range Parser::read_range(LineCursor& line) {
  const BufferId buffer = read_buffer(line);
  line.expect("[");
  return read_chunks(line, buffer);
}

// The rest of a range, after its "[".
Range Parser::read_chunks(LineCursor& line, BufferId buffer) {
  const int chunks = schedule_.programs.front().chunks(buffer);
  const auto first = static_cast<std::int32_t>(line.number("a chunk", 0, chunks - 1));
  std::int32_t last = first;
  if (line.accept("..")) last = static_cast<std::int32_t>(line.number("a chunk", 0, chunks - 1));
  line.expect("]");
  const std::int32_t distance = last - first;
  return {buffer, first, 1 + (distance < 0 ? distance + chunks : distance)};
}

BufferId Parser::read_buffer(LineCursor& line) {
  return static_cast<BufferId>(line.one_of(buffers_));
}

Rank Parser::read_rank(LineCursor& line) {
  return static_cast<Rank>(line.number("a rank", 0, schedule_.shape.ranks - 1));
}

bool Parser::count_source(LineCursor& line) {
  if (++all_sources_ > kMaxSources) {
    line.fail(base::format("the sources of all reduces may add up to at most {}", kMaxSources));
  }
  return line.ok();
}

}  // namespace
}  // namespace sluice::schedule

namespace sluice {

Result<Schedule> parse_schedule(std::istream& in) { return schedule::Parser{in}.parse(); }

}  // namespace sluice

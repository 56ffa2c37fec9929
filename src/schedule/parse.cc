// parse.cc - reads the text form of a schedule, line by line.
//
// What a Program cannot hold (a chunk, rank or buffer that is not there) is refused here, with its
// line and column; whether the schedule is right is for verify() to say.

#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "schedule/line_reader.h"
#include "schedule/parse_header.h"
#include "schedule/text_form.h"
#include "sluice/schedule.h"

namespace sluice {
namespace {

constexpr std::string_view kEndOfFile = "the end of the file";

class Parser {
 public:
  explicit Parser(std::istream& in) : lines_{in} {}

  Result<Schedule> parse();

 private:
  struct Progress {           // of one rank
    bool has_locals = false;  // in its present step
    bool ended = false;       // its "steps" line has been read
  };

  Status read_version();
  void end_header(schedule::LineCursor& line);
  Status check_whole() const;

  void read_rank_line(schedule::LineCursor& line);
  void go_to_step(schedule::LineCursor& line, Program& program, std::int64_t step);
  void read_operation(schedule::LineCursor& line, Program& program, Progress& progress);
  void read_local(schedule::LineCursor& line, Program& program);
  Range read_range(schedule::LineCursor& line);
  BufferId read_buffer(schedule::LineCursor& line);
  Rank read_rank(schedule::LineCursor& line);
  bool count_source(schedule::LineCursor& line);

  schedule::LineReader lines_;
  schedule::HeaderParser header_;
  bool in_header_ = true;
  Schedule schedule_;
  int chunks_ = 1;
  std::vector<std::string_view> buffers_;  // names by BufferId
  std::vector<Progress> progress_;         // by rank

  std::vector<std::int32_t> sources_;  // of the line being read
  std::int64_t operations_ = 0;
  std::int64_t all_sources_ = 0;
  std::int64_t all_steps_ = 0;
};

Result<Schedule> Parser::parse() {
  if (Status status = read_version(); !status.ok()) return status;
  while (lines_.next()) {
    schedule::LineCursor line{lines_.text(), lines_.number()};
    if (line.at_end()) continue;
    if (in_header_ && line.peek_word() != schedule::kRankWord) {
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
    schedule::LineCursor end{"", lines_.number() + 1, kEndOfFile};
    end_header(end);
    if (!end.ok()) return end.status();
  }
  if (Status status = check_whole(); !status.ok()) return status;
  return std::move(schedule_);
}

Status Parser::read_version() {
  const bool any = lines_.next();
  if (!lines_.status().ok()) return lines_.status();
  schedule::LineCursor line =
      any ? schedule::LineCursor{lines_.text(), 1} : schedule::LineCursor{"", 1, kEndOfFile};
  line.expect("sluice-schedule");
  line.number("a version that this program reads", schedule::kTextVersion, schedule::kTextVersion);
  line.expect_end();
  return line.status();
}

void Parser::end_header(schedule::LineCursor& line) {
  header_.expect_complete(line);
  if (!line.ok()) return;
  in_header_ = false;
  const schedule::ScheduleHeader& header = header_.header();
  const auto ranks = static_cast<std::size_t>(header.shape.ranks);
  const Chunking chunking =
      header.weights.empty() ? Chunking{header.chunks} : Chunking{header.weights};
  schedule_ = {header.algorithm, header.shape, header.ordered,
               std::vector<Program>(ranks, Program{chunking, header.scratch})};
  chunks_ = header.chunks;
  buffers_.push_back(schedule::kUserBufferName);
  buffers_.insert(buffers_.end(), header.scratch.begin(), header.scratch.end());
  progress_.resize(ranks);
}

// A file that ends too early is told by its hash; without one, by a last line without an end.
Status Parser::check_whole() const {
  const schedule::ScheduleHeader& header = header_.header();
  if (!header.hash && !lines_.ended_by_newline()) {
    return {
        Code::InvalidInput,
        base::format("line {}, column {}: the last line does not end with a newline, so the file "
                     "may be cut short; add the newline if it is whole",
                     lines_.number(), lines_.text().size() + 1)};
  }
  const std::uint64_t hash = header.hash ? hash_schedule(schedule_) : 0;
  if (header.hash && hash != *header.hash) {
    return {Code::InvalidInput,
            base::format("{}: the file says hash {:016x}, but its schedule has {:016x}: it was cut "
                         "short or changed; if the change is meant, remove the hash line",
                         header.hash_place, *header.hash, hash)};
  }
  return {};
}

void Parser::read_rank_line(schedule::LineCursor& line) {
  line.expect(schedule::kRankWord);
  const auto rank = static_cast<std::size_t>(read_rank(line));
  Program& program = schedule_.programs[rank];
  Progress& progress = progress_[rank];
  if (line.ok() && progress.ended) {
    line.fail(base::format("rank {} has ended with its steps line", rank));
  }

  constexpr std::string_view kStepWords[] = {"step", "steps"};
  progress.ended = line.one_of(kStepWords) == 1;
  const auto step = line.number("a step", 1, schedule::kMaxSteps);
  if (step > program.steps()) progress.has_locals = false;
  go_to_step(line, program, step);
  if (line.ok() && !progress.ended) read_operation(line, program, progress);
}

void Parser::go_to_step(schedule::LineCursor& line, Program& program, std::int64_t step) {
  if (!line.ok()) return;
  if (step < program.steps()) {
    line.fail(base::format("step {} comes after step {} of the same rank", step, program.steps()));
    return;
  }
  all_steps_ += step - program.steps();
  if (all_steps_ > schedule::kMaxAllSteps) {
    line.fail(
        base::format("the steps of all ranks may add up to at most {}", schedule::kMaxAllSteps));
    return;
  }
  while (program.steps() < step) program.begin_step();
}

void Parser::read_operation(schedule::LineCursor& line, Program& program, Progress& progress) {
  if (++operations_ > schedule::kMaxOperations) {
    line.fail(base::format("there may be at most {} operations", schedule::kMaxOperations));
  }
  constexpr std::string_view kVerbs[] = {"send", "copy", "reduce", "local"};
  const std::string_view verb = kVerbs[line.one_of(kVerbs)];
  if (verb == "local") {
    progress.has_locals = true;
    return read_local(line, program);
  }
  if (progress.has_locals) line.fail("a step's transfers stand before its local operations");

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

void Parser::read_local(schedule::LineCursor& line, Program& program) {
  constexpr std::string_view kVerbs[] = {"copy", "reduce"};
  const std::string_view verb = kVerbs[line.one_of(kVerbs)];
  const Range range = read_range(line);
  line.expect("=");
  sources_.clear();
  do {
    sources_.push_back(read_buffer(line));
  } while (verb == "reduce" && count_source(line) && line.accept("+"));
  if (!line.ok()) return;
  if (verb == "copy") {
    program.local_copy(range, sources_.front());
  } else {
    program.local_reduce(range, sources_);
  }
}

// "buffer[3]", or "buffer[6..1]": the chunks from 6 to 1, by way of the last one and 0.
Range Parser::read_range(schedule::LineCursor& line) {
  const BufferId buffer = read_buffer(line);
  line.expect("[");
  const auto first = static_cast<std::int32_t>(line.number("a chunk", 0, chunks_ - 1));
  std::int32_t last = first;
  if (line.accept("..")) last = static_cast<std::int32_t>(line.number("a chunk", 0, chunks_ - 1));
  line.expect("]");
  const std::int32_t beyond = last - first;
  return {buffer, first, 1 + (beyond < 0 ? beyond + chunks_ : beyond)};
}

BufferId Parser::read_buffer(schedule::LineCursor& line) {
  return static_cast<BufferId>(line.one_of(buffers_));
}

Rank Parser::read_rank(schedule::LineCursor& line) {
  return static_cast<Rank>(line.number("a rank", 0, schedule_.shape.ranks - 1));
}

bool Parser::count_source(schedule::LineCursor& line) {
  if (++all_sources_ > schedule::kMaxSources) {
    line.fail(
        base::format("the sources of all reduces may add up to at most {}", schedule::kMaxSources));
  }
  return line.ok();
}

}  // namespace

Result<Schedule> parse_schedule(std::istream& in) { return Parser{in}.parse(); }

}  // namespace sluice

// print.cc - writes the text form of a schedule, and hashes it.
#include <xxhash.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "schedule/line_reader.h"
#include "schedule/text_form.h"
#include "sluice/schedule.h"

namespace sluice::schedule {
namespace {

// Finds anything that the text form cannot express. Printing would lose it, and two different
// schedules would have the same hash.
class PrintableCheck {
 public:
  explicit PrintableCheck(const Schedule& schedule) : schedule_{schedule} {}

  Status run() const {
    const Shape& shape = schedule_.shape;
    if (!is_name(schedule_.algorithm)) return not_printable("the algorithm has no valid name");
    if (std::ssize(schedule_.programs) != shape.ranks || shape.ranks < 1) {
      return not_printable("it does not have one program for each rank");
    }
    if (!has_root(shape.collective) && shape.root != 0)
      return not_printable("its collective has no root");
    if (shape.root < 0 || shape.root >= shape.ranks) return not_printable("the root is not a rank");
    if (shape.segments < 1) return not_printable("it has no segments");
    if (!grid_fits()) return not_printable("the nodes of its grid do not add up to its ranks");

    const Program& first = schedule_.programs.front();
    if (first.chunking().chunks() < 1 || !weights_are_positive(first.chunking())) {
      return not_printable("a chunk has no weight");
    }
    if (!are_scratch_names(first.scratch()))
      return not_printable("scratch names are not valid names");
    if (std::ranges::any_of(first.scratch_chunks(), [](int chunks) { return chunks < 1; }) ||
        (!first.scratch_chunks().empty() && !schedule_.equal_chunks))
      return not_printable("a scratch buffer cannot have that number of chunks");
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const Program& program = schedule_.programs[static_cast<std::size_t>(rank)];
      if (program.chunking() != first.chunking() || program.scratch() != first.scratch() ||
          program.scratch_chunks() != first.scratch_chunks()) {
        return not_printable(base::format("ranks 0 and {} differ in chunks or scratch", rank));
      }
      for (int step = 0; step < program.steps(); ++step) {
        if (!is_printable(program, step)) {
          return not_printable(
              base::format("rank {}, step {} names a rank, buffer or chunk that does not exist",
                           rank, step + 1));
        }
      }
    }
    return {};
  }

 private:
  static Status not_printable(std::string_view why) {
    return {Code::InvalidArgument, base::format("the schedule cannot be written as text: {}", why)};
  }

  bool grid_fits() const {
    std::int64_t ranks = 0;
    for (const int node : schedule_.shape.grid) {
      if (node < 1) return false;
      ranks += node;
    }
    return schedule_.shape.grid.empty() || ranks == schedule_.shape.ranks;
  }

  static bool weights_are_positive(const Chunking& chunking) {
    for (int chunk = 0; chunk < chunking.chunks(); ++chunk) {
      if (chunking.weight(chunk) < 1) return false;
    }
    return true;
  }

  bool is_printable(const Program& program, int step) const {
    const auto is_rank = [&](Rank rank) { return rank >= 0 && rank < schedule_.shape.ranks; };
    const auto is_buffer = [&](BufferId id) { return id >= 0 && id < program.buffers(); };
    const auto has_sources = [&](const Write& write, const auto& is_source) {
      const auto sources = program.sources(write);
      return !sources.empty() && (write.combine == Combine::Reduce || sources.size() == 1) &&
             std::all_of(sources.begin(), sources.end(), is_source);
    };
    return std::ranges::all_of(
               program.sends(step),
               [&](const Send& s) { return is_rank(s.peer) && program.contains(s.range); }) &&
           std::ranges::all_of(program.receives(step),
                               [&](const Write& w) {
                                 const bool own = w.combine == Combine::Reduce;
                                 return program.contains(w.range) &&
                                        has_sources(w, [&](Rank source) {
                                          return is_rank(source) || (own && source == kOwn);
                                        });
                               }) &&
           std::ranges::all_of(program.locals(step), [&](const Write& w) {
             return program.contains(w.range) && has_sources(w, is_buffer) &&
                    std::ranges::all_of(program.sources(w), [&](BufferId source) {
                      return program.contains(Program::source_range(w, source));
                    });
           });
  }

  const Schedule& schedule_;
};

// Formats into a small buffer and passes it to the sink when it is full, so that the whole text is
// never in memory.
class Printer {
 public:
  using Sink = std::function<void(std::string_view)>;

  Printer(const Schedule& schedule, Sink sink) : schedule_{schedule}, sink_{std::move(sink)} {}

  void print(std::optional<std::uint64_t> hash) {
    add("sluice-schedule {}\n", kTextVersion);
    if (hash) add("hash {:016x}\n", *hash);
    print_header();
    for (int rank = 0; rank < schedule_.shape.ranks; ++rank) print_program(rank);
    flush();
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    base::append(buffer_, format, std::forward<Args>(args)...);
    if (buffer_.size() >= kFlushBytes) flush();
  }

  void flush() {
    sink_({buffer_.data(), buffer_.size()});
    buffer_.clear();
  }

  void print_header() {
    const Shape& shape = schedule_.shape;
    const Program& first = schedule_.programs.front();
    add("algorithm {}\ncollective {}\n", schedule_.algorithm, name(shape.collective));
    add("ranks {}\nchunks {}\n", shape.ranks, first.chunking().chunks());
    if (!first.chunking().uniform()) {
      add("weights");
      for (int chunk = 0; chunk < first.chunking().chunks(); ++chunk) {
        add(" {}", first.chunking().weight(chunk));
      }
      add("\n");
    }
    print_grid();
    if (has_root(shape.collective)) add("root {}\n", shape.root);
    if (shape.segments != 1) add("segments {}\n", shape.segments);
    if (schedule_.ordered) add("ordered\n");
    if (schedule_.equal_chunks) add("equal_chunks\n");
    if (first.scratch().empty()) return;
    add("scratch");
    for (BufferId buffer = 1; buffer < first.buffers(); ++buffer) {
      add(" {}", buffer_name(first.scratch(), buffer));
      if (first.chunks(buffer) != first.chunking().chunks()) add("[{}]", first.chunks(buffer));
    }
    add("\n");
  }

  void print_grid() {
    const std::vector<int>& grid = schedule_.shape.grid;
    if (grid.empty()) return;
    const bool even = std::ranges::all_of(grid, [&](int node) { return node == grid.front(); });
    if (even) {
      add("grid {}x{}\n", grid.size(), grid.front());
    } else {
      add("grid {}\n", base::join(grid, "+"));
    }
  }

  void print_program(int rank) {
    const Program& program = schedule_.programs[static_cast<std::size_t>(rank)];
    int printed = 0;
    for (int step = 0; step < program.steps(); ++step) {
      for (const Send& send : program.sends(step)) {
        add("rank {} step {} send ", rank, step + 1);
        add_range(program, send.range);
        add(" to {}\n", send.peer);
      }
      for (const Write& write : program.receives(step)) {
        add("rank {} step {} {} ", rank, step + 1, verb(write));
        add_range(program, write.range);
        add(" from");
        add_sources(program, write, [&](Rank source) {
          if (source == kOwn) {
            add(" own");
          } else {
            add(" {}", source);
          }
        });
      }
      for (const Write& write : program.locals(step)) {
        add("rank {} step {} local {} ", rank, step + 1, verb(write));
        add_range(program, write.range);
        add(" =");
        add_sources(program, write, [&](BufferId source) {
          const Range read = Program::source_range(write, source);
          add(" ");
          if (read.first != write.range.first) return add_range(program, read);
          add("{}", buffer_name(program.scratch(), source));
        });
      }
      const bool empty = program.sends(step).empty() && program.receives(step).empty() &&
                         program.locals(step).empty();
      if (!empty) printed = step + 1;
    }
    if (printed < program.steps()) add("rank {} steps {}\n", rank, program.steps());
  }

  static std::string_view verb(const Write& write) {
    return write.combine == Combine::Copy ? "copy" : "reduce";
  }

  void add_range(const Program& program, const Range& range) {
    add("{}[{}", buffer_name(program.scratch(), range.buffer), range.first);
    if (range.count > 1)
      add("..{}", (range.first + range.count - 1) % program.chunks(range.buffer));
    add("]");
  }

  template <class AddSource>
  void add_sources(const Program& program, const Write& write, const AddSource& add_source) {
    const auto sources = program.sources(write);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (i > 0) add(" +");
      add_source(sources[i]);
    }
    add("\n");
  }

  static constexpr std::size_t kFlushBytes = std::size_t{1} << 15;
  const Schedule& schedule_;
  Sink sink_;
  std::string buffer_;
};

}  // namespace
}  // namespace sluice::schedule

namespace sluice {

void print_schedule(std::ostream& out, const Schedule& schedule) {
  const std::uint64_t hash = hash_schedule(schedule);
  schedule::Printer{schedule,
                    [&](std::string_view text) {
                      out.write(text.data(), static_cast<std::streamsize>(text.size()));
                    }}
      .print(hash);
}

std::uint64_t hash_schedule(const Schedule& schedule) {
  if (const Status status = schedule::PrintableCheck{schedule}.run(); !status.ok())
    throw Error{status};
  XXH64_state_t state;
  XXH64_reset(&state, 0);
  schedule::Printer{schedule,
                    [&](std::string_view text) { XXH64_update(&state, text.data(), text.size()); }}
      .print(std::nullopt);
  return XXH64_digest(&state);
}

}  // namespace sluice

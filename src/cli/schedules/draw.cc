#include "cli/schedules/draw.h"

#include <algorithm>
#include <bitset>
#include <vector>

#include "base/format.h"
#include "cli/terminal.h"
#include "sluice/verify.h"

namespace sluice::cli {
namespace {

using Contributions = std::bitset<kMostDrawnRanks>;

// The ranks whose contributions each chunk holds. Runs the steps in order, a legal execution.
class Holdings {
 public:
  explicit Holdings(const Schedule& schedule) : schedule_{schedule} {
    const Shape& shape = schedule.shape;
    const Program& first = schedule.programs.front();
    chunks_ = first.chunking().chunks();
    held_.assign(schedule.programs.size(),
                 std::vector(static_cast<std::size_t>(first.buffers()),
                             std::vector<Contributions>(static_cast<std::size_t>(chunks_))));
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        if (contributes(shape, first.chunking(), rank, chunk))
          at(rank, kUserBuffer, chunk).set(static_cast<std::size_t>(rank));
      }
    }
  }

  void advance(int step) {
    const auto before = held_;
    const auto ranks = static_cast<Rank>(schedule_.programs.size());
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Program& program = schedule_.programs[static_cast<std::size_t>(rank)];
      if (step >= program.steps()) continue;
      for (const Write& receive : program.receives(step)) {
        write(rank, receive, [&](std::int32_t source, int chunk) {
          if (source == kOwn) return at(before, rank, receive.range.buffer, chunk);
          return at(before, source, sent_buffer(source, rank, step, receive.range), chunk);
        });
      }
      for (const Write& local : program.locals(step)) {
        write(rank, local, [&](std::int32_t source, int chunk) { return at(rank, source, chunk); });
      }
    }
  }

  // A mark for each chunk of the user's buffer: how much of the result it holds.
  std::string marks(Rank rank) {
    const std::size_t whole =
        is_reduction(schedule_.shape.collective) ? schedule_.programs.size() : 1;
    std::string text;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const std::size_t count = at(rank, kUserBuffer, chunk).count();
      text += count == whole       ? "█"
              : count == 0         ? "·"
              : count == 1         ? "░"
              : 2 * count <= whole ? "▒"
                                   : "▓";
    }
    return text;
  }

 private:
  using Held = std::vector<std::vector<std::vector<Contributions>>>;

  static Contributions at(const Held& held, Rank rank, BufferId buffer, int chunk) {
    const auto& buffers = held[static_cast<std::size_t>(rank)];
    return buffers[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(chunk)];
  }
  Contributions& at(Rank rank, BufferId buffer, int chunk) {
    auto& buffers = held_[static_cast<std::size_t>(rank)];
    return buffers[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(chunk)];
  }

  // The buffer from which the peer sends these chunks in this step.
  BufferId sent_buffer(Rank from, Rank to, int step, const Range& range) const {
    for (const Send& send : schedule_.programs[static_cast<std::size_t>(from)].sends(step)) {
      if (send.peer == to && send.range.first == range.first && send.range.count == range.count) {
        return send.range.buffer;
      }
    }
    return kUserBuffer;
  }

  template <class ValueOf>
  void write(Rank rank, const Write& by, ValueOf&& value_of) {
    const Program& program = schedule_.programs[static_cast<std::size_t>(rank)];
    for (int i = 0; i < by.range.count; ++i) {
      const int chunk = (by.range.first + i) % chunks_;
      Contributions sum;
      for (const std::int32_t source : program.sources(by)) sum |= value_of(source, chunk);
      at(rank, by.range.buffer, chunk) = sum;
    }
  }

  const Schedule& schedule_;
  int chunks_ = 0;
  Held held_;
};

void add_chunks(std::string& list, const Range& range, int chunks) {
  if (!list.empty()) list += ',';
  if (range.count == chunks && chunks > 1) {
    list += "all";
  } else if (range.count == 1) {
    list += base::format("{}", range.first);
  } else {
    list += base::format("{}-{}", range.first, (range.first + range.count - 1) % chunks);
  }
}

// The lines of one cell: a line for all chunks sent to one peer or received from the same peers.
std::vector<std::string> cell_lines(const Program& program, int step) {
  std::vector<std::string> lines;
  if (step >= program.steps()) return lines;
  const int chunks = program.chunking().chunks();
  std::string chunk_list;
  const auto sends = program.sends(step);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    add_chunks(chunk_list, sends[i].range, chunks);
    if (i + 1 < sends.size() && sends[i + 1].peer == sends[i].peer) continue;
    lines.push_back(base::format("{} → {}", chunk_list, sends[i].peer));
    chunk_list.clear();
  }
  const auto receives = program.receives(step);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const auto sources = program.sources(receives[i]);
    add_chunks(chunk_list, receives[i].range, chunks);
    if (i + 1 < receives.size() && std::ranges::equal(sources, program.sources(receives[i + 1])))
      continue;
    std::vector<Rank> peers;
    std::copy_if(sources.begin(), sources.end(), std::back_inserter(peers),
                 [](Rank r) { return r != kOwn; });
    const bool to_scratch = receives[i].range.buffer != kUserBuffer;
    lines.push_back(base::format("{} {} {}", chunk_list,
                                 receives[i].combine == Combine::Reduce || to_scratch ? "⊕" : "←",
                                 base::join(peers, ",")));
    chunk_list.clear();
  }
  return lines;
}

}  // namespace

std::string draw(const Schedule& schedule) {
  int steps = 0;
  for (const Program& program : schedule.programs) steps = std::max(steps, program.steps());
  const int chunks = schedule.programs.front().chunking().chunks();

  // Build all cells first: the widest cell sets the width of all columns.
  Holdings holdings{schedule};
  std::vector<std::vector<std::vector<std::string>>> rows;
  for (int step = -1; step < steps; ++step) {
    if (step >= 0) holdings.advance(step);
    auto& row = rows.emplace_back();
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
      auto& cell = row.emplace_back();
      if (step >= 0) cell = cell_lines(schedule.programs[static_cast<std::size_t>(rank)], step);
      cell.push_back(holdings.marks(rank));
    }
  }
  std::size_t width = columns_of("rank 00");
  for (const auto& row : rows) {
    for (const auto& cell : row) {
      for (const std::string& line : cell) width = std::max(width, columns_of(line));
    }
  }
  const auto padded = [&](const std::string& text) {
    return text + std::string(width + 2 - columns_of(text), ' ');
  };

  const Proof proof = verify(schedule);
  std::string picture =
      base::format("{} {}: {} ranks, {} {}, {} steps, busiest rank sends {} of the buffer\n",
                   schedule.algorithm, name(schedule.shape.collective), schedule.shape.ranks,
                   chunks, chunks == 1 ? "chunk" : "chunks", steps, to_string(proof.bytes_factor));
  picture +=
      "chunks → to rank   chunks ⊕ added from   chunks ← copied from   "
      "then each chunk: · nothing ░ one's ▒▓ more █ result\n\n";
  const auto line_of = [&](const std::string& label, auto&& text_of) {
    std::string line = base::format("{:<8}", label);
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank)
      line += padded(text_of(static_cast<std::size_t>(rank)));
    picture += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  line_of("", [](std::size_t rank) { return base::format("rank {}", rank); });
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::size_t height = 0;
    for (const auto& cell : rows[r]) height = std::max(height, cell.size());
    for (std::size_t i = 0; i < height; ++i) {
      const std::string label = i > 0 ? "" : r == 0 ? "start" : base::format("step {}", r);
      line_of(label, [&](std::size_t rank) -> std::string {
        const auto& cell = rows[r][rank];  // transfers from the top, the marks at the bottom
        if (i + 1 == height) return cell.back();
        return i + 1 < cell.size() ? cell[i] : "";
      });
    }
  }
  return picture;
}

}  // namespace sluice::cli

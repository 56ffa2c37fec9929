#include "schedule/symbolic_run.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "schedule/dataflow.h"
#include "schedule/text_form.h"

namespace sluice::schedule {
namespace {

using ExpressionId = std::int32_t;
constexpr ExpressionId kNothing = -1;  // of a position that was never written

// The sums of a symbolic run. Equal sums have equal ids.
class Expressions {
 public:
  Expressions(int ranks, bool commutative)
      : ranks_{static_cast<std::size_t>(ranks)},
        commutative_{commutative},
        words_per_sum_{(ranks_ + kWordBits - 1) / kWordBits},
        words_(ranks_ * words_per_sum_) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      words_[rank * words_per_sum_ + rank / kWordBits] = Word{1} << (rank % kWordBits);
    }
  }

  // Drops all sums. Calling it for every chunk limits the memory to ranks^2 bits instead of
  // ranks^3.
  void clear() {
    words_.resize(ranks_ * words_per_sum_);
    sums_.clear();
  }

  // The contribution of a rank.
  ExpressionId leaf(Rank rank) const { return rank; }

  ExpressionId sum(ExpressionId a, ExpressionId b) {
    if (commutative_ && a > b) std::swap(a, b);
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(a)} << 32U | static_cast<std::uint32_t>(b);
    const auto next = static_cast<ExpressionId>(words_.size() / words_per_sum_);
    const auto [at, is_new] = sums_.try_emplace(key, next);
    if (is_new) {
      words_.resize(words_.size() + words_per_sum_);
      Word* const united = words_.data() + static_cast<std::size_t>(next) * words_per_sum_;
      for (std::size_t w = 0; w < words_per_sum_; ++w) united[w] = ranks_in(a)[w] | ranks_in(b)[w];
    }
    return at->second;
  }

  // A rank that contributes to both; their sum would count it twice.
  std::optional<Rank> common_rank(ExpressionId a, ExpressionId b) const {
    for (std::size_t w = 0; w < words_per_sum_; ++w) {
      if (const Word both = ranks_in(a)[w] & ranks_in(b)[w]; both != 0) {
        return static_cast<Rank>(w * kWordBits + static_cast<std::size_t>(std::countr_zero(both)));
      }
    }
    return std::nullopt;
  }

  std::optional<Rank> missing_rank(ExpressionId expression) const {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const Word word = ranks_in(expression)[rank / kWordBits];
      if ((word >> (rank % kWordBits) & 1) == 0) return static_cast<Rank>(rank);
    }
    return std::nullopt;
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kWordBits = 64;
  const Word* ranks_in(ExpressionId expression) const {
    return words_.data() + static_cast<std::size_t>(expression) * words_per_sum_;
  }

  std::size_t ranks_;
  bool commutative_;
  std::size_t words_per_sum_;
  std::vector<Word> words_;  // for each expression, one bit for each rank that contributes
  std::unordered_map<std::uint64_t, ExpressionId> sums_;
};

// Runs a schedule with symbols instead of numbers, and checks that the result is what the
// collective promises. A value is a sum of contributions to one chunk of the input. Where values
// keep their chunk numbers, one chunk runs at a time; with equal chunks all run together.
class SymbolicRun {
 public:
  SymbolicRun(const Schedule& schedule, const EventGraph& graph)
      : schedule_{schedule},
        graph_{graph},
        chunking_{schedule.programs.front().chunking()},
        ranks_{schedule.shape.ranks},
        buffers_{schedule.programs.front().buffers()},
        together_{schedule.equal_chunks},
        numbers_{schedule.programs.front()},
        expressions_{ranks_, !schedule.ordered},
        positions_(static_cast<std::size_t>(ranks_) *
                   (together_ ? numbers_.count() : static_cast<std::size_t>(buffers_))) {}

  // Runs the events that touch the chunk, in order.
  std::string run(int chunk, std::span<const std::uint32_t> events) {
    begin();
    begin_chunk(chunk);
    for (const std::uint32_t event : events) {
      const Range& range = graph_.events()[event].write->range;
      const int i = chunk - range.first;
      if (!execute(event, i < 0 ? i + chunking_.chunks() : i)) return error_;
    }
    check_outputs(chunk);
    if (error_.empty()) check_used(chunk, chunk + 1);
    return error_;
  }

  // Runs all events, in order.
  std::string run_together(std::span<const std::uint32_t> order) {
    begin();
    for (int chunk = 0; chunk < chunking_.chunks(); ++chunk) begin_chunk(chunk);
    for (const std::uint32_t event : order) {
      for (int i = 0; i < graph_.events()[event].write->range.count; ++i) {
        if (!execute(event, i)) return error_;
      }
    }
    for (int chunk = 0; chunk < chunking_.chunks() && error_.empty(); ++chunk) check_outputs(chunk);
    if (error_.empty()) check_used(0, chunking_.chunks());
    return error_;
  }

 private:
  static constexpr std::int32_t kInput = -1;  // the writer of an input of the collective
  struct Value {
    ExpressionId sum = kNothing;
    std::int32_t chunk = 0;  // of the input

    friend bool operator==(const Value&, const Value&) = default;
  };
  struct Position {
    Value value;
    std::int32_t writer = kInput;  // in writes_
  };
  // What an event does to one chunk of its range.
  struct ChunkWrite {
    std::uint32_t event;
    std::int32_t index;      // within the range
    std::uint32_t read_end;  // of its part of reads_
  };

  // The position of the i-th chunk of a range. If chunks run one at a time, it is that of the
  // buffer.
  Position& position(Rank rank, const Range& range, int i) {
    const auto r = static_cast<std::size_t>(rank);
    return together_ ? positions_[r * numbers_.count() + numbers_.at(range, i)]
                     : positions_[r * static_cast<std::size_t>(buffers_) +
                                  static_cast<std::size_t>(range.buffer)];
  }
  Position& output(Rank rank, int chunk) { return position(rank, {kUserBuffer, chunk, 1}, 0); }

  void begin() {
    error_.clear();
    expressions_.clear();
    std::fill(positions_.begin(), positions_.end(), Position{});
    reads_.clear();
    writes_.clear();
  }

  void begin_chunk(int chunk) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (contributes(schedule_.shape, chunking_, rank, chunk))
        output(rank, chunk).value = {expressions_.leaf(rank), chunk};
    }
  }

  bool execute(std::uint32_t number, int i) {
    const Event& event = graph_.events()[number];
    const int count = event.write->range.count;
    Value result;
    for (const Operand& operand : graph_.operands(event)) {
      const Position& source = position(operand.rank, {operand.buffer, operand.first, count}, i);
      if (source.value.sum == kNothing) {
        return fail(event, i,
                    base::format("it reads {} of rank {}, which holds nothing yet",
                                 buffer(operand.buffer), operand.rank));
      }
      reads_.push_back(source.writer);
      if (result.sum == kNothing) {
        result = source.value;
        continue;
      }
      if (result.chunk != source.value.chunk) {
        return fail(event, i,
                    base::format("it adds chunks {} and {} of the input", result.chunk,
                                 source.value.chunk));
      }
      if (const auto twice = expressions_.common_rank(result.sum, source.value.sum)) {
        return fail(event, i, base::format("it adds the contribution of rank {} twice", *twice));
      }
      result.sum = expressions_.sum(result.sum, source.value.sum);
    }
    position(event.rank, event.write->range, i) = {result,
                                                   static_cast<std::int32_t>(writes_.size())};
    writes_.push_back({number, i, static_cast<std::uint32_t>(reads_.size())});
    return true;
  }

  ExpressionId sum_in_rank_order() {
    ExpressionId expression = expressions_.leaf(0);
    for (Rank rank = 1; rank < ranks_; ++rank) {
      expression = expressions_.sum(expression, expressions_.leaf(rank));
    }
    return expression;
  }

  void check_outputs(int chunk) {
    const Collective collective = schedule_.shape.collective;
    const bool reduction = is_reduction(collective);
    const Rank source = collective == Collective::AllGather
                            ? owner_of_chunk(chunking_, ranks_, chunk)
                            : schedule_.shape.root;
    ExpressionId expected = kNothing;
    const ExpressionId declared = schedule_.ordered ? sum_in_rank_order() : kNothing;
    Rank first = 0;  // the rank that `expected` is from
    const auto wrong = [&](Rank rank, const std::string& what) {
      error_ =
          base::format("rank {}, after the last step, chunk {}: the result {}", rank, chunk, what);
    };
    for (Rank rank = 0; rank < ranks_ && error_.empty(); ++rank) {
      if (!receives_result(schedule_.shape, chunking_, rank, chunk)) continue;
      const Value value = output(rank, chunk).value;
      if (value.sum == kNothing) {
        wrong(rank, "is missing");
      } else if (!reduction) {
        if (value.sum != expressions_.leaf(source)) {
          wrong(rank, base::format("is not the contribution of rank {}", source));
        } else if (value.chunk != chunk) {
          wrong(rank, base::format("belongs to chunk {}", value.chunk));
        }
      } else if (value.chunk != chunk) {
        wrong(rank, base::format("belongs to chunk {}", value.chunk));
      } else if (const auto missing = expressions_.missing_rank(value.sum)) {
        wrong(rank, base::format("lacks the contribution of rank {}", *missing));
      } else if (schedule_.ordered && value.sum != declared) {
        wrong(rank, "is not the sum rank 0 + rank 1 + ... from left to right, as declared");
      } else if (expected == kNothing) {
        expected = value.sum;
        first = rank;
      } else if (value.sum != expected) {
        wrong(rank, base::format("was added in another order than on rank {}, so the bits may "
                                 "differ",
                                 first));
      }
    }
  }

  // Checks that every value that an event writes flows into an output. Goes back from the outputs.
  void check_used(int first_chunk, int end_chunk) {
    used_.assign(writes_.size(), false);
    const auto use = [&](std::int32_t writer) {
      if (writer != kInput) used_[static_cast<std::size_t>(writer)] = true;
    };
    for (int chunk = first_chunk; chunk < end_chunk; ++chunk) {
      for (Rank rank = 0; rank < ranks_; ++rank) {
        if (receives_result(schedule_.shape, chunking_, rank, chunk))
          use(output(rank, chunk).writer);
      }
    }
    for (std::size_t w = writes_.size(); w-- > 0;) {
      const Event& event = graph_.events()[writes_[w].event];
      if (!used_[w]) {
        fail(event, writes_[w].index,
             base::format("the value that it writes to {} is never used",
                          buffer(event.write->range.buffer)));
        return;
      }
      for (std::uint32_t r = w == 0 ? 0 : writes_[w - 1].read_end; r < writes_[w].read_end; ++r)
        use(reads_[r]);
    }
  }

  bool fail(const Event& event, int i, std::string_view what) {
    const Range& range = event.write->range;
    const int chunks = schedule_.programs.front().chunks(range.buffer);
    error_ = base::format("rank {}, step {}, chunk {}: {}", event.rank, event.step + 1,
                          (range.first + i) % chunks, what);
    return false;
  }
  std::string_view buffer(BufferId id) const {
    return buffer_name(schedule_.programs.front().scratch(), id);
  }

  const Schedule& schedule_;
  const EventGraph& graph_;
  const Chunking& chunking_;
  int ranks_;
  int buffers_;
  bool together_;
  Positions numbers_;
  std::string error_;
  Expressions expressions_;
  std::vector<Position> positions_;  // of each rank
  std::vector<std::int32_t> reads_;  // the writers of the values that events read, in order
  std::vector<ChunkWrite> writes_;   // in order
  std::vector<bool> used_;
};

}  // namespace

std::string symbolic_run_error(const Schedule& schedule, const EventGraph& graph,
                               std::span<const std::uint32_t> order) {
  if (schedule.equal_chunks) return SymbolicRun{schedule, graph}.run_together(order);
  const int chunks = schedule.programs.front().chunking().chunks();
  const auto for_chunks = [&](std::uint32_t event, auto&& visit) {
    const Range& range = graph.events()[event].write->range;
    for (int i = 0; i < range.count; ++i)
      visit(static_cast<std::size_t>((range.first + i) % chunks));
  };
  // One list with the events of chunk 0, then those of chunk 1, and so on; end[c] is where the part
  // of chunk c ends.
  std::vector<std::size_t> end(static_cast<std::size_t>(chunks) + 1, 0);
  for (const std::uint32_t event : order)
    for_chunks(event, [&](std::size_t chunk) { ++end[chunk]; });
  std::size_t sum = 0;
  for (std::size_t& each : end) sum += std::exchange(each, sum);
  std::vector<std::uint32_t> events(sum);
  for (const std::uint32_t event : order) {
    for_chunks(event, [&](std::size_t chunk) { events[end[chunk]++] = event; });
  }

  SymbolicRun run{schedule, graph};
  std::string error;
  for (int chunk = 0; chunk < chunks && error.empty(); ++chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    const std::size_t begin = c == 0 ? 0 : end[c - 1];
    error = run.run(chunk, std::span{events}.subspan(begin, end[c] - begin));
  }
  return error;
}

}  // namespace sluice::schedule

#include "schedule/values.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "schedule/text_form.h"
#include "sluice/schedule.h"

namespace sluice::schedule {
namespace {

using ExpressionId = std::int32_t;
inline constexpr ExpressionId kNothing = -1;  // what an untouched place holds

class Expressions {
 public:
  Expressions(int ranks, bool commutative);

  // Forgets the sums; leaves stay. Call it for every chunk: memory is ranks^2 bits, not ranks^3.
  void clear();

  ExpressionId leaf(Rank rank) const { return rank; }
  ExpressionId sum(ExpressionId a, ExpressionId b);

  // A rank whose contribution is in both; a sum of the two would count it twice.
  std::optional<Rank> common_rank(ExpressionId a, ExpressionId b) const;
  std::optional<Rank> missing_rank(ExpressionId expression) const;

 private:
  using Word = std::uint64_t;
  const Word* ranks_in(ExpressionId expression) const {
    return words_.data() + static_cast<std::size_t>(expression) * words_each_;
  }

  int ranks_;
  bool commutative_;
  std::size_t words_each_;
  std::vector<Word> words_;  // for each expression, a bit for each rank in it
  std::unordered_map<std::uint64_t, ExpressionId> sums_;
};

constexpr std::size_t kWordBits = 64;

Expressions::Expressions(int ranks, bool commutative)
    : ranks_{ranks},
      commutative_{commutative},
      words_each_{(static_cast<std::size_t>(ranks) + kWordBits - 1) / kWordBits} {
  const auto leaves = static_cast<std::size_t>(ranks);
  words_.resize(leaves * words_each_);
  for (std::size_t rank = 0; rank < leaves; ++rank) {
    words_[rank * words_each_ + rank / kWordBits] = Word{1} << (rank % kWordBits);
  }
}

void Expressions::clear() {
  words_.resize(static_cast<std::size_t>(ranks_) * words_each_);
  sums_.clear();
}

ExpressionId Expressions::sum(ExpressionId a, ExpressionId b) {
  if (commutative_ && a > b) std::swap(a, b);
  const std::uint64_t key =
      std::uint64_t{static_cast<std::uint32_t>(a)} << 32U | static_cast<std::uint32_t>(b);
  const auto next = static_cast<ExpressionId>(words_.size() / words_each_);
  const auto [at, fresh] = sums_.try_emplace(key, next);
  if (fresh) {
    words_.resize(words_.size() + words_each_);
    Word* const united = words_.data() + static_cast<std::size_t>(next) * words_each_;
    for (std::size_t w = 0; w < words_each_; ++w) united[w] = ranks_in(a)[w] | ranks_in(b)[w];
  }
  return at->second;
}

std::optional<Rank> Expressions::common_rank(ExpressionId a, ExpressionId b) const {
  for (std::size_t w = 0; w < words_each_; ++w) {
    if (const Word common = ranks_in(a)[w] & ranks_in(b)[w]; common != 0) {
      return static_cast<Rank>(w * kWordBits + static_cast<std::size_t>(std::countr_zero(common)));
    }
  }
  return std::nullopt;
}

std::optional<Rank> Expressions::missing_rank(ExpressionId expression) const {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if ((ranks_in(expression)[r / kWordBits] >> (r % kWordBits) & 1) == 0) return rank;
  }
  return std::nullopt;
}

constexpr std::int32_t kInitial = -1;  // written by nobody: the collective's input

// The symbolic run of one schedule, one chunk at a time.
class ChunkRun {
 public:
  ChunkRun(const Schedule& schedule, const EventGraph& graph)
      : schedule_{schedule},
        graph_{graph},
        chunking_{schedule.programs.front().chunking()},
        ranks_{schedule.shape.ranks},
        buffers_{schedule.programs.front().buffers()},
        expressions_{ranks_, !schedule.ordered},
        places_(static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(buffers_)) {}

  // `events` are those that touch the chunk, in order.
  std::string run(int chunk, std::span<const std::uint32_t> events) {
    chunk_ = chunk;
    why_.clear();
    begin();
    for (const std::uint32_t event : events) {
      execute(graph_.events()[event]);
      if (!why_.empty()) return why_;
    }
    check_outputs();
    if (why_.empty()) check_use(events);
    return why_;
  }

 private:
  struct Place {
    ExpressionId value = kNothing;
    std::int32_t writer = kInitial;  // number of the event among the chunk's
  };

  Place& place(Rank rank, BufferId buffer) {
    return places_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(buffers_) +
                   static_cast<std::size_t>(buffer)];
  }

  void begin() {
    expressions_.clear();
    std::fill(places_.begin(), places_.end(), Place{});
    reads_.clear();
    read_end_.clear();
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (contributes(schedule_.shape, chunking_, rank, chunk_))
        place(rank, kUserBuffer).value = expressions_.leaf(rank);
    }
  }

  void execute(const Event& event) {
    ExpressionId result = kNothing;
    for (const Operand& operand : graph_.operands(event)) {
      const Place& source = place(operand.rank, operand.buffer);
      if (source.value == kNothing) {
        return refuse(event, base::format("it reads {} of rank {}, which holds nothing yet",
                                          buffer(operand.buffer), operand.rank));
      }
      reads_.push_back(source.writer);
      if (result == kNothing) {
        result = source.value;
        continue;
      }
      if (const auto twice = expressions_.common_rank(result, source.value)) {
        return refuse(event, base::format("it adds the contribution of rank {} twice", *twice));
      }
      result = expressions_.sum(result, source.value);
    }
    place(event.rank, event.write->range.buffer) = {result,
                                                    static_cast<std::int32_t>(read_end_.size())};
    read_end_.push_back(static_cast<std::uint32_t>(reads_.size()));
  }

  // The expression that a sum must be, when the schedule declares its order.
  ExpressionId in_rank_order() {
    ExpressionId expression = expressions_.leaf(0);
    for (Rank rank = 1; rank < ranks_; ++rank) {
      expression = expressions_.sum(expression, expressions_.leaf(rank));
    }
    return expression;
  }

  void check_outputs() {
    const Collective collective = schedule_.shape.collective;
    const bool reduction = is_reduction(collective);
    const Rank source = collective == Collective::AllGather
                            ? owner_of_chunk(chunking_, ranks_, chunk_)
                            : schedule_.shape.root;
    ExpressionId expected = reduction ? kNothing : expressions_.leaf(source);
    const ExpressionId declared = schedule_.ordered ? in_rank_order() : kNothing;
    Rank expected_by = 0;
    for (Rank rank = 0; rank < ranks_ && why_.empty(); ++rank) {
      if (!receives_result(schedule_.shape, chunking_, rank, chunk_)) continue;
      const ExpressionId value = place(rank, kUserBuffer).value;
      if (value == kNothing) {
        refuse_output(rank, "holds nothing");
      } else if (!reduction) {
        if (value != expected)
          refuse_output(rank, base::format("is not what rank {} gave", source));
      } else if (const auto missing = expressions_.missing_rank(value)) {
        refuse_output(rank, base::format("lacks the contribution of rank {}", *missing));
      } else if (schedule_.ordered && value != declared) {
        refuse_output(rank, "is not the sum rank 0 + rank 1 + ... from left to right, as declared");
      } else if (expected == kNothing) {
        expected = value;
        expected_by = rank;
      } else if (value != expected) {
        refuse_output(rank,
                      base::format("was added up in another order than rank {}'s, so their bits "
                                   "may differ",
                                   expected_by));
      }
    }
  }

  // Every event's value must flow into an output: walk back from the outputs.
  void check_use(std::span<const std::uint32_t> events) {
    used_.assign(events.size(), false);
    const auto use = [&](std::int32_t writer) {
      if (writer != kInitial) used_[static_cast<std::size_t>(writer)] = true;
    };
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (receives_result(schedule_.shape, chunking_, rank, chunk_))
        use(place(rank, kUserBuffer).writer);
    }
    for (std::size_t i = events.size(); i-- > 0;) {
      if (!used_[i]) {
        return refuse(graph_.events()[events[i]],
                      base::format("what it leaves in {} is never used",
                                   buffer(graph_.events()[events[i]].write->range.buffer)));
      }
      for (std::uint32_t r = i == 0 ? 0 : read_end_[i - 1]; r < read_end_[i]; ++r) use(reads_[r]);
    }
  }

  void refuse(const Event& event, std::string_view what) {
    why_ = base::format("rank {}, step {}, chunk {}: {}", event.rank, event.step + 1, chunk_, what);
  }
  void refuse_output(Rank rank, std::string_view what) {
    why_ =
        base::format("rank {}, after the last step, chunk {}: the result {}", rank, chunk_, what);
  }
  std::string_view buffer(BufferId id) const {
    return buffer_name(schedule_.programs.front().scratch(), id);
  }

  const Schedule& schedule_;
  const EventGraph& graph_;
  const Chunking& chunking_;
  int ranks_;
  int buffers_;
  int chunk_ = 0;
  std::string why_;
  Expressions expressions_;
  std::vector<Place> places_;            // of each rank and buffer
  std::vector<std::int32_t> reads_;      // writers of what each event read, event after event
  std::vector<std::uint32_t> read_end_;  // where each event's part of reads_ ends
  std::vector<bool> used_;
};

}  // namespace

std::string why_wrong_values(const Schedule& schedule, const EventGraph& graph,
                             std::span<const std::uint32_t> order) {
  const int chunks = schedule.programs.front().chunking().chunks();
  const auto for_chunks = [&](std::uint32_t event, auto&& visit) {
    const Range& range = graph.events()[event].write->range;
    for (int i = 0; i < range.count; ++i)
      visit(static_cast<std::size_t>((range.first + i) % chunks));
  };
  // The events of every chunk, in order, as one list with the place where each chunk's part ends.
  std::vector<std::size_t> end(static_cast<std::size_t>(chunks) + 1, 0);
  for (const std::uint32_t event : order)
    for_chunks(event, [&](std::size_t chunk) { ++end[chunk]; });
  std::size_t sum = 0;
  for (std::size_t& each : end) sum += std::exchange(each, sum);
  std::vector<std::uint32_t> events(sum);
  for (const std::uint32_t event : order) {
    for_chunks(event, [&](std::size_t chunk) { events[end[chunk]++] = event; });
  }

  ChunkRun run{schedule, graph};
  std::string why;
  for (int chunk = 0; chunk < chunks && why.empty(); ++chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    const std::size_t begin = c == 0 ? 0 : end[c - 1];
    why = run.run(chunk, std::span{events}.subspan(begin, end[c] - begin));
  }
  return why;
}

}  // namespace sluice::schedule

// interpreter.h - runs a schedule once, in a random order that docs/execution-model.md allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/mutation/events.h"

namespace sluice::mutation {

constexpr std::uint64_t scramble(std::uint64_t x) {  // the finaliser of splitmix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// `sum` differs for different sets of contributions. `bits` stands for the bits of a floating-point
// sum: this addition is commutative, but not associative.
struct Number {
  std::uint64_t sum = 0;
  std::uint64_t bits = 0;

  Number() = default;
  Number(Rank rank, int chunk)
      : sum{scramble(static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint64_t>(chunk))},
        bits{sum} {}
  bool adds_up_to(const Number& total) const { return sum == total.sum; }
  Number& operator+=(const Number& other) {
    bits = *this == Number{} ? other.bits : scramble(bits + other.bits);
    sum += other.sum;
    return *this;
  }
  friend bool operator==(const Number&, const Number&) = default;
};

// A sum as text, "((0.7+1.7)+2.7)", for schedules that declare an order.
struct Term {
  std::string text;

  Term() = default;
  Term(Rank rank, int chunk) : text{std::to_string(rank) + "." + std::to_string(chunk)} {}
  bool adds_up_to(const Term& total) const { return text == total.text; }
  Term& operator+=(const Term& other) {
    text = text.empty() ? other.text : "(" + text + "+" + other.text + ")";
    return *this;
  }
  friend bool operator==(const Term&, const Term&) = default;
};

// Returns "" or the fault. Value{} stands for memory that was never written, Value{rank, chunk} for
// a contribution.
template <class Value>
std::string run(const Schedule& schedule, const Events& events, std::mt19937_64& random) {
  if (events.malformed) return "malformed";
  std::vector<int> waits = events.waits;
  std::vector<int> order;
  for (int event = 0; event < std::ssize(waits); ++event) order.push_back(event);
  std::shuffle(order.begin(), order.end(), random);
  for (auto next = order.begin(); next != order.end(); ++next) {
    const auto ready = std::find_if(next, order.end(), [&](int event) { return !waits[event]; });
    if (ready == order.end()) return "stuck";
    std::iter_swap(next, ready);
    for (const int waiting : events.list[*next].followers) --waits[waiting];
  }
  const auto& [collective, ranks, grid, root, segments] = schedule.shape;
  std::vector<std::vector<Value>> memory(ranks);         // each rank's buffers
  for (int chunk = 0; chunk < events.chunks; ++chunk) {  // chunks are independent
    const Rank owner = chunk * ranks / events.chunks;
    Value total;
    for (Rank rank = 0; rank < ranks; ++rank) {
      memory[rank].assign(schedule.programs[rank].buffers(), Value{});
      if (collective == Collective::AllGather && rank != owner) continue;
      if (collective == Collective::Broadcast && rank != root) continue;
      total += memory[rank][kUserBuffer] = Value{rank, chunk};
    }
    for (const int number : order) {
      const OracleEvent& event = events.list[number];
      if (!events.covers(event.target().range, chunk)) continue;
      Value sum;
      for (const Access& source : event.sources()) {
        if (memory[source.rank][source.range.buffer] == Value{}) return "read of nothing";
        sum += memory[source.rank][source.range.buffer];
      }
      memory[event.target().rank][event.target().range.buffer] = sum;
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (collective == Collective::ReduceScatter && rank != owner) continue;
      if (collective == Collective::Reduce && rank != root) continue;
      const Value& output = memory[rank][kUserBuffer];
      if (!output.adds_up_to(total)) return "wrong output";
      if (collective == Collective::AllReduce && output != memory[0][0]) return "ranks disagree";
    }
  }
  return "";
}

}  // namespace sluice::mutation

#include "tests/mutation/interpreter.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tests/mutation/flow.h"
#include "tests/mutation/interleaving.h"

namespace sluice::mutation {

Interpreter::Interpreter(const Schedule& schedule)
    : promise_{schedule.shape.collective, schedule.shape.ranks, schedule.shape.root,
               schedule.programs.at(0).layout().chunks()} {
  if (!promise_.legal()) throw std::invalid_argument{"malformed shape"};
  for (const Program& program : schedule.programs) buffers_ = std::max(buffers_, program.buffers());
  events_ = events_of(schedule);
}

template <class Value>
std::string Interpreter::run(std::mt19937_64& random) const {
  std::vector<std::optional<Value>> memory(cell({promise_.ranks, 0}, 0));
  for (Rank rank = 0; rank < promise_.ranks; ++rank)
    for (int chunk = 0; chunk < promise_.chunks; ++chunk)
      if (promise_.at_start(rank, chunk))
        memory[cell({rank, kUserBuffer}, chunk)] = Value::contribution(rank, chunk);

  Interleaving interleaving{events_.list, promise_.ranks, random};
  while (const Event* event = interleaving.next())
    for (int i = 0; i < event->range.count; ++i) {
      const int chunk = (event->range.first + i) % promise_.chunks;
      std::optional<Value> sum;
      for (const Place source : event->sources) {
        const std::optional<Value>& value = memory[cell(source, chunk)];
        if (!value) return "a place is read that holds nothing";
        sum = sum ? *sum + *value : *value;
      }
      memory[cell(event->target, chunk)] = std::move(sum);
    }
  if (interleaving.order().size() < events_.list.size()) return "stuck";
  if (!every_value_flows(promise_, events_.list, interleaving.order()))
    return "a value flows nowhere";
  return promise_.broken<Value>([&](Rank rank, int chunk) -> const std::optional<Value>& {
    return memory[cell({rank, kUserBuffer}, chunk)];
  });
}

template std::string Interpreter::run<Number>(std::mt19937_64&) const;
template std::string Interpreter::run<Term>(std::mt19937_64&) const;

}  // namespace sluice::mutation

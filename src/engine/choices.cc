#include "engine/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "sluice/select.h"

namespace sluice {

Result<const Choice*> Choices::chosen(const Algorithm& algorithm, const Shape& shape) {
  for (const auto& known : choices_) {
    if (known->algorithm == &algorithm && known->shape == shape) return known.get();
  }
  Result<std::shared_ptr<const Plan>> plan = proven_plan(algorithm, shape, rank_);
  if (!plan.ok()) return plan.status();
  choices_.push_back(std::make_unique<Choice>(Choice{&algorithm, shape, plan.value()}));
  return choices_.back().get();
}

Choices::Table& Choices::table_of(Collective collective, Rank root) {
  for (Table& table : tables_) {
    if (table.collective == collective && table.root == root) return table;
  }
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
  Table table{collective, root, {}};
  const Selector selector{
      collective, Topology{{ranks_}}, constants_, {.root = root, .lanes = false}};
  for (const Selector::Flip& flip : selector.shape_flips(1, kMostBytes)) {
    table.entries.push_back({flip.bytes, nullptr, flip.candidate.algorithm, flip.candidate.shape});
  }
  tables_.push_back(std::move(table));
  return tables_.back();
}

Result<const Choice*> Choices::choose(Collective collective, std::int64_t bytes, Rank root,
                                      std::string_view asked) {
  const bool rooted = collective == Collective::Broadcast || collective == Collective::Reduce;
  if (!rooted) root = 0;
  if (root < 0 || root >= ranks_) {
    return Status{Code::InvalidArgument,
                  fmt::format("root {} is not one of {} ranks", root, ranks_)};
  }
  const Algorithm* wanted = nullptr;
  if (asked.empty()) {
    wanted = overriding(overrides_, collective, bytes);
  } else {
    const auto all = algorithms();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Algorithm& algorithm) {
      return algorithm.name == asked;
    });
    if (found == all.end()) return find_algorithm(asked).status();  // it suggests another
    wanted = &*found;
  }
  if (wanted != nullptr) {
    for (const auto& known : choices_) {
      const Shape& shape = known->shape;
      if (known->algorithm == wanted && shape.collective == collective && shape.root == root &&
          shape.segments == 1) {
        return known.get();
      }
    }
    const Result<Shape> shape =
        complete_shape(*wanted, {.collective = collective, .ranks = ranks_, .root = root});
    if (!shape.ok()) return shape.status();
    return chosen(*wanted, shape.value());
  }
  std::vector<Entry>& entries = table_of(collective, root).entries;
  auto entry = std::upper_bound(entries.begin() + 1, entries.end(), bytes,
                                [](std::int64_t b, const Entry& e) { return b < e.from_bytes; });
  --entry;
  if (entry->choice == nullptr) {
    const Result<const Choice*> choice = chosen(*entry->algorithm, entry->shape);
    if (!choice.ok()) return choice.status();
    entry->choice = choice.value();
  }
  return entry->choice;
}

}  // namespace sluice

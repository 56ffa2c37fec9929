#include "engine/select/choices.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "algorithms/schedule_file.h"
#include "base/format.h"
#include "base/text.h"
#include "sluice/analysis/select.h"

namespace sluice::engine {
namespace {

Result<AlgorithmOverride> parse_override(std::string_view text) {
  const std::size_t at = text.find('@');
  const Result<const Algorithm*> algorithm = find_named(text.substr(0, at));
  if (!algorithm.ok()) return algorithm.status();
  AlgorithmOverride parsed{.algorithm = algorithm.value()};
  if (at == std::string_view::npos) return parsed;
  const std::string_view range = text.substr(at + 1);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) {
    return Status{
        Code::InvalidArgument,
        base::format("{} is not a range of sizes: write 4K-1M, -4K or 1M-", base::quote(range))};
  }
  const auto read = [](std::string_view number, std::int64_t& into) {
    if (number.empty()) return Status{};
    const Result<std::int64_t> bytes = base::parse_bytes(number);
    if (bytes.ok()) into = bytes.value();
    return bytes.status();
  };
  if (Status status = read(range.substr(0, dash), parsed.least); !status.ok()) return status;
  if (Status status = read(range.substr(dash + 1), parsed.end); !status.ok()) return status;
  if (parsed.least >= parsed.end) {
    return Status{
        Code::InvalidArgument,
        base::format("the range {} is empty: the first size must be smaller than the second",
                     base::quote(range))};
  }
  return parsed;
}

std::vector<int> nodes_of(const transport::Group& group) {
  std::vector<int> nodes;
  for (Rank rank = 0; rank < group.size(); ++rank) nodes.push_back(group.location(rank).node);
  return nodes;
}

}  // namespace

Result<const Algorithm*> find_named(std::string_view name) {
  if (algorithms::names_file(name)) return &algorithms::file_algorithm(name);
  return find_algorithm(name);
}

Result<std::vector<AlgorithmOverride>> parse_overrides(std::string_view text) {
  std::vector<AlgorithmOverride> overrides;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const Result<AlgorithmOverride> parsed = parse_override(text.substr(0, comma));
    if (!parsed.ok()) return parsed.status();
    overrides.push_back(parsed.value());
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return overrides;
}

std::vector<AlgorithmOverride> overrides_of_part(std::vector<AlgorithmOverride> overrides,
                                                 int ranks) {
  std::erase_if(overrides, [&](const AlgorithmOverride& each) {
    return each.algorithm->file != nullptr && each.algorithm->file->schedule.shape.ranks != ranks;
  });
  return overrides;
}

Result<std::vector<AlgorithmOverride>> overrides_from(const bootstrap::Environment& environment) {
  auto overrides = parse_overrides(environment.text(bootstrap::variable::kAlgorithm).value_or(""));
  if (overrides.ok()) return overrides;
  return Status{
      overrides.status().code(),
      base::format("{}: {}", bootstrap::variable::kAlgorithm.name, overrides.status().message())};
}

const Algorithm* find_override(const std::vector<AlgorithmOverride>& overrides,
                               Collective collective, std::int64_t bytes) {
  for (const AlgorithmOverride& each : overrides) {
    const Algorithm& algorithm = *each.algorithm;
    const bool unreadable = algorithm.file != nullptr && !algorithm.file->status.ok();
    if (each.least <= bytes && bytes < each.end && (unreadable || algorithm.supports(collective)))
      return &algorithm;
  }
  return nullptr;
}

RankOrder::RankOrder(const std::vector<int>& node_of, const std::vector<int>& switch_of) {
  const auto node = [&](Rank rank) { return node_of[static_cast<std::size_t>(rank)]; };
  const auto first_rank = [&](int node_id) {
    return std::find(node_of.begin(), node_of.end(), node_id) - node_of.begin();
  };
  const auto switch_at = [&](int node_id) {
    const auto i = static_cast<std::size_t>(node_id);
    return i < switch_of.size() ? switch_of[i] : 0;
  };
  ranks_.resize(node_of.size());
  std::iota(ranks_.begin(), ranks_.end(), 0);
  std::stable_sort(ranks_.begin(), ranks_.end(), [&](Rank a, Rank b) {
    return std::tuple{switch_at(node(a)), first_rank(node(a))} <
           std::tuple{switch_at(node(b)), first_rank(node(b))};
  });
  for (const Rank rank : ranks_) nodes_.push_back(node(rank));
}

RankOrder::RankOrder(const transport::Group& group, const std::vector<int>& switch_of)
    : RankOrder{nodes_of(group), switch_of} {}

RankOrder RankOrder::part(const std::vector<Rank>& members) const {
  RankOrder part;
  for (std::size_t position = 0; position < ranks_.size(); ++position) {
    const auto member = std::find(members.begin(), members.end(), ranks_[position]);
    if (member == members.end()) continue;
    part.ranks_.push_back(static_cast<Rank>(member - members.begin()));
    part.nodes_.push_back(nodes_[position]);
  }
  return part;
}

Rank RankOrder::position_of(Rank rank) const {
  return static_cast<Rank>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
}

bool RankOrder::applies_to(const Algorithm& algorithm, Collective collective) const {
  return !algorithm.ordered && algorithm.file == nullptr && !has_owners(collective) &&
         !std::is_sorted(ranks_.begin(), ranks_.end());
}

Topology RankOrder::topology(Collective collective) const {
  if (has_owners(collective) && !std::is_sorted(ranks_.begin(), ranks_.end()))
    return Topology::flat(size());
  Topology topology;
  for (std::size_t position = 0; position < nodes_.size(); ++position) {
    if (position == 0 || nodes_[position] != nodes_[position - 1]) topology.nodes.push_back(0);
    ++topology.nodes.back();
  }
  return topology;
}

Choice* Choices::choice_of(const Algorithm& algorithm, const Shape& shape) {
  for (const auto& known : choices_) {
    if (known->algorithm == &algorithm && known->shape == shape) return known.get();
  }
  const bool ordered = order_.applies_to(algorithm, shape.collective);
  std::shared_ptr<const Plan> plan =
      plan_of(algorithm, shape, ordered ? order_.position_of(rank_) : rank_);
  if (ordered) plan = std::make_shared<const Plan>(plan->renumbered(order_.ranks()));
  choices_.push_back(std::make_unique<Choice>(Choice{&algorithm, shape, std::move(plan)}));
  return choices_.back().get();
}

Choice* Choices::choice_of_file(const Algorithm& algorithm, Collective collective, Rank root) {
  for (const auto& known : choices_) {
    if (known->algorithm == &algorithm && known->shape.collective == collective &&
        known->shape.root == root)
      return known.get();
  }
  const Shape asked{.collective = collective, .ranks = order_.size(), .root = root};
  const Result<Shape> shape = algorithm.file->status.ok() ? complete_shape(algorithm, asked)
                                                          : Result<Shape>{algorithm.file->status};
  choices_.push_back(std::make_unique<Choice>(Choice{.algorithm = &algorithm,
                                                     .shape = shape.ok() ? shape.value() : asked,
                                                     .refusal = shape.status()}));
  return choices_.back().get();
}

Choices::Table& Choices::table_of(Collective collective, Rank root) {
  for (Table& table : tables_) {
    if (table.collective == collective && table.root == root) return table;
  }
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
  Table table{collective, root, {}};
  const Selector selector{collective, order_.topology(collective), constants_, {.root = root}};
  for (const Selector::Crossover& crossover : selector.shape_crossovers(1, kMostBytes)) {
    const Algorithm& algorithm = *crossover.candidate.algorithm;
    Shape shape = crossover.candidate.shape;
    if (order_.applies_to(algorithm, collective)) shape.root = order_.position_of(root);
    table.entries.push_back({crossover.bytes, nullptr, &algorithm, shape});
  }
  tables_.push_back(std::move(table));
  return tables_.back();
}

std::string Choices::describe(Collective collective) {
  const std::vector<Entry>& entries = table_of(collective, 0).entries;
  std::string text;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && entries[i].algorithm == entries[i - 1].algorithm) continue;
    if (i > 0)
      text +=
          base::format(" to {}, ", base::format_bytes(static_cast<double>(entries[i].from_bytes)));
    text += entries[i].algorithm->name;
  }
  return entries.size() > 1 ? text + " beyond" : text;
}

Result<Choice*> Choices::choose(Collective collective, std::int64_t bytes, Rank root,
                                std::string_view asked, std::int64_t elements) {
  if (!has_root(collective)) root = 0;
  if (root < 0 || root >= order_.size()) {
    return Status{Code::InvalidArgument,
                  base::format("root {} is not one of {} ranks", root, order_.size())};
  }
  const Algorithm* wanted = nullptr;
  if (asked.empty()) {
    wanted = find_override(overrides_, collective, bytes);
    if (wanted != nullptr && !algorithms::check_count(*wanted, elements).ok()) wanted = nullptr;
  } else {
    const Result<const Algorithm*> found = find_named(asked);
    if (!found.ok()) return found.status();
    wanted = found.value();
    if (Status status = algorithms::check_count(*wanted, elements); !status.ok()) return status;
  }
  if (wanted != nullptr && wanted->file != nullptr)
    return choice_of_file(*wanted, collective, root);
  if (wanted != nullptr) {
    const Rank position = order_.applies_to(*wanted, collective) ? order_.position_of(root) : root;
    for (const auto& known : choices_) {
      const Shape& shape = known->shape;
      if (known->algorithm == wanted && shape.collective == collective && shape.root == position &&
          shape.segments == 1) {
        return known.get();
      }
    }
    const Result<Shape> shape =
        shape_on(*wanted, {.collective = collective, .ranks = order_.size(), .root = position},
                 order_.topology(collective));
    if (!shape.ok()) return shape.status();
    return choice_of(*wanted, shape.value());
  }
  std::vector<Entry>& entries = table_of(collective, root).entries;
  auto entry = std::upper_bound(entries.begin() + 1, entries.end(), bytes,
                                [](std::int64_t b, const Entry& e) { return b < e.from_bytes; });
  --entry;
  if (entry->choice == nullptr) entry->choice = choice_of(*entry->algorithm, entry->shape);
  return entry->choice;
}

}  // namespace sluice::engine

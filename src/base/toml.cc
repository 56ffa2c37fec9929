#include "base/toml.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "base/format.h"
#include "base/text.h"

namespace sluice::base {

Result<TomlText> find_toml(std::string_view kind, const std::string& name_or_path,
                           std::span<const EmbeddedFile> embedded) {
  for (const EmbeddedFile& file : embedded) {
    if (file.name == name_or_path) return TomlText{std::string{file.toml}, name_or_path + ".toml"};
  }
  constexpr std::streamsize kMostBytes = 1 << 20;
  std::ifstream file{name_or_path, std::ios::binary};
  std::string text(static_cast<std::size_t>(kMostBytes) + 1, '\0');
  file.read(text.data(), kMostBytes + 1);
  if (!file.is_open() || file.bad()) {
    std::vector<std::string_view> names;
    for (const EmbeddedFile& each : embedded) names.push_back(each.name);
    const std::string_view nearest = nearest_name(name_or_path, names);
    return Status{
        Code::InvalidArgument,
        base::format("there is no {} and no file {}: {}", kind, quote(name_or_path),
                     nearest.empty() ? base::format("choose from {}", base::join(names, ", "))
                                     : base::format("did you mean {}?", nearest))};
  }
  if (file.gcount() > kMostBytes) {
    return Status{Code::InvalidInput,
                  base::format("{} is too long for a {} file", name_or_path, kind)};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return TomlText{std::move(text), name_or_path};
}

Result<toml::table> parse_toml(std::string_view text, const std::string& source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    return Status{Code::InvalidInput,
                  base::format("{}: {}", location(source, error.source()), error.description())};
  }
}

std::string location(const std::string& source, const toml::source_region& region) {
  return base::format("{}, line {}", source, region.begin.line);
}

double TomlTable::number(std::string_view key, double least, double most) {
  const toml::node* const node = find(key);
  if (node == nullptr) return least;
  const auto value = node->value<double>();
  if (!value || !(*value >= least && *value <= most)) {
    refuse_at(node->source(),
              base::format("{} must be a number from {} to {}", full_name(key), least, most));
    return least;
  }
  return *value;
}

double TomlTable::optional_number(std::string_view key, double otherwise, double least,
                                  double most) {
  return find_optional(key) == nullptr ? otherwise : number(key, least, most);
}

std::string TomlTable::text(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr) return {};
  const auto value = node->value<std::string>();
  if (!value)
    refuse_at(node->source(), base::format("{} must be a text in quotes", full_name(key)));
  return value.value_or("");
}

std::string TomlTable::optional_text(std::string_view key) {
  return find_optional(key) == nullptr ? std::string{} : text(key);
}

bool TomlTable::optional_flag(std::string_view key, bool otherwise) {
  const toml::node* const node = find_optional(key);
  if (node == nullptr) return otherwise;
  const auto value = node->value_exact<bool>();
  if (!value) refuse_at(node->source(), base::format("{} must be true or false", full_name(key)));
  return value.value_or(otherwise);
}

const toml::table* TomlTable::table(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr) return nullptr;
  if (node->as_table() == nullptr)
    refuse_at(node->source(), base::format("{} must be a table", full_name(key)));
  return node->as_table();
}

const toml::table* TomlTable::optional_table(std::string_view key) {
  return find_optional(key) == nullptr ? nullptr : table(key);
}

std::vector<const toml::table*> TomlTable::optional_tables(std::string_view key) {
  std::vector<const toml::table*> tables;
  const toml::node* const node = find_optional(key);
  if (node == nullptr) return tables;
  if (node->as_array() == nullptr || !node->as_array()->is_array_of_tables()) {
    refuse_at(node->source(),
              base::format("{} must be tables: [[{}]]", full_name(key), full_name(key)));
    return tables;
  }
  for (const toml::node& item : *node->as_array()) tables.push_back(item.as_table());
  return tables;
}

std::vector<int> TomlTable::optional_integers(std::string_view key, int least, int most) {
  std::vector<int> integers;
  const toml::node* const node = find_optional(key);
  if (node == nullptr) return integers;
  const auto wrong = [&] {
    refuse_at(node->source(),
              base::format("{} must be whole numbers from {} to {}", full_name(key), least, most));
  };
  if (node->as_array() == nullptr) wrong();
  for (std::size_t i = 0; node->as_array() != nullptr && i < node->as_array()->size(); ++i) {
    const auto value = node->as_array()->get(i)->value_exact<std::int64_t>();
    if (!value || *value < least || *value > most) wrong();
    integers.push_back(static_cast<int>(value.value_or(least)));
  }
  return integers;
}

std::vector<std::vector<std::string>> TomlTable::optional_lists(std::string_view key) {
  std::vector<std::vector<std::string>> lists;
  const toml::node* const node = find_optional(key);
  if (node == nullptr) return lists;
  const auto wrong = [&] {
    refuse_at(node->source(),
              base::format("{} must be lists of hosts: [[\"a\", \"b\"], [\"c\"]]", full_name(key)));
  };
  if (node->as_array() == nullptr) wrong();
  for (std::size_t i = 0; node->as_array() != nullptr && i < node->as_array()->size(); ++i) {
    lists.emplace_back();
    const toml::array* const items = node->as_array()->get(i)->as_array();
    if (items == nullptr) wrong();
    for (std::size_t j = 0; items != nullptr && j < items->size(); ++j) {
      const auto item = items->get(j)->value<std::string>();
      if (!item) wrong();
      lists.back().push_back(item.value_or(""));
    }
  }
  return lists;
}

std::vector<TomlTable::Pair> TomlTable::pairs(std::string_view key, double least, double most) {
  std::vector<Pair> pairs;
  const toml::node* const node = find(key);
  if (node == nullptr) return pairs;
  const auto wrong = [&] {
    refuse_at(node->source(),
              base::format("{} must be pairs of numbers from {} to {}, the first of each rising: "
                           "[[32, 157], [64, 160]]",
                           full_name(key), least, most));
  };
  const toml::array* const list = node->as_array();
  if (list == nullptr || list->empty()) wrong();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const toml::array* const items = list->get(i)->as_array();
    if (items == nullptr || items->size() != 2) {
      wrong();
      continue;
    }
    const Pair pair{items->get(0)->value<double>().value_or(-1),
                    items->get(1)->value<double>().value_or(-1)};
    const bool inside = std::min(pair.x, pair.y) >= least && std::max(pair.x, pair.y) <= most;
    if (!inside || (!pairs.empty() && pair.x <= pairs.back().x)) wrong();
    pairs.push_back(pair);
  }
  return pairs;
}

Status TomlTable::finish() {
  for (const auto& [key, node] : table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
    const std::string_view nearest = nearest_name(key.str(), known_);
    refuse_at(key.source(),
              base::format("there is no key {}{}", full_name(key.str()),
                           nearest.empty() ? "" : base::format(", did you mean {}?", nearest)));
  }
  return status_;
}

void TomlTable::refuse(std::string_view key, std::string_view what) {
  const toml::node* const node = table_.get(key);
  refuse_at(node == nullptr ? table_.source() : node->source(),
            base::format("{} {}", full_name(key), what));
}

const toml::node* TomlTable::find(std::string_view key) {
  const toml::node* const node = find_optional(key);
  if (node == nullptr) refuse_at(table_.source(), base::format("{} is missing", full_name(key)));
  return node;
}

const toml::node* TomlTable::find_optional(std::string_view key) {
  known_.push_back(key);
  return table_.get(key);
}

std::string TomlTable::full_name(std::string_view key) const {
  return base::format("{}{}", path_, key);
}

void TomlTable::refuse_at(const toml::source_region& region, std::string_view what) {
  if (!status_.ok()) return;
  status_ = {Code::InvalidInput, base::format("{}: {}", location(source_, region), what)};
}

}  // namespace sluice::base

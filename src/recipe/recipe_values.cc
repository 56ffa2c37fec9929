// recipe_values.cc - set_value() and show_value(): every kind of key, from TOML and back.

#include <cmath>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "recipe/recipe_keys.h"

namespace sluice::recipe {
namespace {

Status refusal(std::string message) { return {Code::InvalidInput, std::move(message)}; }

std::optional<double> number_of(const toml::node* node) {
  return node != nullptr && node->is_number() ? node->value<double>() : std::nullopt;
}

bool within(double value, double least, double most) { return value >= least && value <= most; }

// A TOML string: quoted, with special characters escaped.
std::string quoted(const std::string& text) {
  std::string shown = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      shown += '\\';
      shown += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      shown += base::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      shown += c;
    }
  }
  return shown + '"';
}

struct Reader {
  Recipe& recipe;
  std::string_view name;
  const toml::node& node;

  Status operator()(const NumberKey& key) const {
    const std::optional<double> value = number_of(&node);
    if (!value || !within(*value, key.least, key.most)) {
      return refusal(base::format("{} must be a number from {} to {}", name, key.least, key.most));
    }
    recipe.*key.field = *value;
    return {};
  }

  Status operator()(const IntegerKey& key) const {
    const Result<std::int64_t> value = whole(key.least, key.most);
    if (!value.ok()) return value.status();
    std::visit(
        [&](auto field) {
          recipe.*field =
              static_cast<std::remove_reference_t<decltype(recipe.*field)>>(value.value());
        },
        key.field);
    return {};
  }

  Status operator()(const BytesKey& key) const {
    Result<std::int64_t> bytes = node.is_string()
                                     ? base::parse_bytes(*node.value<std::string_view>())
                                     : whole(key.least, key.most);
    if (!bytes.ok()) return refusal(base::format("{}: {}", name, bytes.status().message()));
    if (bytes.value() < key.least || bytes.value() > key.most) {
      return refusal(base::format("{} must be from {} to {} bytes", name, key.least, key.most));
    }
    recipe.*key.field = static_cast<std::size_t>(bytes.value());
    return {};
  }

  Status operator()(const SwitchKey& key) const {
    if (!node.is_boolean()) return refusal(base::format("{} must be true or false", name));
    recipe.*key.field = *node.value<bool>();
    return {};
  }

  Status operator()(const TextKey& key) const {
    if (!node.is_string()) return refusal(base::format("{} must be a text in quotes", name));
    const auto text = *node.value<std::string>();
    if (key.check != nullptr) {
      const Status status = key.check(text);
      if (!status.ok()) return refusal(base::format("{}: {}", name, status.message()));
    }
    recipe.*key.field = text;
    return {};
  }

  Status operator()(const WordKey& key) const {
    const auto word = node.value<std::string_view>().value_or("");
    for (std::size_t i = 0; i < key.words.size(); ++i) {
      if (key.words[i] != word) continue;
      key.set(recipe, i);
      return {};
    }
    const std::string_view nearest = base::nearest_name(word, key.words);
    return refusal(
        base::format("{} must be {}{}", name, base::join(key.words, " or "),
                     nearest.empty() ? "" : base::format("; did you mean {}?", nearest)));
  }

  Status operator()(const IntervalKey& key) const {
    const toml::array* const array = node.as_array();
    const bool two = array != nullptr && array->size() == 2;
    const std::optional<double> least = two ? number_of(array->get(0)) : std::nullopt;
    const std::optional<double> most = two ? number_of(array->get(1)) : std::nullopt;
    if (!least || !most || !within(*least, key.least, key.most) ||
        !within(*most, *least, key.most)) {
      return refusal(
          base::format("{} must be [least, most], both from {} to {}", name, key.least, key.most));
    }
    recipe.*key.field = {*least, *most};
    return {};
  }

  Status operator()(const CountsKey& key) const {
    constexpr double kMost = 1 << 20;
    std::vector<int> counts;
    const toml::array* const array = node.as_array();
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      const double count = number_of(array->get(i)).value_or(0);
      if (!within(count, 1, kMost) || count != std::floor(count)) break;
      counts.push_back(static_cast<int>(count));
    }
    if (array == nullptr || counts.size() != array->size()) {
      return refusal(
          base::format("{} must be a list of whole numbers of at least 1: [3, 21, 57, 80]", name));
    }
    recipe.*key.field = std::move(counts);
    return {};
  }

  Status operator()(const EpochPairsKey& key) const {
    const auto wrong = [&] {
      return refusal(
          base::format("{} must be pairs of an epoch of at least {} and a {} from {} to {}{}, in "
                       "order of epochs: "
                       "[[30, {}], [60, {}]]",
                       name, key.least[0], key.what, key.least[1], key.most[1],
                       key.whole ? ", whole numbers" : "", key.whole ? "64" : "0.1",
                       key.whole ? "128" : "0.01"));
    };
    const toml::array* const array = node.as_array();
    if (array == nullptr) return wrong();
    std::vector<EpochPair> pairs;
    for (const toml::node& item : *array) {
      const toml::array* const two = item.as_array();
      if (two == nullptr || two->size() != 2) return wrong();
      EpochPair pair{};
      for (std::size_t i = 0; i < pair.size(); ++i) {
        const std::optional<double> value = number_of(two->get(i));
        if (!value || !within(*value, key.least[i], key.most[i])) return wrong();
        if (key.whole && *value != std::floor(*value)) return wrong();
        pair[i] = *value;
      }
      if (!pairs.empty() && pair[0] <= pairs.back()[0]) return wrong();
      pairs.push_back(pair);
    }
    key.set(recipe, pairs);
    return {};
  }

 private:
  Result<std::int64_t> whole(std::int64_t least, std::int64_t most) const {
    const std::optional<std::int64_t> value =
        node.is_number() ? node.value<std::int64_t>() : std::nullopt;
    if (!value || *value < least || *value > most) {
      return refusal(base::format("{} must be a whole number from {} to {}", name, least, most));
    }
    return *value;
  }
};

struct Writer {
  const Recipe& recipe;

  std::string operator()(const NumberKey& key) const {
    return base::format("{}", recipe.*key.field);
  }
  std::string operator()(const IntegerKey& key) const {
    return std::visit([&](auto field) { return base::format("{}", recipe.*field); }, key.field);
  }
  std::string operator()(const BytesKey& key) const {
    return base::format("{}", recipe.*key.field);
  }
  std::string operator()(const SwitchKey& key) const {
    return recipe.*key.field ? "true" : "false";
  }
  std::string operator()(const TextKey& key) const { return quoted(recipe.*key.field); }
  std::string operator()(const WordKey& key) const {
    return quoted(std::string{key.words[key.value(recipe)]});
  }
  std::string operator()(const IntervalKey& key) const {
    return base::format("[{}, {}]", (recipe.*key.field).least, (recipe.*key.field).most);
  }
  std::string operator()(const CountsKey& key) const {
    return base::format("[{}]", base::join(recipe.*key.field, ", "));
  }
  std::string operator()(const EpochPairsKey& key) const {
    std::vector<std::string> pairs;
    for (const auto& [epoch, what] : key.value(recipe))
      pairs.push_back(base::format("[{}, {}]", epoch, what));
    return base::format("[{}]", base::join(pairs, ", "));
  }
};

}  // namespace

Status set_value(Recipe& recipe, const RecipeKey& key, const toml::node& node) {
  return std::visit(Reader{recipe, key.name, node}, key.kind);
}

std::string show_value(const Recipe& recipe, const RecipeKey& key) {
  return std::visit(Writer{recipe}, key.kind);
}

}  // namespace sluice::recipe

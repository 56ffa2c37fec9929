#include "recipe/recipe.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "base/toml.h"
#include "recipe/models.h"
#include "recipe/recipe_keys.h"

namespace sluice::recipe {
namespace {

constexpr std::string_view kSourceTable = "source";
constexpr std::array<std::string_view, 6> kTags{"[S]", "[R]", "[D]", "[M]", "[M?]", "assumed"};

// Settings that are valid by themselves but not together.
struct Conflict {
  std::string_view key;  // the key to change
  std::string what;      // a sentence
};

std::optional<Conflict> check_rmsprop(const Recipe& recipe) {
  if (recipe.nesterov)
    return Conflict{"nesterov", "rmsprop_warm_up has no nesterov: use sgd or lars"};
  if (recipe.rate_place == LearningRateMode::Folded) {
    return Conflict{"rate_place",
                    "rmsprop_warm_up needs rate_place \"outside\": use that, sgd or lars"};
  }
  if (recipe.sparsity > 0) {
    return Conflict{"sparsity",
                    "rmsprop_warm_up needs all gradients at every step: use sgd or lars, "
                    "or sparsity 0"};
  }
  if (recipe.rate == 0)
    return Conflict{"rate", "rmsprop_warm_up divides by the learning rate: rate must not be 0"};
  if (recipe.warm_up_epochs > 0 && recipe.warm_up_from == 0) {
    return Conflict{"warm_up_from",
                    "rmsprop_warm_up divides by the learning rate: warm_up_from must not be 0"};
  }
  return std::nullopt;
}

std::optional<Conflict> find_conflict(const Recipe& recipe) {
  const Result<ModelTable> table = model_table(recipe.model, {.image = recipe.image});
  if (!table.ok()) return Conflict{"image", table.status().message()};
  const int grouped = std::accumulate(recipe.groups.begin(), recipe.groups.end(), 0);
  if (const int gradients = table.value().gradient_tensors(); grouped > 0 && grouped != gradients) {
    return Conflict{
        "groups",
        base::format(
            "groups adds up to {} gradients, but {} has {}: change groups, or set [] to use theta",
            grouped, recipe.model, gradients)};
  }
  if (recipe.augmentation == AugmentationKind::Shift && recipe.padding >= recipe.image) {
    return Conflict{
        "padding",
        base::format("padding {} can shift an image of {}x{} out of view: use less than {}",
                     recipe.padding, recipe.image, recipe.image, recipe.image)};
  }
  if (recipe.nesterov && recipe.momentum == 0)
    return Conflict{"nesterov", "nesterov needs momentum, but momentum is 0"};
  if (recipe.optimizer == OptimizerKind::Lars && recipe.decay_one_dimensional) {
    return Conflict{"decay_one_dimensional",
                    "lars never decays biases and batch norms: decay_one_dimensional must "
                    "be false"};
  }
  if (recipe.optimizer == OptimizerKind::RmspropWarmUp) return check_rmsprop(recipe);
  return std::nullopt;
}

// Builds a recipe from a text and overrides. Each stage reports its first mistake.
class RecipeLoader {
 public:
  explicit RecipeLoader(const std::string& source) : source_{source} {}

  Status read(const toml::table& table) {
    std::vector<Mistake> mistakes;
    for (const auto& [name, node] : table) {
      if (name.str() == kSourceTable) continue;
      const RecipeKey* const key = find_recipe_key(name.str());
      const Status status =
          key == nullptr ? no_such_key(name.str()) : set_value(recipe_, *key, node);
      if (!status.ok()) mistakes.push_back({name.source(), status.message()});
      locations_.emplace(name.str(), base::location(source_, name.source()));
      recipe_.sources.emplace(name.str(), "");
    }
    if (!mistakes.empty()) return first_of(mistakes);
    for (const RecipeKey& key : recipe_keys()) {
      if (key.required && !locations_.contains(key.name))
        return {Code::InvalidInput, base::format("{}: {} is missing", source_, key.name)};
    }
    return read_sources(table.get(kSourceTable));
  }

  Status apply(const std::string& setting) {
    const std::string location = base::format("--set {}", setting);
    const std::size_t equals = setting.find('=');
    const std::string name = trimmed(setting.substr(0, equals));
    if (equals == std::string::npos || name.empty()) {
      return {Code::InvalidArgument,
              base::format("--set {} must be key=value, like rate=0.1", base::quote(setting))};
    }
    const RecipeKey* const key = find_recipe_key(name);
    const Status status =
        key == nullptr ? no_such_key(name) : set_text(*key, trimmed(setting.substr(equals + 1)));
    if (!status.ok())
      return {Code::InvalidArgument, base::format("{}: {}", location, status.message())};
    locations_[name] = location;
    recipe_.sources[name] = "--set";
    return {};
  }

  Result<Recipe> finish() && {
    if (const auto conflict = find_conflict(recipe_)) {
      const auto location = locations_.find(conflict->key);
      return Status{
          Code::InvalidInput,
          base::format("{}: {}", location == locations_.end() ? source_ : location->second,
                       conflict->what)};
    }
    if (recipe_.decay == DecayKind::Polynomial && recipe_.poly_epochs == 0)
      recipe_.poly_epochs = std::max(0.0, recipe_.epochs - recipe_.warm_up_epochs);
    return std::move(recipe_);
  }

 private:
  struct Mistake {
    toml::source_region where;
    std::string what;
  };

  static Status no_such_key(std::string_view name) {
    return {Code::InvalidInput,
            base::format("there is no key {}{}", base::quote(name), nearest_key_hint(name))};
  }

  // toml++ sorts keys by name; people read a file from the top.
  Status first_of(const std::vector<Mistake>& mistakes) const {
    const auto first = std::min_element(
        mistakes.begin(), mistakes.end(),
        [](const Mistake& a, const Mistake& b) { return a.where.begin.line < b.where.begin.line; });
    return {Code::InvalidInput,
            base::format("{}: {}", base::location(source_, first->where), first->what)};
  }

  static std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
  }

  // A text that is not a TOML value is a string without quotes: model=resnet20.
  Status set_text(const RecipeKey& key, const std::string& text) {
    const Result<toml::table> table = base::parse_toml(base::format("value = {}", text), "");
    if (table.ok() && table.value().size() == 1)
      return set_value(recipe_, key, *table.value().get("value"));
    return set_value(recipe_, key, toml::value<std::string>{text});
  }

  Status read_sources(const toml::node* node) {
    if (node == nullptr) return {};
    const toml::table* const table = node->as_table();
    if (table == nullptr) {
      return {Code::InvalidInput, base::format("{}: source must be a table of tags",
                                               base::location(source_, node->source()))};
    }
    std::vector<Mistake> mistakes;
    for (const auto& [name, tag] : *table) {
      const auto text = tag.value<std::string>().value_or("");
      const bool tagged = std::any_of(kTags.begin(), kTags.end(), [&](std::string_view each) {
        return text.starts_with(each);
      });
      if (!locations_.contains(name.str())) {
        mistakes.push_back({name.source(), base::format("source.{} names a key that the file "
                                                        "does not set: set {}, or remove this line",
                                                        name.str(), name.str())});
      } else if (!tagged) {
        mistakes.push_back({name.source(), base::format("source.{} must begin with {}", name.str(),
                                                        base::join(kTags, " or "))});
      }
      recipe_.sources.insert_or_assign(std::string{name.str()}, text);
    }
    return mistakes.empty() ? Status{} : first_of(mistakes);
  }

  const std::string& source_;
  Recipe recipe_;
  std::map<std::string, std::string, std::less<>> locations_;  // of the keys that are set
};

std::string value_in(const std::map<std::string, std::string>& settings, const RecipeKey& key) {
  const auto found = settings.find(std::string{key.name});
  return found == settings.end() ? show_value(Recipe{}, key) : found->second;
}

}  // namespace

std::vector<RecipeSummary> known_recipes() {
  std::vector<RecipeSummary> recipes;
  for (const base::EmbeddedFile& file : base::embedded_recipes()) {
    const Result<Recipe> recipe = parse_recipe(file.toml, std::string{file.name} + ".toml");
    if (recipe.ok()) recipes.push_back({recipe.value().name, recipe.value().about});
  }
  return recipes;
}

Result<Recipe> load_recipe(std::string_view name_or_path, std::span<const std::string> overrides) {
  const Result<base::TomlText> found =
      base::find_toml("recipe", std::string{name_or_path}, base::embedded_recipes());
  if (!found.ok()) return found.status();
  return parse_recipe(found.value().text, found.value().source, overrides);
}

Result<Recipe> parse_recipe(std::string_view toml_text, const std::string& source,
                            std::span<const std::string> overrides) {
  const Result<toml::table> table = base::parse_toml(toml_text, source);
  if (!table.ok()) return table.status();
  RecipeLoader loader{source};
  if (Status status = loader.read(table.value()); !status.ok()) return status;
  for (const std::string& setting : overrides) {
    if (Status status = loader.apply(setting); !status.ok()) return status;
  }
  return std::move(loader).finish();
}

RecipeSettings settings_of(const Recipe& recipe) {
  RecipeSettings settings;
  for (const RecipeKey& key : recipe_keys())
    settings.emplace_back(key.name, show_value(recipe, key));
  return settings;
}

Result<Recipe> recipe_of(const std::map<std::string, std::string>& settings,
                         const std::string& source) {
  std::string text;
  for (const auto& [name, value] : settings) text += base::format("{} = {}\n", name, value);
  return parse_recipe(text, source);
}

std::string source_of(const Recipe& recipe, std::string_view key) {
  const auto found = recipe.sources.find(key);
  return found == recipe.sources.end() ? "default" : found->second;
}

Status may_resume(const std::map<std::string, std::string>& then, double epochs_done,
                  const Recipe& now) {
  for (const RecipeKey& key : recipe_keys()) {
    if (key.resumable) continue;
    const std::string before = value_in(then, key);
    const std::string after = show_value(now, key);
    if (before == after) continue;
    return {Code::InvalidArgument,
            base::format("{} was {} and is now {}, which would change the steps already taken: "
                         "resume with --set {}={}, or start a new run",
                         key.name, before, after, key.name, before)};
  }
  if (now.epochs < epochs_done) {
    return {Code::InvalidArgument,
            base::format("epochs is {}, but {} are already trained: use more epochs", now.epochs,
                         epochs_done)};
  }
  return {};
}

}  // namespace sluice::recipe

#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include <fstream>

namespace sluice::recipe {
namespace {

constexpr const char* kSmall = R"(name = "small"
model = "resnet20"
image = 32
epochs = 4
batch = 8
rate = 0.1
)";

Recipe with(const std::vector<std::string>& overrides) {
  return parse_recipe(kSmall, "small.toml", overrides).value();
}

std::string error_of(const std::string& more) {
  return parse_recipe(kSmall + more, "r.toml").status().message();
}

std::string override_error(const std::string& setting) {
  return parse_recipe(kSmall, "r.toml", std::vector{setting}).status().message();
}

TEST(Recipe, ReadsEveryKindOfValue) {
  const Recipe recipe = parse_recipe(std::string{kSmall} + R"(
about = "a \"quoted\" line"
nesterov = true
optimizer = "lars"
rate_place = "folded"
theta = "2M"
seed = 9223372036854775807
weight_decay = 1e-4
crop_area = [0.05, 0.9]
groups = []
drops = [[30, 0.1], [60.5, 0.01]]
batch_phases = [[2, 16]]
)",
                                     "r.toml")
                            .value();
  EXPECT_EQ(recipe.about, "a \"quoted\" line");
  EXPECT_TRUE(recipe.nesterov);
  EXPECT_EQ(recipe.optimizer, OptimizerKind::Lars);
  EXPECT_EQ(recipe.rate_place, LearningRateMode::Folded);
  EXPECT_EQ(recipe.theta, 2U << 20U);
  EXPECT_EQ(recipe.seed, 9223372036854775807U);
  EXPECT_EQ(recipe.weight_decay, 1e-4);
  EXPECT_EQ(recipe.crop_area, (Interval{0.05, 0.9}));
  EXPECT_EQ(recipe.drops, (std::vector<LearningRateDrop>{{30, 0.1}, {60.5, 0.01}}));
  EXPECT_EQ(recipe.batch_phases, (std::vector<BatchPhase>{{2, 16}}));
  EXPECT_EQ(recipe.epochs, 4);
}

TEST(Recipe, OverridesNeedNoQuotes) {
  const Recipe recipe =
      with({"model=lenet", " image = 28 ", "wire=f16", "rate=3e-2", "theta=64KB", "nesterov=true",
            "drops=[[1,0.5]]", "about=two words", "batch=16", "batch=4", "epochs=2.5"});
  EXPECT_EQ(recipe.model, "lenet");
  EXPECT_EQ(recipe.image, 28);
  EXPECT_EQ(recipe.wire, WireType::F16);
  EXPECT_EQ(recipe.rate, 0.03);
  EXPECT_EQ(recipe.theta, 64000U);
  EXPECT_TRUE(recipe.nesterov);
  EXPECT_EQ(recipe.drops, (std::vector<LearningRateDrop>{{1, 0.5}}));
  EXPECT_EQ(recipe.about, "two words");
  EXPECT_EQ(recipe.batch, 4) << "the last override wins";
  EXPECT_EQ(recipe.epochs, 2.5);
  EXPECT_EQ(with({"model=\"lenet\"", "image=28"}).model, "lenet");
}

TEST(Recipe, AnUnknownKeySuggestsTheNearestKey) {
  EXPECT_EQ(error_of("momentun = 0.9\n"),
            "r.toml, line 7: there is no key \"momentun\", did you mean momentum?");
  EXPECT_EQ(override_error("warmup_epochs=5"),
            "--set warmup_epochs=5: there is no key \"warmup_epochs\", did you mean "
            "warm_up_epochs?");
  EXPECT_EQ(override_error("xyzzyxyzzy=5"), "--set xyzzyxyzzy=5: there is no key \"xyzzyxyzzy\"");
  EXPECT_EQ(error_of("optimizer = \"lasr\"\n"),
            "r.toml, line 7: optimizer must be sgd or lars or rmsprop_warm_up; did you mean lars?");
  EXPECT_EQ(load_recipe("facebook-2h").status().message(),
            "there is no recipe and no file \"facebook-2h\": did you mean facebook-1h?");
}

TEST(Recipe, TheFirstMistakeInTheFileIsReported) {
  EXPECT_EQ(error_of("zebra = 1\nappel = 2\n").substr(0, 15), "r.toml, line 7:");
}

TEST(Recipe, InvalidValuesAreErrorsWithTheirLine) {
  EXPECT_EQ(error_of("momentum = 1.5\n"),
            "r.toml, line 7: momentum must be a number from 0 to 0.99999");
  EXPECT_EQ(error_of("momentum = nan\n"),
            "r.toml, line 7: momentum must be a number from 0 to 0.99999");
  EXPECT_EQ(error_of("momentum = true\n"),
            "r.toml, line 7: momentum must be a number from 0 to 0.99999");
  EXPECT_EQ(error_of("padding = 2.5\n"),
            "r.toml, line 7: padding must be a whole number from 0 to 1024");
  EXPECT_EQ(error_of("nesterov = 1\n"), "r.toml, line 7: nesterov must be true or false");
  EXPECT_EQ(error_of("algorithm = 3\n"), "r.toml, line 7: algorithm must be a text in quotes");
  EXPECT_EQ(error_of("crop_area = [0.9, 0.1]\n"),
            "r.toml, line 7: crop_area must be [least, most], both from 0.001 to 1");
  EXPECT_EQ(error_of("groups = [3, 0]\n"),
            "r.toml, line 7: groups must be a list of whole numbers of at least 1: [3, 21, 57, "
            "80]");
  EXPECT_EQ(
      error_of("drops = [[60, 0.1], [30, 0.01]]\n"),
      "r.toml, line 7: drops must be pairs of an epoch of at least 0 and a factor from 0 to 1000, "
      "in order of epochs: [[30, 0.1], [60, 0.01]]");
  EXPECT_EQ(error_of("batch_phases = [[1.5, 64]]\n").substr(0, 28), "r.toml, line 7: batch_phases");
  EXPECT_EQ(error_of("theta = \"4X\"\n").substr(0, 22), "r.toml, line 7: theta:");
  EXPECT_EQ(error_of("algorithm = \"rign\"\n"),
            "r.toml, line 7: algorithm: there is no algorithm \"rign\": did you mean ring?");
  EXPECT_EQ(error_of("[rate_table]\nx = 1\n").substr(0, 15), "r.toml, line 7:");
  EXPECT_EQ(error_of("momentum = \n").substr(0, 15), "r.toml, line 7:");
}

TEST(Recipe, InvalidOverridesAreErrorsThatNameThem) {
  EXPECT_EQ(override_error("batch=0"),
            "--set batch=0: batch must be a whole number from 1 to 1048576");
  EXPECT_EQ(override_error("batch=8\nrate=3"),
            "--set batch=8\nrate=3: batch must be a whole number from 1 to 1048576");
  EXPECT_EQ(override_error("batch"), "--set \"batch\" must be key=value, like rate=0.1");
  EXPECT_EQ(override_error("model=resnet21"),
            "--set model=resnet21: model: no model is called \"resnet21\"; did you mean resnet20?");
}

TEST(Recipe, ConflictingSettingsAreErrors) {
  EXPECT_EQ(error_of("nesterov = true\nmomentum = 0\n"),
            "r.toml, line 7: nesterov needs momentum, but momentum is 0");
  EXPECT_EQ(override_error("model=alexnet"),
            "r.toml, line 3: images of 32x32 are too small for alexnet");
  EXPECT_EQ(
      error_of("optimizer = \"lars\"\ndecay_one_dimensional = true\n"),
      "r.toml, line 8: lars never decays biases and batch norms: decay_one_dimensional must be "
      "false");
  EXPECT_EQ(error_of("augmentation = \"shift\"\npadding = 32\n"),
            "r.toml, line 8: padding 32 can shift an image of 32x32 out of view: use less than "
            "32");
  EXPECT_NE(error_of("optimizer = \"rmsprop_warm_up\"\nsparsity = 0.5\n").find("line 8"),
            std::string::npos);
  EXPECT_NE(error_of("optimizer = \"rmsprop_warm_up\"\nnesterov = true\n").find("line 8"),
            std::string::npos);
  EXPECT_NE(error_of("optimizer = \"rmsprop_warm_up\"\nrate_place = \"folded\"\n").find("line 8"),
            std::string::npos);
  EXPECT_NE(error_of("optimizer = \"rmsprop_warm_up\"\nwarm_up_epochs = 1\n").find("warm_up_from"),
            std::string::npos);
  // resnet20 has 20 weights, 19 batch norms of two and a bias.
  EXPECT_EQ(error_of("groups = [3, 21]\n").substr(0, 54),
            "r.toml, line 7: groups adds up to 24 gradients, but re");
  EXPECT_NE(override_error("groups=[1]").find("--set groups=[1]"), std::string::npos);
}

TEST(Recipe, NeedsItsRequiredKeys) {
  EXPECT_EQ(parse_recipe("name = \"x\"\n", "r.toml").status().message(),
            "r.toml: model is missing");
  EXPECT_EQ(parse_recipe("model = \"lenet\"\n", "r.toml").status().message(),
            "r.toml: name is missing");
}

TEST(Recipe, IsReadFromAPath) {
  const std::string path = testing::TempDir() + "own.toml";
  std::ofstream{path} << kSmall << "momentum = 2\n";
  EXPECT_EQ(load_recipe(path).status().message(),
            path + ", line 7: momentum must be a number from 0 to 0.99999");
  std::ofstream{path} << kSmall;
  EXPECT_EQ(load_recipe(path).value().model, "resnet20");
}

TEST(Recipe, SourcesAreReadFromTheFile) {
  const Recipe recipe =
      parse_recipe(std::string{kSmall} + "momentum = 0.8\n[source]\nrate = \"[R] a page\"\n",
                   "r.toml", std::vector<std::string>{"batch=4"})
          .value();
  EXPECT_EQ(source_of(recipe, "rate"), "[R] a page");
  EXPECT_EQ(source_of(recipe, "momentum"), "");
  EXPECT_EQ(source_of(recipe, "batch"), "--set");
  EXPECT_EQ(source_of(recipe, "nesterov"), "default");
  EXPECT_EQ(error_of("[source]\nmomentum = \"[R]\"\n"),
            "r.toml, line 8: source.momentum names a key that the file does not set: set "
            "momentum, or remove this line");
  EXPECT_EQ(error_of("[source]\nrate = \"sure\"\n"),
            "r.toml, line 8: source.rate must begin with [S] or [R] or [D] or [M] or [M?] or "
            "assumed");
}

std::map<std::string, std::string> as_map(const RecipeSettings& settings) {
  return {settings.begin(), settings.end()};
}

TEST(Recipe, SettingsAreReadBackExactly) {
  const Recipe recipe = with({"about=\"a \\\"b\\\" \\\\ c\"", "drops=[[0.5,0.1]]", "groups=[20,39]",
                              "batch_phases=[[1,16],[2,32]]", "crop_area=[0.1,0.30000000000000004]",
                              "rate=0.1", "epochs=1e5", "theta=1K", "weight_decay=1e-9"});
  const RecipeSettings settings = settings_of(recipe);
  const Recipe again = recipe_of(as_map(settings), "run.json").value();
  EXPECT_EQ(settings_of(again), settings);
  EXPECT_EQ(again.about, recipe.about);
  EXPECT_EQ(again.crop_area, recipe.crop_area);
  EXPECT_EQ(settings[0].first, "name");
  EXPECT_EQ(settings[0].second, "\"small\"");
}

TEST(Recipe, AResumedTrainingKeepsTheSettingsOfItsSteps) {
  const auto then = as_map(settings_of(with({})));
  EXPECT_TRUE(may_resume(then, 4, with({})).ok());
  EXPECT_TRUE(may_resume(then, 4,
                         with({"epochs=9", "target=90", "evaluate_every=2", "checkpoint_every=0.5",
                               "name=other"}))
                  .ok());
  EXPECT_EQ(may_resume(then, 2, with({"rate=0.2"})).message(),
            "rate was 0.1 and is now 0.2, which would change the steps already taken: resume with "
            "--set rate=0.1, or start a new run");
  EXPECT_EQ(may_resume(then, 3.5, with({"epochs=3"})).message(),
            "epochs is 3, but 3.5 are already trained: use more epochs");
}

TEST(Recipe, AResumedPolynomialKeepsItsLength) {
  const std::vector<std::string> poly{"decay=polynomial", "warm_up_epochs=1"};
  const auto then = as_map(settings_of(with(poly)));
  EXPECT_EQ(then.at("poly_epochs"), "3");
  std::vector<std::string> longer = poly;
  longer.emplace_back("epochs=9");
  EXPECT_EQ(may_resume(then, 2, with(longer)).message(),
            "poly_epochs was 3 and is now 8, which would change the steps already taken: resume "
            "with --set poly_epochs=3, or start a new run");
  longer.emplace_back("poly_epochs=3");
  EXPECT_TRUE(may_resume(then, 2, with(longer)).ok());
}

}  // namespace
}  // namespace sluice::recipe

#include "data/data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "data/formats/cifar10.h"
#include "data/formats/demo.h"
#include "data/formats/image_files.h"
#include "data/formats/mnist.h"
#include "data/formats/pack.h"
#include "data/formats/random_images.h"

namespace sluice::data {
namespace {

Result<Data> open_demo() {
  Data data;
  MemoryDataset train = demo_train();
  data.normalization = train.statistics();
  data.train = std::make_unique<MemoryDataset>(std::move(train));
  data.validation = std::make_unique<MemoryDataset>(demo_validation());
  data.classes = demo_classes();
  data.channels = 1;
  data.height = kDemoSide;
  data.width = kDemoSide;
  data.description =
      base::format("demo, version {}: {} drawn images to learn from, {} to validate, {} classes",
                   kDemoVersion, kDemoTrain, kDemoValidation, data.classes.size());
  return data;
}

struct Kind {
  std::string_view name;
  std::string_view place;  // what follows the colon; "" for none
  Result<Data> (*open)(const std::filesystem::path& place, const DataOptions& options);
};

using Path = std::filesystem::path;

constexpr std::array kKinds = {
    Kind{"demo", "", [](const Path&, const DataOptions&) { return open_demo(); }},
    Kind{"mnist", "DIR", [](const Path& place, const DataOptions&) { return open_mnist(place); }},
    Kind{"cifar10", "DIR",
         [](const Path& place, const DataOptions&) { return open_cifar10(place); }},
    Kind{"images", "DIR", open_images},
    Kind{"pack", "FILE", [](const Path& place, const DataOptions&) { return open_pack(place); }},
    Kind{"random", "SIDE", [](const Path& side, const DataOptions&) { return open_random(side); }},
};

Status refuse(std::string why) { return {Code::InvalidArgument, std::move(why)}; }

std::string usage(const Kind& kind) {
  return kind.place.empty() ? std::string{kind.name} : base::format("{}:{}", kind.name, kind.place);
}

Status unknown(std::string_view spec, std::string_view name) {
  std::error_code ignored;
  if (std::filesystem::is_directory(Path{spec}, ignored)) {
    return refuse(
        base::format("{} says where the data is, not what: images:{}?", base::quote(spec), spec));
  }
  std::vector<std::string_view> names;
  std::vector<std::string> usages;
  for (const Kind& kind : kKinds) {
    names.push_back(kind.name);
    usages.push_back(usage(kind));
  }
  const std::string_view nearest = base::nearest_name(name, names);
  return refuse(base::format("there is no data {}: {}", base::quote(spec),
                             nearest.empty() ? base::format("give {}", base::join(usages, ", "))
                                             : base::format("did you mean {}?", nearest)));
}

}  // namespace

Result<Data> open_data(std::string_view spec, const DataOptions& options) {
  const std::size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view place = colon == spec.npos ? "" : spec.substr(colon + 1);
  const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(),
                                        [name](const Kind& one) { return one.name == name; });
  if (kind == kKinds.end()) return unknown(spec, name);
  if (kind->place.empty() != place.empty() || (kind->place.empty() && colon != spec.npos)) {
    return refuse(base::format("the data {} must be given as {}", base::quote(spec), usage(*kind)));
  }
  return kind->open(Path{place}, options);
}

}  // namespace sluice::data

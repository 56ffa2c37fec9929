#include "data/data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "data/formats/formats.h"
#include "data/formats/pack.h"

namespace sluice::data {
namespace {

struct DataKind {
  std::string_view name;
  std::string_view argument;  // its name, after the colon; "": the kind has none
  Result<Data> (*open)(const std::filesystem::path& argument, const DataOptions& options);
};

using Path = std::filesystem::path;

constexpr std::array kDataKinds = {
    DataKind{"demo", "",
             [](const Path&, const DataOptions&) -> Result<Data> { return open_demo(); }},
    DataKind{"mnist", "DIR",
             [](const Path& argument, const DataOptions&) { return open_mnist(argument); }},
    DataKind{"cifar10", "DIR",
             [](const Path& argument, const DataOptions&) { return open_cifar10(argument); }},
    DataKind{"images", "DIR", open_images},
    DataKind{"pack", "FILE",
             [](const Path& argument, const DataOptions&) { return open_pack(argument); }},
    DataKind{"random", "SIDE",
             [](const Path& side, const DataOptions&) { return open_random(side); }},
};

Status refuse(std::string why) { return {Code::InvalidArgument, std::move(why)}; }

std::string usage(const DataKind& kind) {
  return kind.argument.empty() ? std::string{kind.name}
                               : base::format("{}:{}", kind.name, kind.argument);
}

Status unknown(std::string_view spec, std::string_view name) {
  std::error_code ignored;
  if (std::filesystem::is_directory(Path{spec}, ignored)) {
    return refuse(
        base::format("{} is a folder without the kind of its data: did you mean images:{}?",
                     base::quote(spec), spec));
  }
  std::vector<std::string_view> names;
  std::vector<std::string> usages;
  for (const DataKind& kind : kDataKinds) {
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
  const std::string_view argument = colon == spec.npos ? "" : spec.substr(colon + 1);
  const auto* const kind = std::find_if(kDataKinds.begin(), kDataKinds.end(),
                                        [name](const DataKind& one) { return one.name == name; });
  if (kind == kDataKinds.end()) return unknown(spec, name);
  if (kind->argument.empty() != argument.empty() ||
      (kind->argument.empty() && colon != spec.npos)) {
    return refuse(base::format("the data {} must be given as {}", base::quote(spec), usage(*kind)));
  }
  return kind->open(Path{argument}, options);
}

}  // namespace sluice::data

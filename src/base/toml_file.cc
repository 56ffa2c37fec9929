#include "base/toml_file.h"

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
                  base::format("{}: {}", place_of(source, error.source()), error.description())};
  }
}

std::string place_of(const std::string& source, const toml::source_region& where) {
  return base::format("{}, line {}", source, where.begin.line);
}

}  // namespace sluice::base

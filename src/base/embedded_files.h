// embedded_files.h - the files of clusters/ and recipes/, made part of the library by the build.
#pragma once

#include <span>
#include <string_view>

namespace sluice::base {

struct EmbeddedFile {
  std::string_view name;  // without .toml
  std::string_view toml;
};

// In order of names.
std::span<const EmbeddedFile> embedded_clusters();
std::span<const EmbeddedFile> embedded_recipes();

}  // namespace sluice::base

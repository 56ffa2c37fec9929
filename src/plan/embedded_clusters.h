// embedded_clusters.h - the files of clusters/, made part of the library by the build.
#pragma once

#include <span>
#include <string_view>

namespace sluice {

struct EmbeddedCluster {
  std::string_view name;
  std::string_view toml;
};

std::span<const EmbeddedCluster> embedded_clusters();

}  // namespace sluice

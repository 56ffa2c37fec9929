// toml_file.h - a TOML text, from the library by name or from a file, as a table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/embedded_files.h"
#include "base/toml.h"
#include "sluice/status.h"

namespace sluice::base {

struct TomlText {
  std::string text;
  std::string source;  // what messages call it
};

// `kind` is what such a file describes: "cluster". A name that is neither embedded nor a file is
// answered with the nearest one.
Result<TomlText> find_toml(std::string_view kind, const std::string& name_or_path,
                           std::span<const EmbeddedFile> embedded);

// A slip is named with its line.
Result<toml::table> parse_toml(std::string_view text, const std::string& source);

// "FILE, line 7"
std::string place_of(const std::string& source, const toml::source_region& where);

}  // namespace sluice::base

// toml.h - reads TOML files: clusters, recipes, published figures.
//
// Include toml++ only through this header. It turns off the assertions of toml++, because some fail
// on wrong files (a table name that begins with "!"), for which the parser returns an error anyway.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "sluice/status.h"
#include "sluice/version.h"

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace sluice::base {

struct TomlText {
  std::string text;
  std::string source;  // name of the text in messages
};

// Finds an embedded file by name, or else reads the file at that path. `kind` says in messages what
// the file describes: "cluster". The error for an unknown name suggests the nearest one.
SLUICE_API Result<TomlText> find_toml(std::string_view kind, const std::string& name_or_path,
                                      std::span<const EmbeddedFile> embedded);

// Parses a file. The message of a syntax error names the line.
SLUICE_API Result<toml::table> parse_toml(std::string_view text, const std::string& source);

// "FILE, line 7"
SLUICE_API std::string location(const std::string& source, const toml::source_region& region);

// Reads one table of a TOML file. Unknown keys and values out of bounds are errors.
//
// Read all keys, then call finish(): it returns the first error with its line, or names the first
// key that was not read. After an error, the readers return arbitrary values within the bounds.
class SLUICE_API TomlTable {
 public:
  // `path` is the prefix of keys in messages: "between.".
  TomlTable(const toml::table& table, std::string path, const std::string& source)
      : table_{table}, path_{std::move(path)}, source_{source} {}

  double number(std::string_view key, double least, double most);
  std::string text(std::string_view key);
  const toml::table* table(std::string_view key);

  // For optional keys.
  double optional_number(std::string_view key, double otherwise, double least, double most);
  bool optional_flag(std::string_view key, bool otherwise);
  std::string optional_text(std::string_view key);
  const toml::table* optional_table(std::string_view key);
  std::vector<const toml::table*> optional_tables(std::string_view key);  // [[key]]
  std::vector<int> optional_integers(std::string_view key, int least, int most);
  // Lists of strings: [["a", "b"], ["c"]].
  std::vector<std::vector<std::string>> optional_lists(std::string_view key);
  // Pairs of numbers in increasing order of the first: [[32, 157], [64, 160]].
  struct Pair {
    double x, y;
  };
  std::vector<Pair> pairs(std::string_view key, double least, double most);

  // Records another error in the value of a key.
  void refuse(std::string_view key, std::string_view what);
  // The first error. Call it last.
  Status finish();

 private:
  const toml::node* find(std::string_view key);
  const toml::node* find_optional(std::string_view key);
  std::string full_name(std::string_view key) const;
  void refuse_at(const toml::source_region& region, std::string_view what);

  const toml::table& table_;
  std::string path_;
  const std::string& source_;
  std::vector<std::string_view> known_;
  Status status_;
};

}  // namespace sluice::base

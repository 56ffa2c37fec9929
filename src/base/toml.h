// toml.h - reads TOML: clusters, recipes, published figures.
//
// Everything of ours includes toml++ by this header. It turns toml++'s assertions off, because some
// do not hold for every text (a table's name that begins with "!"); the parser reports such texts
// as errors by itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "sluice/status.h"

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace sluice::base {

struct TomlText {
  std::string text;
  std::string source;  // what messages call it
};

// Finds an embedded file by name, or reads a file. `kind` is what such a file describes: "cluster".
// For an unknown name the error suggests the nearest one.
Result<TomlText> find_toml(std::string_view kind, const std::string& name_or_path,
                           std::span<const EmbeddedFile> embedded);

// A syntax error is named with its line.
Result<toml::table> parse_toml(std::string_view text, const std::string& source);

// "FILE, line 7"
std::string place_of(const std::string& source, const toml::source_region& where);

// Reads one table of a TOML file. Every key must be known, every value within its bounds.
//
// Read the keys, then call finish(): it returns the first mistake with its line, or the first key
// that was not read. After a mistake the readers return some value within bounds; ignore it.
class TomlTable {
 public:
  // `path` stands before the keys in messages: "between.".
  TomlTable(const toml::table& table, std::string path, const std::string& source)
      : table_{table}, path_{std::move(path)}, source_{source} {}

  double number(std::string_view key, double least, double most);
  std::string word(std::string_view key);
  const toml::table* table(std::string_view key);

  // Keys that may be missing.
  double optional_number(std::string_view key, double otherwise, double least, double most);
  bool optional_flag(std::string_view key, bool otherwise);
  std::string optional_word(std::string_view key);
  const toml::table* optional_table(std::string_view key);
  std::vector<const toml::table*> optional_tables(std::string_view key);  // [[key]]
  std::vector<int> optional_wholes(std::string_view key, int least, int most);
  // Lists of texts: [["a", "b"], ["c"]].
  std::vector<std::vector<std::string>> optional_lists(std::string_view key);
  // Pairs of numbers, the first ones rising: [[32, 157], [64, 160]].
  struct Pair {
    double x, y;
  };
  std::vector<Pair> pairs(std::string_view key, double least, double most);

  // Reports any other mistake in the value of a key.
  void refuse(std::string_view key, std::string_view what);
  // Call it last.
  Status finish();

 private:
  const toml::node* find(std::string_view key);
  const toml::node* find_optional(std::string_view key);
  std::string full(std::string_view key) const;
  void refuse_at(const toml::source_region& where, std::string_view what);

  const toml::table& table_;
  std::string path_;
  const std::string& source_;
  std::vector<std::string_view> known_;
  Status status_;
};

}  // namespace sluice::base

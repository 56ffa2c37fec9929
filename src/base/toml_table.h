// toml_table.h - reads one table of a TOML file: every key must be known, every value in its
// bounds.
//
// Ask for the keys, then finish(): it has the first mistake, named with its line, or a key that
// nothing asked for. What is read after a mistake is a value within its bounds, to be thrown away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/toml.h"
#include "sluice/status.h"

namespace sluice::base {

class TomlTable {
 public:
  // `path` stands before the keys in messages: "between.".
  TomlTable(const toml::table& table, std::string path, const std::string& source)
      : table_{table}, path_{std::move(path)}, source_{source} {}

  double number(std::string_view key, double least, double most);
  std::string word(std::string_view key);
  const toml::table* table(std::string_view key);

  // Those that may be missing.
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

  // Something else is wrong with the value of a key.
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

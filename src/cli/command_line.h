// command_line.h - the options of a command, as CLI11 reads them.
//
// Only command_line.cc compiles CLI11, which costs ten seconds for every source that includes it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {  // NOLINT: the name that CLI11 has
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

// An argument is unknown, missing or not a legal value.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Each function returns the option itself, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_{option} {}

  Option* required();
  Option* capture_default_str();  // --help shows the present value as the default
  Option* excludes(const Option* other);
  Option* positive();
  Option* range(int least, int most);
  Option* one_value_each();  // of a repeatable option: it takes one value each time
  Option* hidden();          // --help does not show it

 private:
  CLI::Option* option_;
};

// A program, or one of its commands. The variables of options must outlive parse().
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& program);
  explicit CommandLine(CLI::App* command);  // a command of a program, which owns it
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CommandLine* add_subcommand(const std::string& name, const std::string& description);
  void require_subcommand();
  std::vector<std::string> subcommands() const;

  Option* add_option(const std::string& names, std::string& value, const std::string& help);
  Option* add_option(const std::string& names, std::vector<std::string>& values,
                     const std::string& help);
  Option* add_option(const std::string& names, int& value, const std::string& help);
  Option* add_option(const std::string& names, std::int64_t& value, const std::string& help);
  Option* add_option(const std::string& names, double& value, const std::string& help);
  Option* add_flag(const std::string& names, bool& value, const std::string& help = "");
  Option* option(const std::string& name);  // REQUIRES: it was added

  void set_version(const std::string& text);
  void footer(const std::string& text);
  void callback(std::function<void()> run);

  // Sets the variables, and runs the callback of the command that the arguments name. Returns false
  // if they ask for --help or --version, which it prints. Throws UsageError.
  bool parse(int argc, char** argv);

 private:
  Option* keep(CLI::Option* option);

  std::unique_ptr<CLI::App> program_;  // null in a command
  CLI::App* app_;
  std::deque<Option> options_;
  std::vector<std::unique_ptr<CommandLine>> commands_;
};

}  // namespace sluice::cli

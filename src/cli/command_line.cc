#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace sluice::cli {

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::excludes(const Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::positive() {
  option_->check(CLI::PositiveNumber);
  return this;
}

Option* Option::range(int least, int most) {
  option_->check(CLI::Range(least, most));
  return this;
}

Option* Option::one_value_each() {
  option_->allow_extra_args(false);
  return this;
}

Option* Option::hidden() {
  option_->group("");
  return this;
}

CommandLine::CommandLine(const std::string& description, const std::string& program)
    : program_{std::make_unique<CLI::App>(description, program)}, app_{program_.get()} {}

CommandLine::CommandLine(CLI::App* command) : app_{command} {}

CommandLine::~CommandLine() = default;

CommandLine* CommandLine::add_subcommand(const std::string& name, const std::string& description) {
  commands_.push_back(std::make_unique<CommandLine>(app_->add_subcommand(name, description)));
  return commands_.back().get();
}

void CommandLine::require_subcommand() { app_->require_subcommand(1); }

std::vector<std::string> CommandLine::subcommands() const {
  std::vector<std::string> names;
  for (const CLI::App* each : app_->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

Option* CommandLine::keep(CLI::Option* option) { return &options_.emplace_back(option); }

Option* CommandLine::add_option(const std::string& names, std::string& value,
                                const std::string& help) {
  return keep(app_->add_option(names, value, help));
}

Option* CommandLine::add_option(const std::string& names, std::vector<std::string>& values,
                                const std::string& help) {
  return keep(app_->add_option(names, values, help));
}

Option* CommandLine::add_option(const std::string& names, int& value, const std::string& help) {
  return keep(app_->add_option(names, value, help));
}

Option* CommandLine::add_option(const std::string& names, std::int64_t& value,
                                const std::string& help) {
  return keep(app_->add_option(names, value, help));
}

Option* CommandLine::add_option(const std::string& names, double& value, const std::string& help) {
  return keep(app_->add_option(names, value, help));
}

Option* CommandLine::add_flag(const std::string& names, bool& value, const std::string& help) {
  return keep(app_->add_flag(names, value, help));
}

Option* CommandLine::option(const std::string& name) { return keep(app_->get_option(name)); }

void CommandLine::set_version(const std::string& text) {
  app_->set_version_flag("--version", text);
}

void CommandLine::footer(const std::string& text) { app_->footer(text); }

void CommandLine::callback(std::function<void()> run) { app_->callback(std::move(run)); }

bool CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::Success& success) {
    app_->exit(success);  // prints the text of --help or --version
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError{error.what()};
  }
}

}  // namespace sluice::cli

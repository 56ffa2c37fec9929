// program.h - the parts of every benchmark program: main(), a progress bar and the median.
#pragma once

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/format.h"

namespace sluice::bench {

// Thrown by a waiting function when the user stops the benchmark.
struct Stopped {
  int signal;
};

// Parses the options and runs `body`. Returns the exit status of main(): that of `body`, 2 on wrong
// usage or an error, which is printed, or 128 + signal.
template <typename Body>
int run_program(CLI::App& app, int argc, char** argv, const Body& body) {
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a crash keeps the lines printed so far
  try {
    app.parse(argc, argv);
    return body();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Stopped& stopped) {
    return 128 + stopped.signal;
  } catch (const std::exception& error) {
    base::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 2;
  }
}

// REQUIRES: not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The progress of a long measurement: a bar on a terminal, else a line per begin().
class Progress {
 public:
  // `total` in the unit of advance().
  explicit Progress(double total) : total_{total} {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(const std::string& task) {
    task_ = task;
    if (terminal_) return show();
    base::print(stderr, "{:3.0f}%  {}{}\n", 100 * done_ / total_, task_, time_left());
  }
  void advance(double amount) {
    done_ += amount;
    if (terminal_ && Clock::now() - shown_ > std::chrono::milliseconds{200}) show();
  }
  // Erases the bar before a line of results.
  void clear() const {
    if (terminal_) base::print(stderr, "\r\033[K");
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string time_left() const {
    if (done_ < 0.02 * total_) return "";
    const double elapsed_s = std::chrono::duration<double>(Clock::now() - start_).count();
    const double left_s = elapsed_s * (total_ - done_) / done_;
    return left_s < 90 ? base::format(", about {:.0f} s left", left_s)
                       : base::format(", about {:.0f} min left", left_s / 60);
  }
  void show() {
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(kWidth * done_ / total_);
    base::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {:.0f}%  {}{}", "", filled, "", kWidth - filled,
                100 * done_ / total_, task_, time_left());
    shown_ = Clock::now();
  }

  bool terminal_ = isatty(STDERR_FILENO) == 1;
  double total_;
  double done_ = 0;
  std::string task_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_;
};

}  // namespace sluice::bench

// progress.h - how far a long measurement is: a bar on a terminal, a line a step elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace sluice::bench {

class Progress {
 public:
  // `total` in units of whatever advance() is given.
  explicit Progress(double total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(const std::string& what);
  void advance(double amount);
  // Makes way for a line of results.
  void clear();

 private:
  std::string time_left() const;
  void show();

  bool terminal_;
  double total_;
  double done_ = 0;
  std::string what_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace sluice::bench

#include "bench/allreduce/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/format.h"

namespace sluice::bench {

using Clock = std::chrono::steady_clock;

Progress::Progress(double total)
    : terminal_{isatty(STDERR_FILENO) == 1}, total_{total}, start_{Clock::now()} {}

std::string Progress::time_left() const {
  const double took_s = std::chrono::duration<double>(Clock::now() - start_).count();
  if (done_ < 0.02 * total_) return "";
  const double left_s = took_s * (total_ - done_) / done_;
  return left_s < 90 ? base::format(", about {:.0f} s left", left_s)
                     : base::format(", about {:.0f} min left", left_s / 60);
}

void Progress::begin(const std::string& what) {
  what_ = what;
  if (terminal_) return show();
  base::print(stderr, "{:3.0f}%  {}{}\n", 100 * done_ / total_, what_, time_left());
}

void Progress::advance(double amount) {
  done_ += amount;
  if (terminal_ && Clock::now() - shown_ > std::chrono::milliseconds{200}) show();
}

void Progress::show() {
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(kWidth * done_ / total_);
  base::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {:.0f}%  {}{}", "", filled, "", kWidth - filled,
              100 * done_ / total_, what_, time_left());
  shown_ = Clock::now();
}

void Progress::clear() {
  if (terminal_) base::print(stderr, "\r\033[K");
}

}  // namespace sluice::bench

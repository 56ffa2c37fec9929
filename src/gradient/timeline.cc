#include "sluice/analysis/timeline.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"

namespace sluice {
namespace {

// The row in the trace: 0 is the compute thread. Each bucket has its own row, because several are
// in flight at the same time.
std::int64_t row_of(const Timeline::Event& event) {
  return event.thread == Timeline::Thread::Compute ? 0 : event.number + 2;
}

}  // namespace

Timeline::Timeline(std::size_t capacity)
    : start_{std::chrono::steady_clock::now()}, events_(capacity) {}

std::int64_t Timeline::now_ns() const {
  return std::chrono::nanoseconds{std::chrono::steady_clock::now() - start_}.count();
}

void Timeline::add(const Event& event) noexcept {
  const std::size_t index = added_.fetch_add(1, std::memory_order_relaxed);
  if (index < events_.size()) events_[index] = event;
}

void Timeline::add_wait(const char* name, std::int64_t begin_ns, std::int64_t end_ns) noexcept {
  add({.name = name, .begin_ns = begin_ns, .end_ns = end_ns});
  step_waited_ns_ += end_ns - begin_ns;
  all_waited_ns_ += end_ns - begin_ns;
}

void Timeline::end_step() noexcept {
  const std::int64_t now = now_ns();
  if (step_begin_ns_ >= 0) {
    steps_ns_ += now - step_begin_ns_;
    waited_ns_ += step_waited_ns_;
  }
  step_begin_ns_ = now;
  step_waited_ns_ = 0;
}

std::span<const Timeline::Event> Timeline::events() const {
  return {events_.data(), std::min(added_.load(std::memory_order_relaxed), events_.size())};
}

std::size_t Timeline::dropped() const {
  return added_.load(std::memory_order_relaxed) - events().size();
}

double Timeline::exposed_comm_fraction() const {
  return steps_ns_ == 0 ? 0 : static_cast<double>(waited_ns_) / static_cast<double>(steps_ns_);
}

void Timeline::restart_steps() {
  waited_ns_ = 0;
  steps_ns_ = 0;
  step_waited_ns_ = 0;
  step_begin_ns_ = now_ns();
}

std::string Timeline::chrome_trace(int rank, std::string_view kind) const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  const auto name_row = [&](std::int64_t row, const std::string& name) {
    base::append(text,
                 R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": )"
                 R"({{"name": "{}"}}}})",
                 rank, row, name);
  };
  base::append(text,
               R"({{"ph": "M", "name": "process_name", "pid": {}, "args": )"
               R"({{"name": "rank {}{}{}"}}}})",
               rank, rank, kind.empty() ? "" : ", ", kind);
  text += ",\n";
  name_row(0, "compute");
  std::int64_t rows = 1;
  for (const Event& event : events()) rows = std::max(rows, row_of(event) + 1);
  for (std::int64_t row = 1; row < rows; ++row) {
    text += ",\n";
    name_row(row, row == 1 ? "progress" : base::format("bucket {}", row - 2));
  }
  for (const Event& event : events()) {
    text += ",\n";
    base::append(
        text, R"({{"ph": "X", "name": "{}", "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}}})",
        event.name, rank, row_of(event), static_cast<double>(event.begin_ns) / 1000,
        static_cast<double>(event.end_ns - event.begin_ns) / 1000);
  }
  base::append(text, "\n], \"dropped\": {}}}\n", dropped());
  return text;
}

}  // namespace sluice

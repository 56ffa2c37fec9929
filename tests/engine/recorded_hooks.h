// recorded_hooks.h - background collectives whose hooks write the input and keep the result.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/internal_collectives.h"

namespace sluice::engine {

// The value differs between ranks, collectives and elements, and is small enough for exact sums.
inline float value_of(Rank rank, int number, std::size_t i) {
  return static_cast<float>(rank * 1009 + number * 101 + static_cast<int>(i % 97));
}
inline float sum_of(int ranks, int number, std::size_t i) {
  float total = 0;
  for (Rank rank = 0; rank < ranks; ++rank) total += value_of(rank, number, i);
  return total;
}

// The hooks of one collective: load() writes the input, unload() keeps the result.
class RecordedHooks final : public ProgressHooks {
 public:
  RecordedHooks(Rank rank, int number, float* data, std::size_t count, std::atomic<int>& turn)
      : rank_{rank}, number_{number}, data_{data}, count_{count}, turn_{&turn} {}

  void load() override {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = value_of(rank_, number_, i);
    loaded.store(true);
  }
  void unload() override {
    result.assign(data_, data_ + count_);
    in_turn = turn_->fetch_add(1) == number_;
    unloaded.store(true);
  }

  std::atomic<bool> loaded{false};
  std::atomic<bool> unloaded{false};
  bool in_turn = false;  // unloaded in the order of issue
  std::vector<float> result;

 private:
  Rank rank_;
  int number_;
  float* data_;
  std::size_t count_;
  std::atomic<int>* turn_;
};

// Several all_reduces in the background, each in its own part of a pool.
struct BackgroundSums {
  BackgroundSums(Communicator& comm, int number, std::size_t most)
      : pool{comm.allocate(bytes(number, most))} {
    for (int e = 0; e < number; ++e) {
      const std::size_t count = most == 0 ? 0 : (most * static_cast<std::size_t>(e + 1)) / 3 + 1;
      float* const data = pool.as<float>().data() + static_cast<std::size_t>(e) * (2 * most + 1);
      hooks.push_back(
          std::make_unique<RecordedHooks>(comm.rank(), e, data, std::min(count, 2 * most), turn));
      counts.push_back(std::min(count, 2 * most));
      buffers.push_back(data);
    }
  }
  static std::size_t bytes(int number, std::size_t most) {
    return static_cast<std::size_t>(number) * (2 * most + 1) * sizeof(float);
  }
  Work issue(Communicator& comm, int e, const CollectiveOptions& options = {}) {
    const auto at = static_cast<std::size_t>(e);
    return all_reduce_in_background(comm, std::span{buffers[at], counts[at]}, options,
                                    hooks[at].get());
  }
  void expect_sums(int ranks) const {
    for (std::size_t e = 0; e < hooks.size(); ++e) {
      EXPECT_TRUE(hooks[e]->in_turn) << e;
      ASSERT_EQ(hooks[e]->result.size(), counts[e]);
      for (std::size_t i = 0; i < counts[e]; ++i)
        ASSERT_EQ(hooks[e]->result[i], sum_of(ranks, static_cast<int>(e), i)) << e << ' ' << i;
    }
  }

  Pool pool;
  std::atomic<int> turn{0};
  std::vector<std::unique_ptr<RecordedHooks>> hooks;
  std::vector<std::size_t> counts;
  std::vector<float*> buffers;
};

}  // namespace sluice::engine

// recorded_hooks.h - errands that write their input, keep their result and know the right one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/internal_collectives.h"

namespace sluice::engine {

// Unique for each rank, errand and element, and small enough to be summed exactly.
inline float value_of(Rank rank, int errand, std::size_t i) {
  return static_cast<float>(rank * 1009 + errand * 101 + static_cast<int>(i % 97));
}
inline float sum_of(int ranks, int errand, std::size_t i) {
  float total = 0;
  for (Rank rank = 0; rank < ranks; ++rank) total += value_of(rank, errand, i);
  return total;
}

// Writes its input when it is loaded, and keeps the result and when it had it.
class Fill final : public ProgressHooks {
 public:
  Fill(Rank rank, int number, float* data, std::size_t count, std::atomic<int>& turn)
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
  bool in_turn = false;
  std::vector<float> result;

 private:
  Rank rank_;
  int number_;
  float* data_;
  std::size_t count_;
  std::atomic<int>* turn_;
};

struct Errands {
  Errands(Communicator& comm, int errands, std::size_t most)
      : pool{comm.allocate(bytes(errands, most))} {
    for (int e = 0; e < errands; ++e) {
      const std::size_t count = most == 0 ? 0 : (most * static_cast<std::size_t>(e + 1)) / 3 + 1;
      float* const data = pool.as<float>().data() + static_cast<std::size_t>(e) * (2 * most + 1);
      fills.push_back(
          std::make_unique<Fill>(comm.rank(), e, data, std::min(count, 2 * most), turn));
      counts.push_back(std::min(count, 2 * most));
      datas.push_back(data);
    }
  }
  static std::size_t bytes(int errands, std::size_t most) {
    return static_cast<std::size_t>(errands) * (2 * most + 1) * sizeof(float);
  }
  Work issue(Communicator& comm, int e, const CollectiveOptions& options = {}) {
    const auto at = static_cast<std::size_t>(e);
    return all_reduce_in_background(comm, datas[at], counts[at], options, fills[at].get());
  }
  void expect_sums(int ranks) const {
    for (std::size_t e = 0; e < fills.size(); ++e) {
      EXPECT_TRUE(fills[e]->in_turn) << e;
      ASSERT_EQ(fills[e]->result.size(), counts[e]);
      for (std::size_t i = 0; i < counts[e]; ++i)
        ASSERT_EQ(fills[e]->result[i], sum_of(ranks, static_cast<int>(e), i)) << e << ' ' << i;
    }
  }

  Pool pool;
  std::atomic<int> turn{0};
  std::vector<std::unique_ptr<Fill>> fills;
  std::vector<std::size_t> counts;
  std::vector<float*> datas;
};

}  // namespace sluice::engine

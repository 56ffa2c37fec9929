// equivalence.h - ranks on parts of a batch do what one rank does on the whole of it. Each function
// is called by every rank.
#pragma once

#include <gtest/gtest.h>

#include "sluice/algorithms.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch::equivalence {

inline constexpr std::size_t kThetas[] = {1, 900, std::size_t{1} << 40U};

// Sums over parts of a batch are rounded in another order than sums over the whole; ten steps
// multiply that by about a hundred.
inline double tolerance(torch::ScalarType type) { return type == torch::kDouble ? 1e-10 : 1e-5; }

inline void ranks_equal_one(Communicator& comm, bool normalise) {
  for (const torch::ScalarType type : {torch::kDouble, torch::kFloat}) {
    Setting setting{.type = type, .normalise = normalise};
    const NamedTensors alone = train_alone(setting);
    for (std::size_t i = 0; i < std::size(kThetas); ++i) {
      const std::size_t theta = kThetas[i];
      setting.options.theta = theta;
      setting.clearing = kClearings[i];
      EXPECT_LT(relative_distance(train(setting, comm), alone), tolerance(type))
          << comm.size() << " ranks, theta " << theta << ", " << c10::toString(type);
    }
  }
}

// Even none.
inline void parts_may_differ_in_size(Communicator& comm) {
  for (const bool normalise : {false, true}) {
    const Setting setting{.normalise = normalise, .begin = [](Rank rank, int ranks) {
                            if (rank <= 1) return 0;
                            return rank == ranks ? kBatch : 5 * (rank - 1);
                          }};
    EXPECT_LT(relative_distance(train(setting, comm), train_alone(setting)), 1e-10)
        << (normalise ? "normalised" : "plain");
  }
}

inline void direct_has_the_same_bits_whatever_theta(Communicator& comm) {
  Setting setting{.type = torch::kFloat, .options = {.algorithm = "direct"}};
  std::optional<NamedTensors> before;
  for (const std::size_t theta : kThetas) {
    setting.options.theta = theta;
    const NamedTensors now = train(setting, comm);
    EXPECT_TRUE(!before || same_bits(now, *before)) << "theta " << theta;
    before = now;
  }
}

inline void all_ranks_have_the_same_bits(Communicator& comm) {
  for (const Algorithm& algorithm : built_in_algorithms()) {
    if (!algorithm.supports(Collective::AllReduce)) continue;
    for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
      for (const bool double_buffering : {false, true}) {
        const Setting setting{.type = torch::kFloat,
                              .normalise = true,
                              .options = {.theta = 900,
                                          .wire = wire,
                                          .force_wire = true,
                                          .double_buffering = double_buffering,
                                          .algorithm = std::string{algorithm.name}}};
        train(setting, comm, [&](const torch::nn::Module& module) {
          EXPECT_FALSE(equalise(weights(module), comm))
              << algorithm.name << ", wire " << static_cast<int>(wire)
              << (double_buffering ? ", double buffering" : "");
        });
      }
    }
  }
}

}  // namespace sluice::libtorch::equivalence

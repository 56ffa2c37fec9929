#include "kernels/residual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/samples.h"

namespace sluice::kernels {
namespace {

float value(std::size_t i, int salt) {
  return std::sin(static_cast<float>(i + 1) * static_cast<float>(salt)) *
         std::ldexp(1.0f, static_cast<int>(i % 9) - 4);
}

Sample values(std::size_t count, std::size_t shift, int salt) {
  Sample sample{DataType::F32, count, shift};
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<float*>(sample.data())[i] = value(i, salt);
  }
  return sample;
}

float* floats(Sample& sample) { return static_cast<float*>(sample.data()); }

// Calls body(addend, v, norm) with the expected v and its norm, for r = value(i, 3).
template <class Body>
void for_each_case(Body body) {
  for (const std::size_t count : {0, 1, 5, 31, 32, 33, 64, 65, 1000, 4099}) {
    for (const bool decays : {false, true}) {
      SCOPED_TRACE(testing::Message() << count << (decays ? " with decay" : ""));
      Sample gradient = values(count, count % 7, 1);
      Sample weights = values(count, count % 3, 2);
      Addend addend{.gradient = floats(gradient), .scale = 0.25f};
      if (decays) {
        addend.weights = floats(weights);
        addend.decay = 0.07f;
      }
      std::vector<float> v(count);
      for (std::size_t i = 0; i < count; ++i) {
        float added = 0.25f * value(i, 1);
        if (decays) added += 0.07f * value(i, 2);
        v[i] = value(i, 3) + added;
      }
      const double norm = reference::norm(DataType::F32, v.data(), count, false);
      on_every_instruction_set([&] { body(addend, v, norm); });
    }
  }
}

bool equal(const Sample& sample, const std::vector<float>& v) {
  return sample.guards_hold() &&
         (v.empty() || std::memcmp(sample.data(), v.data(), sample.bytes()) == 0);
}

TEST(Residual, AccumulatesAStep) {
  for_each_case([](const Addend& addend, const std::vector<float>& v, double norm) {
    Sample r = values(v.size(), 5, 3);
    EXPECT_EQ(accumulate(floats(r), addend, v.size()), norm);
    EXPECT_TRUE(equal(r, v));
  });
}

TEST(Residual, IsZeroAfterDraining) {
  for_each_case([](const Addend& addend, const std::vector<float>& v, double norm) {
    Sample r = values(v.size(), 5, 3);
    Sample to{DataType::F32, v.size(), 2};
    EXPECT_EQ(drain(floats(to), floats(r), addend, v.size()), norm);
    EXPECT_TRUE(equal(to, v));
    EXPECT_TRUE(equal(r, std::vector<float>(v.size(), 0)));
  });
}

TEST(Residual, DrainsIntoTheGradientAndBeforeIt) {
  for_each_case([](const Addend& addend, const std::vector<float>& v, double norm) {
    for (const std::size_t before : {0, 1, 4, 33}) {
      std::vector<float> memory(before + v.size());
      std::copy_n(addend.gradient, v.size(), memory.begin() + static_cast<std::ptrdiff_t>(before));
      Addend inside = addend;
      inside.gradient = memory.data() + before;
      Sample r = values(v.size(), 5, 3);
      EXPECT_EQ(drain(memory.data(), floats(r), inside, v.size()), norm);
      EXPECT_TRUE(std::equal(v.begin(), v.end(), memory.begin())) << before;
    }
  });
}

TEST(Residual, DoesNotChangeInASumOrANorm) {
  for_each_case([](const Addend& addend, const std::vector<float>& v, double norm) {
    Sample r = values(v.size(), 5, 3);
    const Sample before = values(v.size(), 5, 3);
    Sample to{DataType::F32, v.size(), 1};
    EXPECT_EQ(sum_to(floats(to), floats(r), addend, v.size()), norm);
    EXPECT_TRUE(equal(to, v));
    EXPECT_EQ(norm_of_sum(floats(r), addend, v.size()), norm);
    EXPECT_EQ(std::memcmp(r.data(), before.data(), r.bytes()), 0);
  });
}

TEST(Residual, HasAnInfiniteNormOrNanWithSuchAnElement) {
  for (const float special :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t index : {0, 40, 69}) {
      std::vector<float> gradient(70, 1);
      std::vector<float> r(70, std::numeric_limits<float>::max() / 100);
      gradient[index] = special;
      on_every_instruction_set([&] {
        EXPECT_FALSE(std::isfinite(norm_of_sum(r.data(), {.gradient = gradient.data()}, 70)));
        EXPECT_TRUE(std::isfinite(norm_of_sum(r.data(), {.gradient = r.data()}, 70)));
      });
    }
  }
}

}  // namespace
}  // namespace sluice::kernels

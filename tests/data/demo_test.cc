#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "data/formats/formats.h"

namespace sluice::data {
namespace {

// A change of any image must raise kDemoVersion: accuracies before and after cannot be compared.
TEST(Demo, ItsVersionStandsForThesePixels) {
  const auto hash = [](const MemoryDataset& images) {
    return XXH64(images.pixels().data(), images.pixels().size(), 0);
  };
  EXPECT_EQ(kDemoVersion, 1);
  EXPECT_EQ(hash(demo_train()), 0x49FEFAC46D1B99C7);
  EXPECT_EQ(hash(demo_validation()), 0x1B27B6093389DD89);
}

TEST(Demo, AnImageIsAFunctionOfItsNumber) {
  const MemoryDataset train = demo_train();
  const MemoryDataset validation = demo_validation();
  std::vector<std::uint8_t> drawn(28 * 28);
  Image image;
  for (const std::size_t sample : {std::size_t{0}, std::size_t{7}, kDemoTrain - 1}) {
    draw_demo(sample, drawn);
    ASSERT_TRUE(train.decode(sample, image).ok());
    EXPECT_EQ(image.pixels, drawn);
    EXPECT_EQ(train.label(sample), static_cast<int>(sample % 10));
  }
  draw_demo(kDemoTrain + 3, drawn);
  ASSERT_TRUE(validation.decode(3, image).ok());
  EXPECT_EQ(image.pixels, drawn);
}

// Softmax regression by plain gradient descent, one sample at a time.
class Linear {
 public:
  static constexpr std::size_t kInputs = 28 * 28;
  static constexpr std::size_t kClasses = 10;

  explicit Linear(const Normalization& normalization)
      : mean_{static_cast<float>(normalization.mean[0])},
        scale_{static_cast<float>(1 / normalization.deviation[0])} {}

  void learn(const MemoryDataset& images, float rate, int epochs) {
    std::vector<std::size_t> order(images.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    base::Random random{1};
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (std::size_t left = order.size(); left > 1; --left) {
        std::swap(order[left - 1], order[random.below(left)]);
      }
      for (const std::size_t sample : order) {
        score(images, sample);
        for (std::size_t c = 0; c < kClasses; ++c) {
          const bool right = static_cast<int>(c) == images.label(sample);
          const float step = rate * ((right ? 1.0F : 0.0F) - scores_[c]);
          for (std::size_t i = 0; i < kInputs; ++i) weights_[c * kInputs + i] += step * input_[i];
          biases_[c] += step;
        }
      }
    }
  }

  double accuracy(const MemoryDataset& images) {
    std::size_t right = 0;
    for (std::size_t sample = 0; sample < images.size(); ++sample) {
      score(images, sample);
      const auto best = std::max_element(scores_.begin(), scores_.end()) - scores_.begin();
      right += best == images.label(sample) ? 1U : 0U;
    }
    return 100.0 * static_cast<double>(right) / static_cast<double>(images.size());
  }

 private:
  void score(const MemoryDataset& images, std::size_t sample) {
    const std::uint8_t* const pixels = images.pixels().data() + sample * kInputs;
    for (std::size_t i = 0; i < kInputs; ++i) {
      input_[i] = (static_cast<float>(pixels[i]) - mean_) * scale_;
    }
    float largest = -1e30F;
    for (std::size_t c = 0; c < kClasses; ++c) {
      scores_[c] = std::inner_product(input_.begin(), input_.end(),
                                      weights_.begin() + static_cast<std::ptrdiff_t>(c * kInputs),
                                      biases_[c]);
      largest = std::max(largest, scores_[c]);
    }
    float sum = 0;
    for (float& value : scores_) sum += value = std::exp(value - largest);
    for (float& value : scores_) value /= sum;
  }

  float mean_;
  float scale_;
  std::vector<float> weights_ = std::vector<float>(kInputs * kClasses);
  std::vector<float> biases_ = std::vector<float>(kClasses);
  std::vector<float> input_ = std::vector<float>(kInputs);
  std::vector<float> scores_ = std::vector<float>(kClasses);
};

TEST(Demo, IsTooHardForLinearModels) {
  const MemoryDataset train = demo_train();
  const MemoryDataset validation = demo_validation();
  double best = 0;
  for (const float rate : {1e-5F, 1e-4F, 3e-4F, 1e-3F, 1e-2F}) {
    Linear model{train.statistics()};
    model.learn(train, rate, 2);
    best = std::max(best, model.accuracy(validation));
  }
  RecordProperty("best_percent", std::to_string(best));
  EXPECT_LT(best, 70);
  EXPECT_GT(best, 8);  // it learnt what there is to learn: guessing is 10
}

}  // namespace
}  // namespace sluice::data

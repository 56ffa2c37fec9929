// The ranks are elements of an array, and the test itself computes their sums.
#include "gradient/sparse/residual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gradient/sparse/sparsity.h"
#include "kernels/convert.h"

namespace sluice::gradient {
namespace {

constexpr float kDecay = 0.01F;

const std::vector<GradientSpec> kGradients = {
    {.name = "a", .count = 1000}, {.name = "b", .count = 64}, {.name = "c", .count = 331}};

std::size_t all_elements() {
  std::size_t elements = 0;
  for (const GradientSpec& gradient : kGradients) elements += gradient.count;
  return elements;
}

// Returns a unique value for each rank, step and element. Some parts of the model have smaller
// values than others.
float gradient_at(int rank, int step, std::size_t element) {
  const double x = static_cast<double>(element) + 5000.0 * step + 1e6 * rank;
  return static_cast<float>(std::sin(x) * std::ldexp(1.0, static_cast<int>(element / 64 % 7) - 3));
}

float weight_at(int step, std::size_t element) {
  return static_cast<float>(std::cos(static_cast<double>(element) * (1 + step % 5)));
}

struct OneRank {
  explicit OneRank(const SparseChunks& chunks) : residual{chunks}, norms(chunks.size()) {}
  Residual residual;
  std::vector<float> norms;
  std::vector<float> pool = std::vector<float>(all_elements());
  std::vector<float> weights = std::vector<float>(all_elements());
  std::vector<std::byte> packed = std::vector<std::byte>(all_elements() * sizeof(float));
  std::vector<double> added = std::vector<double>(all_elements());  // gradients with their decay
};

enum class Way { InPlace, Separate, F16, BF16 };

struct Outcome {
  std::vector<double> dense;     // the mean of all gradients with their decay
  std::vector<double> received;  // the sum of all received means
  std::vector<double> unsent;    // the mean of the residuals
};

PackedType packed_type(Way way, float factor) {
  if (way == Way::F16) return {DataType::F16, factor};
  if (way == Way::BF16) return {DataType::BF16, factor};
  return {};
}

class Ranks {
 public:
  Ranks(int ranks, double sparsity, Way way, std::size_t chunk)
      : chunks_{kGradients, chunk},
        sparsity_{sparsity},
        way_{way},
        ranks_(static_cast<std::size_t>(ranks), OneRank{chunks_}),
        norms_(chunks_.size(), 0),
        order_(chunks_.size()),
        selected_(chunks_.size()),
        received_(all_elements()) {}

  void step(int number) {
    select_chunks(chunks_, norms_, sparsity_, order_, selected_);
    norms_.assign(chunks_.size(), 0);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      load(static_cast<int>(r), number);
      for (std::size_t c = 0; c < chunks_.size(); ++c) norms_[c] += ranks_[r].norms[c];
    }
    reduce();
    for (OneRank& rank : ranks_) unload(rank);
    for (std::size_t e = 0; e < received_.size(); ++e) {
      received_[e] += static_cast<double>(ranks_[0].pool[e]);
      for (const OneRank& rank : ranks_) ASSERT_EQ(rank.pool[e], ranks_[0].pool[e]);
    }
  }

  Outcome outcome() const {
    Outcome outcome{std::vector<double>(received_.size()), received_,
                    std::vector<double>(received_.size())};
    const auto n = static_cast<double>(ranks_.size());
    for (const OneRank& rank : ranks_) {
      for (std::size_t e = 0; e < received_.size(); ++e) {  // all elements are in chunks
        outcome.unsent[e] += static_cast<double>(rank.residual.values()[e]) / n;
        outcome.dense[e] += rank.added[e] / n;
      }
    }
    return outcome;
  }

 private:
  SparseStep step_of(OneRank& rank) const { return {selected_, rank.norms}; }
  kernels::Addend addend_of(const OneRank& rank, std::size_t offset) const {
    return {.gradient = rank.pool.data() + offset,
            .scale = 1,
            .weights = rank.weights.data() + offset,
            .decay = kDecay};
  }

  void load(int number, int step) {
    OneRank& rank = ranks_[static_cast<std::size_t>(number)];
    for (std::size_t e = 0; e < rank.pool.size(); ++e) {
      rank.pool[e] = gradient_at(number, step, e);
      rank.weights[e] = weight_at(step, e);
      rank.added[e] += static_cast<double>(rank.pool[e]) +
                       static_cast<double>(kDecay) * static_cast<double>(rank.weights[e]);
    }
    float* front = rank.pool.data();
    std::byte* to = rank.packed.data();
    std::size_t offset = 0;
    OverflowCounts counts;
    for (std::size_t i = 0; i < kGradients.size(); ++i) {
      const kernels::Addend addend = addend_of(rank, offset);
      if (way_ == Way::InPlace) {
        front = rank.residual.compact(i, addend, step_of(rank), front);
      } else {
        to = rank.residual.pack(i, addend, step_of(rank), packed_type(way_, 4), to, counts);
      }
      offset += kGradients[i].count;
    }
    EXPECT_EQ(counts.overflowed + counts.not_finite, 0U);
  }

  float* packed_floats(OneRank& rank) const {
    return way_ == Way::InPlace ? rank.pool.data() : reinterpret_cast<float*>(rank.packed.data());
  }

  // Computes the mean in f32 and rounds it once to the wire type.
  void reduce() {
    std::size_t sent = 0;
    for (std::size_t i = 0; i < kGradients.size(); ++i)
      sent += selected_elements(chunks_, i, selected_);
    const auto n = static_cast<float>(ranks_.size());
    const DataType type = packed_type(way_, 1).type;
    std::vector<float> sum(sent);
    std::vector<float> one(sent);
    for (OneRank& rank : ranks_) {
      if (type == DataType::F32) {
        std::copy_n(packed_floats(rank), sent, one.begin());
      } else {
        kernels::widen(type, one.data(), rank.packed.data(), sent);
      }
      for (std::size_t e = 0; e < sent; ++e) sum[e] += one[e];
    }
    for (OneRank& rank : ranks_) {
      if (type == DataType::F32) {
        for (std::size_t e = 0; e < sent; ++e) packed_floats(rank)[e] = sum[e] / n;
      } else {
        kernels::narrow(type, rank.packed.data(), sum.data(), sent);
      }
    }
  }

  void unload(OneRank& rank) const {
    const PackedType type = packed_type(way_, 1 / (4 * static_cast<float>(ranks_.size())));
    const std::byte* packed = way_ == Way::InPlace
                                  ? reinterpret_cast<const std::byte*>(rank.pool.data())
                                  : rank.packed.data();
    for (std::size_t i = 0; i < kGradients.size(); ++i)
      packed += selected_elements(chunks_, i, selected_) * size_of(type.type);
    std::size_t offset = all_elements();
    for (std::size_t i = kGradients.size(); i-- > 0;) {
      offset -= kGradients[i].count;
      packed -= selected_elements(chunks_, i, selected_) * size_of(type.type);
      if (way_ != Way::InPlace) rank.residual.commit(i, addend_of(rank, offset), step_of(rank));
      expand(chunks_, i, selected_, type, packed, rank.pool.data() + offset);
    }
  }

  SparseChunks chunks_;
  double sparsity_;
  Way way_;
  std::vector<OneRank> ranks_;
  std::vector<float> norms_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint8_t> selected_;
  std::vector<double> received_;
};

// For values up to 16 and a hundred steps. In each step f32 loses 2^-24 of a sum of up to 100
// values; f16 and bf16 lose 2^-11 and 2^-8 of the sum each time it is sent.
double tolerance(Way way) {
  if (way == Way::F16) return 0.2;
  if (way == Way::BF16) return 1.6;
  return 1e-3;
}

TEST(Residual, LosesNothingInAHundredSteps) {
  for (const Way way : {Way::InPlace, Way::Separate, Way::F16, Way::BF16}) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, way " << static_cast<int>(way));
      Ranks all{ranks, 0.85, way, 48};
      for (int step = 0; step < 100; ++step) {
        all.step(step);
        if (HasFatalFailure()) return;
        if (step % 9 != 0 && step != 99) continue;
        const Outcome outcome = all.outcome();
        for (std::size_t e = 0; e < outcome.dense.size(); ++e) {
          ASSERT_NEAR(outcome.received[e] + outcome.unsent[e], outcome.dense[e], tolerance(way))
              << e;
        }
      }
    }
  }
}

TEST(Residual, WithoutSparsityIsDense) {
  for (const Way way : {Way::InPlace, Way::Separate}) {
    Ranks all{3, 0, way, 48};
    for (int step = 0; step < 5; ++step) {
      all.step(step);
      const Outcome outcome = all.outcome();
      for (std::size_t e = 0; e < outcome.dense.size(); ++e) {
        ASSERT_NEAR(outcome.received[e], outcome.dense[e], 1e-5) << e;
        ASSERT_EQ(outcome.unsent[e], 0) << e;
      }
    }
  }
}

TEST(Residual, InPlaceAndSeparateMemoryGiveTheSameBits) {
  Ranks in_place{2, 0.85, Way::InPlace, 48};
  Ranks separate{2, 0.85, Way::Separate, 48};
  for (int step = 0; step < 20; ++step) {
    in_place.step(step);
    separate.step(step);
    EXPECT_EQ(in_place.outcome().unsent, separate.outcome().unsent);
    EXPECT_EQ(in_place.outcome().received, separate.outcome().received);
  }
}

class OneGradient : public testing::Test {
 protected:
  const std::vector<GradientSpec> gradients_ = {{.name = "g", .count = 10}};
  const SparseChunks chunks_{gradients_, 4};
  Residual residual_{chunks_};
  std::vector<float> norms_ = std::vector<float>(3, -1);
  std::vector<std::uint8_t> selected_ = {0, 1, 0};
  std::vector<float> gradient_ = {1, -2, 3, -4, 5, 6, 7, 8, -9, 10};
};

TEST_F(OneGradient, NormIsTheMeanOfTheResidual) {
  std::vector<float> to(4);
  residual_.compact(0, {.gradient = gradient_.data(), .scale = 0.5F}, {selected_, norms_},
                    to.data());
  EXPECT_EQ(norms_, (std::vector<float>{1.25, 0, 4.75}));
  EXPECT_EQ(to, (std::vector<float>{2.5, 3, 3.5, 4}));
}

TEST_F(OneGradient, NothingChangesUntilCommit) {
  const kernels::Addend addend{.gradient = gradient_.data()};
  const SparseStep step{selected_, norms_};
  std::vector<float> to(4);
  OverflowCounts counts;
  for (int repeated = 0; repeated < 2; ++repeated) {
    residual_.pack(0, addend, step, {}, reinterpret_cast<std::byte*>(to.data()), counts);
    EXPECT_EQ(norms_, (std::vector<float>{2.5, 0, 9.5}));
    EXPECT_EQ(to, (std::vector<float>{5, 6, 7, 8}));
    for (const float r : residual_.values()) EXPECT_EQ(r, 0);
  }
  residual_.commit(0, addend, step);
  EXPECT_EQ(std::vector<float>(residual_.values().begin(), residual_.values().end()),
            (std::vector<float>{1, -2, 3, -4, 0, 0, 0, 0, -9, 10}));
}

TEST_F(OneGradient, CountsValuesThatAreNotFinite) {
  std::vector<float> to(10);
  gradient_[0] = std::numeric_limits<float>::quiet_NaN();  // not sent
  gradient_[1] = std::numeric_limits<float>::infinity();   // not sent
  gradient_[5] = -std::numeric_limits<float>::infinity();  // sent
  gradient_[6] = 1e6F;                                     // sent, too large for f16
  gradient_[9] = 1e6F;                                     // not sent
  for (const DataType type : {DataType::F32, DataType::F16, DataType::BF16}) {
    OverflowCounts counts;
    residual_.pack(0, {.gradient = gradient_.data()}, {selected_, norms_}, {type, 1},
                   reinterpret_cast<std::byte*>(to.data()), counts);
    EXPECT_EQ(counts.not_finite, 3U);
    EXPECT_EQ(counts.overflowed, type == DataType::F16 ? 1U : 0U);
  }
}

const std::vector<GradientSpec> kMixed = {
    {.name = "weight", .count = 10},
    {.name = "bias", .count = 100, .may_be_sparse = false},
    {.name = "exact", .count = 8},
    {.name = "empty", .count = 0},
    {.name = "double", .count = 9, .type = DataType::F64},
    {.name = "small", .count = 3},
};

TEST(SparseChunks, CutEachGradientSeparately) {
  const SparseChunks chunks{kMixed, 4};
  const std::vector<SparseChunk> expected = {
      {.gradient = 0, .first = 0, .count = 4, .offset = 0},
      {.gradient = 0, .first = 4, .count = 4, .offset = 4},
      {.gradient = 0, .first = 8, .count = 2, .offset = 8},
      {.gradient = 2, .first = 0, .count = 4, .offset = 10},
      {.gradient = 2, .first = 4, .count = 4, .offset = 14},
      {.gradient = 5, .first = 0, .count = 3, .offset = 18},
  };
  ASSERT_EQ(chunks.size(), expected.size());
  for (std::size_t c = 0; c < chunks.size(); ++c) EXPECT_EQ(chunks[c], expected[c]) << c;
  EXPECT_EQ(chunks.elements(), 21U);
}

TEST(SparseChunks, LeaveVectorsAndOtherTypesWhole) {
  const SparseChunks chunks{kMixed, 4};
  for (const std::size_t i : {1, 3, 4}) EXPECT_TRUE(chunks.whole(i)) << i;
  for (const std::size_t i : {0, 2, 5}) EXPECT_FALSE(chunks.whole(i)) << i;
}

TEST(SparseChunks, AreFoundByGradientAndElement) {
  for (const std::size_t size : {1, 3, 4, 1000}) {
    const SparseChunks chunks{kMixed, size};
    for (std::size_t i = 0; i < kMixed.size(); ++i) {
      EXPECT_EQ(chunks.of(i).size(), chunks.end(i) - chunks.begin(i));
      if (chunks.whole(i)) continue;
      for (std::size_t element = 0; element < kMixed[i].count; ++element) {
        const SparseChunk& chunk = chunks[chunks.at(i, element)];
        EXPECT_EQ(chunk.gradient, i);
        EXPECT_GE(element, chunk.first);
        EXPECT_LT(element, chunk.first + chunk.count);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::gradient

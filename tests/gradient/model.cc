#include "tests/gradient/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/random.h"
#include "tests/kernels/reference.h"

namespace sluice::gradient {
namespace {

template <class T>
T at(const Bytes& bytes, std::size_t element) {
  T value{};
  std::memcpy(&value, bytes.data() + element * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void put(Bytes& bytes, std::size_t element, T value) {
  std::memcpy(bytes.data() + element * sizeof(T), &value, sizeof(T));
}

double decode(DataType type, const Bytes& bytes, std::size_t element) {
  if (type == DataType::F64) return at<double>(bytes, element);
  if (type == DataType::F32) return at<float>(bytes, element);
  return kernels::reference::decode(type, at<std::uint16_t>(bytes, element));
}

void encode(DataType type, Bytes& bytes, std::size_t element, double value) {
  if (type == DataType::F64) return put(bytes, element, value);
  const auto narrow = static_cast<float>(value);
  if (type == DataType::F32) return put(bytes, element, narrow);
  put(bytes, element, kernels::reference::encode(type, narrow));
}

DataType wire_type(WireType wire) { return wire == WireType::F16 ? DataType::F16 : DataType::BF16; }

std::uint64_t key(std::size_t i, int rank, int step) {
  return base::mixed({i, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)});
}

}  // namespace

ToyModel mixed_model() {
  return ToyModel{{{"a", 1000, DataType::F32},
                   {"b", 3, DataType::F32},
                   {"none", 0, DataType::F32},
                   {"c", 257, DataType::F64},
                   {"d", 1, DataType::F64},
                   {"e", 4097, DataType::F16},
                   {"f", 33, DataType::BF16},
                   {"g", 20'001, DataType::F32},
                   {"nothing", 0, DataType::F16},
                   {"h", 17, DataType::F32}}};
}

ToyModel plain_model() {
  return ToyModel{{{"conv1.weight", 3 * 7 * 11},
                   {"conv1.bias", 5},
                   {"conv2.weight", 20'003},
                   {"none", 0},
                   {"fc.weight", 1000},
                   {"fc.bias", 1}}};
}

double ToyModel::value(std::size_t i, std::size_t element, int rank, int step) const {
  for (const Replacement& each : replacements) {
    if (each.rank == rank && each.step == step && each.gradient == i && each.element == element)
      return each.value;
  }
  const std::uint64_t bits = base::mixed({key(i, rank, step), element});
  return (static_cast<double>(bits >> 11U) * 0x1p-52 - 1) * scale(rank, step);
}

Bytes ToyModel::gradient(std::size_t i, int rank, int step, double loss_scale) const {
  const GradientSpec& spec = gradients_[i];
  Bytes bytes(spec.count * size_of(spec.type));
  if (!has(i, rank, step)) return bytes;
  for (std::size_t e = 0; e < spec.count; ++e)
    encode(spec.type, bytes, e, value(i, e, rank, step) * loss_scale);
  return bytes;
}

void ToyModel::write(Reducer& reducer, std::size_t i, int rank, int step) const {
  if (!has(i, rank, step)) return;
  const Bytes bytes = gradient(i, rank, step, reducer.loss_scale());
  std::copy(bytes.begin(), bytes.end(), reducer.slot(i));
  reducer.mark_ready(i);
}

std::vector<std::size_t> ToyModel::random_order(int rank, int step) const {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random{key(size(), rank, step)};
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

void ToyModel::write_all(Reducer& reducer, int rank, int step) const {
  for (const std::size_t i : random_order(rank, step)) write(reducer, i, rank, step);
}

// Returns the mean in the type of the gradient; sums are in f32, or in f64 for f64 gradients.
Bytes ReferenceMeans::mean_in_type(std::size_t i, int number, StepResult& step) const {
  const GradientSpec& spec = model_.gradients()[i];
  std::vector<Bytes> gradients;
  for (int r = 0; r < ranks_; ++r)
    gradients.push_back(model_.gradient(i, r, number, step.loss_scale));
  Bytes mean(spec.count * size_of(spec.type));
  for (std::size_t e = 0; e < spec.count; ++e) {
    double sum = decode(spec.type, gradients[0], e);
    for (std::size_t r = 1; r < gradients.size(); ++r) {
      sum += decode(spec.type, gradients[r], e);
      if (spec.type != DataType::F64) sum = static_cast<float>(sum);
    }
    const double part = 1.0 / ranks_;
    sum *= spec.type == DataType::F64 ? part : static_cast<float>(part);
    encode(spec.type, mean, e, sum);  // exact: f64 holds the product of two floats
    if (!options_.loss_scale.enabled) continue;
    step.not_finite = step.not_finite || !std::isfinite(decode(spec.type, mean, e));
    encode(spec.type, mean, e, decode(spec.type, mean, e) / step.loss_scale);
  }
  return mean;
}

Bytes ReferenceMeans::mean_over_wire(std::size_t i, int number, StepResult& step) const {
  const GradientSpec& spec = model_.gradients()[i];
  const DataType wire = wire_type(options_.wire);
  std::vector<Bytes> gradients;
  for (int r = 0; r < ranks_; ++r)
    gradients.push_back(model_.gradient(i, r, number, step.loss_scale));
  Bytes mean(spec.count * sizeof(float));
  for (std::size_t e = 0; e < spec.count; ++e) {
    float sum = 0;
    bool all_finite = true;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      const float value = at<float>(gradients[r], e);
      const auto factor = static_cast<float>(step.wire_scale / step.loss_scale);
      const float sent =
          kernels::reference::decode(wire, kernels::reference::encode(wire, value * factor));
      all_finite = all_finite && std::isfinite(value);
      sum = r == 0 ? sent : sum + sent;
    }
    sum = kernels::reference::decode(wire, kernels::reference::encode(wire, sum));
    const bool overflowed = all_finite && !std::isfinite(sum);
    step.not_finite = step.not_finite || !all_finite || (overflowed && wire == DataType::BF16);
    step.overflowed = step.overflowed || (overflowed && wire == DataType::F16);
    if (std::isfinite(sum)) step.largest = std::max(step.largest, std::abs(sum));
    put(mean, e, sum * static_cast<float>(1.0 / (double{step.wire_scale} * ranks_)));
  }
  return mean;
}

ReferenceMeans::StepResult ReferenceMeans::step_with_scales(int step, float wire,
                                                            double loss) const {
  StepResult done{.wire_scale = wire, .loss_scale = loss};
  const bool narrows_f32 = options_.wire != WireType::F32 && options_.force_wire;
  for (std::size_t i = 0; i < model_.size(); ++i) {
    const bool narrowed = narrows_f32 && model_.gradients()[i].type == DataType::F32;
    done.means.push_back(narrowed ? mean_over_wire(i, step, done) : mean_in_type(i, step, done));
  }
  const bool f16 = narrows_f32 && options_.wire == WireType::F16;
  done.skipped = (done.overflowed || done.not_finite) && (f16 || options_.loss_scale.enabled);
  return done;
}

void ReferenceMeans::update_scales(const StepResult& step) {
  const bool f16 = options_.wire == WireType::F16 && options_.force_wire;
  if (f16 && step.overflowed) {
    if (step.wire_scale == wire_scale) wire_scale /= 2;
  } else if (f16 && !step.not_finite && step.largest > 0) {
    wire_scale = step.wire_scale;
    for (float largest = step.largest; largest >= 4096; largest /= 2) wire_scale /= 2;
    for (float largest = step.largest; largest < 2048; largest *= 2) wire_scale *= 2;
  }
  if (!options_.loss_scale.enabled || step.loss_scale != loss_scale) return;
  if (step.not_finite) {
    loss_scale /= 2;
    clean_steps_ = 0;
  } else if (!step.skipped && ++clean_steps_ == options_.loss_scale.growth_steps) {
    loss_scale *= 2;
    clean_steps_ = 0;
  }
}

Bytes result_of(Reducer& reducer, const ToyModel& model, std::size_t i) {
  const GradientSpec& spec = model.gradients()[i];
  const std::byte* const from = reducer.result(i);
  return {from, from + spec.count * size_of(spec.type)};
}

void expect_results(Reducer& reducer, const ToyModel& model, const std::vector<Bytes>& means) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    const GradientSpec& spec = model.gradients()[i];
    const Bytes actual = result_of(reducer, model, i);
    for (std::size_t e = 0; e < spec.count; ++e) {
      const std::size_t size = size_of(spec.type);
      ASSERT_EQ(std::memcmp(actual.data() + e * size, means[i].data() + e * size, size), 0)
          << "element " << e << " of " << spec.name << " is " << decode(spec.type, actual, e)
          << ", not " << decode(spec.type, means[i], e);
    }
  }
}

}  // namespace sluice::gradient

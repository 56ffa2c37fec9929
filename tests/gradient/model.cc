#include "tests/gradient/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/mix.h"
#include "tests/kernels/reference.h"

namespace sluice {
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
  return reference::decode(type, at<std::uint16_t>(bytes, element));
}

void encode(DataType type, Bytes& bytes, std::size_t element, double value) {
  if (type == DataType::F64) return put(bytes, element, value);
  const auto narrow = static_cast<float>(value);
  if (type == DataType::F32) return put(bytes, element, narrow);
  put(bytes, element, reference::encode(type, narrow));
}

DataType wire_type(WireType wire) { return wire == WireType::F16 ? DataType::F16 : DataType::BF16; }

std::uint64_t key(std::size_t i, int rank, int step) {
  return mixed({i, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)});
}

}  // namespace

Model mixed_model() {
  return Model{{{"a", 1000, DataType::F32},
                {"b", 3, DataType::F32},
                {"none", 0, DataType::F32},
                {"c", 257, DataType::F64},
                {"d", 1, DataType::F64},
                {"e", 4097, DataType::F16},
                {"f", 33, DataType::BF16},
                {"g", 70'001, DataType::F32},
                {"nothing", 0, DataType::F16},
                {"h", 17, DataType::F32}}};
}

Model plain_model() {
  return Model{{{"conv1.weight", 3 * 7 * 11},
                {"conv1.bias", 5},
                {"conv2.weight", 20'003},
                {"none", 0},
                {"fc.weight", 1000},
                {"fc.bias", 1}}};
}

double Model::value(std::size_t i, std::size_t element, int rank, int step) const {
  for (const Odd& each : odd) {
    if (each.rank == rank && each.step == step && each.gradient == i && each.element == element)
      return each.value;
  }
  const std::uint64_t bits = mixed({key(i, rank, step), element});
  return (static_cast<double>(bits >> 11U) * 0x1p-52 - 1) * scale(rank, step);
}

Bytes Model::gradient(std::size_t i, int rank, int step) const {
  const GradientSpec& spec = gradients_[i];
  Bytes bytes(spec.count * size_of(spec.type));
  if (!has(i, rank, step)) return bytes;
  for (std::size_t e = 0; e < spec.count; ++e) encode(spec.type, bytes, e, value(i, e, rank, step));
  return bytes;
}

void Model::write(Reducer& reducer, std::size_t i, int rank, int step) const {
  if (!has(i, rank, step)) return;
  Bytes bytes = gradient(i, rank, step);
  const GradientSpec& spec = gradients_[i];
  for (std::size_t e = 0; e < spec.count && reducer.loss_scale() != 1; ++e)
    encode(spec.type, bytes, e, decode(spec.type, bytes, e) * reducer.loss_scale());
  std::copy(bytes.begin(), bytes.end(), reducer.slot(i));
  reducer.mark_ready(i);
}

std::vector<std::size_t> Model::random_order(int rank, int step) const {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random{key(size(), rank, step)};
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

void Model::write_all(Reducer& reducer, int rank, int step) const {
  for (const std::size_t i : random_order(rank, step)) write(reducer, i, rank, step);
}

Bytes Reference::mean_in_type(std::size_t i, int step) const {
  const GradientSpec& spec = model_.gradients()[i];
  std::vector<Bytes> given;
  for (int r = 0; r < ranks_; ++r) given.push_back(model_.gradient(i, r, step));
  Bytes mean(spec.count * size_of(spec.type));
  for (std::size_t e = 0; e < spec.count; ++e) {
    if (spec.type == DataType::F64) {
      double sum = decode(spec.type, given[0], e);
      for (int r = 1; r < ranks_; ++r)
        sum += decode(spec.type, given[static_cast<std::size_t>(r)], e);
      put(mean, e, sum * (1.0 / ranks_));
      continue;
    }
    const auto as_float = [&](std::size_t r) {
      return static_cast<float>(decode(spec.type, given[r], e));
    };
    float sum = as_float(0);
    for (int r = 1; r < ranks_; ++r) sum += as_float(static_cast<std::size_t>(r));
    encode(spec.type, mean, e, sum * static_cast<float>(1.0 / ranks_));
  }
  return mean;
}

Bytes Reference::mean_over_wire(std::size_t i, int step, bool& overflowed, bool& not_finite,
                                float& largest) const {
  const GradientSpec& spec = model_.gradients()[i];
  const DataType wire = wire_type(options_.wire);
  std::vector<Bytes> given;
  for (int r = 0; r < ranks_; ++r) given.push_back(model_.gradient(i, r, step));
  Bytes mean(spec.count * sizeof(float));
  for (std::size_t e = 0; e < spec.count; ++e) {
    float sum = 0;
    bool all_finite = true;
    for (std::size_t r = 0; r < given.size(); ++r) {
      const float value = at<float>(given[r], e);
      const float travels = reference::decode(wire, reference::encode(wire, value * wire_scale));
      all_finite = all_finite && std::isfinite(value);
      sum = r == 0 ? travels : sum + travels;
    }
    sum = reference::decode(wire, reference::encode(wire, sum));
    not_finite = not_finite || !all_finite;
    overflowed = overflowed || (all_finite && !std::isfinite(sum));
    if (std::isfinite(sum)) largest = std::max(largest, std::abs(sum));
    put(mean, e, sum * static_cast<float>(1.0 / (double{wire_scale} * ranks_)));
  }
  return mean;
}

Reference::Step Reference::average(int step) {
  const bool wired = options_.wire != WireType::F32 && options_.force_wire;
  bool overflowed = false;
  bool not_finite = false;
  float largest = 0;
  Step done;
  for (std::size_t i = 0; i < model_.size(); ++i) {
    if (wired && model_.gradients()[i].type == DataType::F32) {
      done.means.push_back(mean_over_wire(i, step, overflowed, not_finite, largest));
    } else {
      done.means.push_back(mean_in_type(i, step));
      for (std::size_t e = 0; e < model_.gradients()[i].count; ++e) {
        const bool finite = std::isfinite(decode(model_.gradients()[i].type, done.means.back(), e));
        not_finite = not_finite || (options_.loss_scale.enabled && !finite);
      }
    }
  }
  const bool f16 = wired && options_.wire == WireType::F16;
  done.skipped = (overflowed || not_finite) && (f16 || options_.loss_scale.enabled);
  if (f16 && overflowed) {
    wire_scale /= 2;
  } else if (f16 && !not_finite && largest > 0) {
    float next = wire_scale;
    for (float moved = largest; moved >= 4096; moved /= 2) next /= 2;
    for (float moved = largest; moved < 2048; moved *= 2) next *= 2;
    wire_scale = next;
  }
  if (options_.loss_scale.enabled && (not_finite || (overflowed && !f16))) {
    loss_scale /= 2;
    clean_ = 0;
  } else if (options_.loss_scale.enabled && ++clean_ == options_.loss_scale.growth_steps) {
    loss_scale *= 2;
    clean_ = 0;
  }
  return done;
}

Bytes result_of(Reducer& reducer, const Model& model, std::size_t i) {
  const GradientSpec& spec = model.gradients()[i];
  const std::byte* const from = reducer.result(i);
  return {from, from + spec.count * size_of(spec.type)};
}

void expect_results(Reducer& reducer, const Model& model, const std::vector<Bytes>& means) {
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

}  // namespace sluice

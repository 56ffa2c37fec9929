#include "tests/gradient/sparse_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace sluice::gradient {
namespace {

bool has_chunks(const GradientSpec& spec) {
  return spec.may_be_sparse && spec.type == DataType::F32;
}

std::vector<float> floats(const Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

ToyModel sparse_model() {
  return ToyModel{{{.name = "conv1.weight", .count = 333},
                   {.name = "conv1.bias", .count = 7, .may_be_sparse = false},
                   {.name = "tiny", .count = 5},
                   {.name = "double", .count = 65, .type = DataType::F64},
                   {.name = "conv2.weight", .count = 640},
                   {.name = "none", .count = 0},
                   {.name = "half", .count = 129, .type = DataType::F16},
                   {.name = "conv2.bias", .count = 64, .may_be_sparse = false},
                   {.name = "fc.weight", .count = 1000},
                   {.name = "fc.bias", .count = 33, .may_be_sparse = false}}};
}

float weight_at(std::size_t i, std::size_t element, int step) {
  return std::sin(static_cast<float>(element + 100 * i) * (1.0F + static_cast<float>(step)));
}

std::vector<std::vector<float>> weights_at(const ToyModel& model, int step) {
  std::vector<std::vector<float>> weights;
  for (std::size_t i = 0; i < model.size(); ++i) {
    weights.emplace_back(model.gradients()[i].count);
    for (std::size_t e = 0; e < weights[i].size(); ++e) weights[i][e] = weight_at(i, e, step);
  }
  return weights;
}

NaiveSparse::NaiveSparse(const ToyModel& model, int ranks, const GradientOptions& options,
                         float decay)
    : model_{model}, ranks_{ranks}, options_{options}, decay_{decay} {
  for (std::size_t i = 0; i < model.size(); ++i) {
    const GradientSpec& spec = model.gradients()[i];
    if (!has_chunks(spec)) continue;
    for (std::size_t first = 0; first < spec.count; first += options.sparse.chunk)
      chunks_.push_back({i, first, std::min(options.sparse.chunk, spec.count - first)});
  }
  residuals_.resize(static_cast<std::size_t>(ranks));
  for (auto& rank : residuals_) {
    for (const Chunk& chunk : chunks_) rank.emplace_back(chunk.count);
  }
  ages_.resize(chunks_.size());
}

// Sorts all chunks by norm and takes the largest.
std::vector<bool> NaiveSparse::select(int number) const {
  const int from = number - (options_.double_buffering ? 2 : 1);
  const SparseOptions& sparse = options_.sparse;
  double sparsity = number < sparse.dense_steps ? 0 : sparse.sparsity;
  if (const auto ramped = number - sparse.dense_steps; ramped >= 0 && ramped < sparse.ramp_steps)
    sparsity *= static_cast<double>(ramped + 1) / static_cast<double>(sparse.ramp_steps + 1);
  if (from < 0 || sparsity == 0) return std::vector<bool>(chunks_.size(), true);

  std::vector<double> norms = norms_[static_cast<std::size_t>(from)];
  for (int since = from + 1; since < number; ++since) {
    for (std::size_t p = 0; p < chunks_.size(); ++p) {
      if (selected_[static_cast<std::size_t>(since)][p]) norms[p] = 0;
    }
  }
  std::vector<std::size_t> order(chunks_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return norms[a] > norms[b]; });
  double all = 0;
  for (const Chunk& chunk : chunks_) all += static_cast<double>(chunk.count);
  std::vector<bool> selected(chunks_.size(), false);
  double left = all;
  for (const std::size_t p : order) {
    if (left <= sparsity * all) break;
    selected[p] = true;
    left -= static_cast<double>(chunks_[p].count);
  }
  return selected;
}

bool NaiveSparse::decays(std::size_t i, int rank, int number) const {
  return decay_ != 0 && model_.has(i, rank, number);
}

NaiveSparse::StepResult NaiveSparse::step(int number) {
  const std::vector<bool> selected = select(number);
  StepResult step{.means = std::vector<std::vector<float>>(model_.size()),
                  .received = std::vector<std::vector<GradientPart>>(model_.size())};
  step.sparse =
      number >= options_.sparse.dense_steps && number >= (options_.double_buffering ? 2 : 1);
  std::vector<double> norms(chunks_.size(), 0);
  for (std::uint32_t& age : ages_) ++age;

  std::vector<std::vector<std::vector<float>>> gradients(static_cast<std::size_t>(ranks_));
  for (int r = 0; r < ranks_; ++r) {
    for (std::size_t i = 0; i < model_.size(); ++i)
      gradients[static_cast<std::size_t>(r)].push_back(floats(model_.gradient(i, r, number)));
  }
  for (std::size_t p = 0; p < chunks_.size(); ++p) {
    const auto& [i, first, count] = chunks_[p];
    step.means[i].resize(model_.gradients()[i].count);
    if (selected[p]) step.received[i].push_back({first, count, ages_[p]});
    if (selected[p]) ages_[p] = 0;
    for (std::size_t e = 0; e < count; ++e) {
      float sum = 0;
      for (int r = 0; r < ranks_; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        float added = gradients[rank][i][first + e];
        if (step.sparse && decays(i, r, number)) added += decay_ * weight_at(i, first + e, number);
        float& residual = residuals_[rank][p][e];
        residual += added;
        sum = r == 0 ? residual : sum + residual;
        if (selected[p]) residual = 0;
        norms[p] += std::fabs(static_cast<double>(residual)) / static_cast<double>(count);
      }
      if (selected[p]) step.means[i][first + e] = sum * static_cast<float>(1.0 / ranks_);
    }
  }
  norms_.push_back(norms);
  selected_.push_back(selected);
  return step;
}

}  // namespace sluice::gradient

#include "kernels/optimizer.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cassert>
#include <cmath>
#include <cstring>

#include "kernels/norms.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, bool kNesterov, bool kFolded>
class MomentumUpdater {
 public:
  using D = hn::ScalableTag<T>;
  static constexpr std::size_t kElements = hn::MaxLanes(D{});

  explicit HWY_INLINE MomentumUpdater(const MomentumStep& step)
      : learning_rate_{static_cast<T>(step.learning_rate)},
        momentum_{static_cast<T>(step.momentum)},
        decay_{static_cast<T>(step.decay)},
        ratio_{static_cast<T>(step.ratio)} {}

  HWY_INLINE void update(T* weights, T* velocity, const T* gradient) const {
    const D d;
    const auto learning_rate = hn::Set(d, learning_rate_);
    const auto momentum = hn::Set(d, momentum_);
    const auto w = hn::LoadU(d, weights);
    const auto decayed = hn::Add(hn::LoadU(d, gradient), hn::Mul(hn::Set(d, decay_), w));
    auto added = hn::Mul(hn::Set(d, ratio_), decayed);
    if constexpr (kFolded) added = hn::Mul(learning_rate, added);
    const auto u = hn::Add(hn::Mul(momentum, hn::LoadU(d, velocity)), added);
    hn::StoreU(u, d, velocity);
    auto move = u;
    if constexpr (kNesterov) move = hn::Add(added, hn::Mul(momentum, u));
    if constexpr (!kFolded) move = hn::Mul(learning_rate, move);
    hn::StoreU(hn::Sub(w, move), d, weights);
  }

  HWY_INLINE void update_all(T* weights, T* velocity, const T* gradient, std::size_t count) const {
    std::size_t i = 0;
    for (; i + kElements <= count; i += kElements) update(weights + i, velocity + i, gradient + i);
    if (i == count) return;
    const std::size_t bytes = (count - i) * sizeof(T);
    T w[kElements] = {};
    T u[kElements] = {};
    T g[kElements] = {};
    std::memcpy(w, weights + i, bytes);
    std::memcpy(u, velocity + i, bytes);
    std::memcpy(g, gradient + i, bytes);
    update(w, u, g);
    std::memcpy(weights + i, w, bytes);
    std::memcpy(velocity + i, u, bytes);
  }

 private:
  T learning_rate_;
  T momentum_;
  T decay_;
  T ratio_;
};

template <bool kNesterov, bool kFolded, class T>
HWY_NOINLINE void update_with(T* weights, T* velocity, const T* gradient, std::size_t count,
                              const MomentumStep& step) {
  MomentumUpdater<T, kNesterov, kFolded>{step}.update_all(weights, velocity, gradient, count);
}

template <class T>
HWY_INLINE void update_as(T* weights, T* velocity, const T* gradient, std::size_t count,
                          const MomentumStep& step) {
  if (step.nesterov && step.folded) {
    update_with<true, true>(weights, velocity, gradient, count, step);
  } else if (step.nesterov) {
    update_with<true, false>(weights, velocity, gradient, count, step);
  } else if (step.folded) {
    update_with<false, true>(weights, velocity, gradient, count, step);
  } else {
    update_with<false, false>(weights, velocity, gradient, count, step);
  }
}

void update_f32(float* weights, float* velocity, const float* gradient, std::size_t count,
                const MomentumStep& step) {
  update_as(weights, velocity, gradient, count, step);
}

void update_f64(double* weights, double* velocity, const double* gradient, std::size_t count,
                const MomentumStep& step) {
  update_as(weights, velocity, gradient, count, step);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(update_f32);
HWY_EXPORT(update_f64);

double l2_norm(DataType type, const void* from, std::size_t count) {
  if (count == 0) return 0;
  double squared = 0;
  squared_l2_norms(type, from, count, count, &squared);
  return std::sqrt(squared);
}

}  // namespace

void momentum_update(DataType type, void* weights, void* velocity, const void* gradient,
                     std::size_t count, const MomentumStep& step) {
  assert(type == DataType::F32 || type == DataType::F64);
  if (type == DataType::F32) {
    HWY_DYNAMIC_DISPATCH(update_f32)
    (static_cast<float*>(weights), static_cast<float*>(velocity),
     static_cast<const float*>(gradient), count, step);
  } else {
    HWY_DYNAMIC_DISPATCH(update_f64)
    (static_cast<double*>(weights), static_cast<double*>(velocity),
     static_cast<const double*>(gradient), count, step);
  }
}

void lars_norms(DataType type, std::span<const LarsTensor> tensors, std::span<LarsNorms> norms) {
  assert(tensors.size() == norms.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    norms[i] = {.weights = l2_norm(type, tensors[i].weights, tensors[i].count),
                .gradient = l2_norm(type, tensors[i].gradient, tensors[i].count)};
  }
}

double lars_ratio(const LarsNorms& norms, const LarsRule& rule) {
  if (norms.weights == 0 || norms.gradient == 0) return 1;
  return rule.eta * norms.weights / (norms.gradient + rule.decay * norms.weights + rule.epsilon);
}

}  // namespace sluice::kernels
#endif

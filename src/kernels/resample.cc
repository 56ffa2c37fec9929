#include "kernels/resample.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resample.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void blend_rows_on(const std::uint8_t* from, std::size_t stride, const float* weights,
                   std::size_t rows, std::size_t count, float* out) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int32_t, decltype(d)> whole;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const std::size_t n = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + n <= count; i += n) {
    auto sum = hn::Zero(d);
    for (std::size_t k = 0; k < rows; ++k) {
      const auto value = hn::PromoteTo(whole, hn::LoadU(bytes, from + k * stride + i));
      sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[k]), hn::ConvertTo(d, value)));
    }
    hn::StoreU(sum, d, out + i);
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (std::size_t k = 0; k < rows; ++k) {
      sum += weights[k] * static_cast<float>(from[k * stride + i]);
    }
    out[i] = sum;
  }
}

void blend_pixels_on(const float* row, const Taps& taps, const float* scale, const float* shift,
                     float* const* out) {
  constexpr std::size_t kChannels = 3;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  for (std::size_t x = 0; x < taps.first.size(); ++x) {
    const float* const weights = taps.weights.data() + x * taps.count;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const float* const from = row + taps.first[x] * kChannels + channel;
      float sum = 0;
      for (std::size_t k = 0; k < taps.count; ++k) sum += weights[k] * from[k * kChannels];
      out[channel][x] = sum * scale[channel] + shift[channel];
    }
  }
#else
  const hn::FixedTag<float, 4> d;  // a pixel and one more value
  HWY_ALIGN float pixel[4] = {scale[0], scale[1], scale[2], 0};
  const auto factor = hn::Load(d, pixel);
  for (std::size_t channel = 0; channel < kChannels; ++channel) pixel[channel] = shift[channel];
  const auto offset = hn::Load(d, pixel);
  for (std::size_t x = 0; x < taps.first.size(); ++x) {
    const float* const weights = taps.weights.data() + x * taps.count;
    const float* const from = row + taps.first[x] * kChannels;
    auto sum = hn::Zero(d);
    for (std::size_t k = 0; k < taps.count; ++k) {
      sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[k]), hn::LoadU(d, from + k * kChannels)));
    }
    hn::Store(hn::Add(hn::Mul(sum, factor), offset), d, pixel);
    for (std::size_t channel = 0; channel < kChannels; ++channel) out[channel][x] = pixel[channel];
  }
#endif
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(blend_rows_on);
HWY_EXPORT(blend_pixels_on);

}  // namespace

void blend_rows(const std::uint8_t* from, std::size_t stride, const float* weights,
                std::size_t rows, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(blend_rows_on)(from, stride, weights, rows, count, out);
}

void blend_pixels(const float* row, const Taps& taps, const float* scale, const float* shift,
                  float* const* out) {
  HWY_DYNAMIC_DISPATCH(blend_pixels_on)(row, taps, scale, shift, out);
}

}  // namespace sluice::kernels
#endif

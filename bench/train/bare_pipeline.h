// bare_pipeline.h - the least that can be done with a JPEG: libjpeg-turbo decodes it whole, and two
// by two pixels become one of the result. No file, no crop, no mirror, no normalisation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::bench {

class BarePipeline {
 public:
  BarePipeline();
  ~BarePipeline();
  BarePipeline(const BarePipeline&) = delete;
  BarePipeline& operator=(const BarePipeline&) = delete;

  // side x side pixels, three channels each; valid until the next call. Throws Error.
  std::span<const std::uint8_t> run(std::span<const std::uint8_t> file, int side);

 private:
  void* handle_;
  std::vector<std::uint8_t> decoded_;
  std::vector<std::uint8_t> resized_;
};

}  // namespace sluice::bench

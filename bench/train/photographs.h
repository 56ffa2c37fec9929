// photographs.h - generated JPEG files with about as much detail as photographs have.
#pragma once

#include <cstddef>
#include <filesystem>

namespace sluice::bench {

// DIR/train and DIR/val with two classes each, `count` images in all of train and a few in val,
// 500x375, quality 90. Throws Error.
void write_photographs(const std::filesystem::path& folder, std::size_t count);

}  // namespace sluice::bench

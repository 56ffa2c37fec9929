// demo.h - the data set that needs no download: ten drawn figures, 28x28, grey.
//
// An image is a function of its number alone. Its figure has a random place, size, direction and
// thickness, is lighter or darker than what is behind it, and lies under noise, with a scratch of
// random place beside it. So no single pixel says anything of the class: a linear model fails, a
// small convolutional network needs some epochs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/formats/memory_dataset.h"

namespace sluice::data {

// Raised whenever any pixel changes: what was reached on other images is not comparable.
inline constexpr int kDemoVersion = 1;
inline constexpr int kDemoSide = 28;
inline constexpr std::size_t kDemoTrain = 12000;
inline constexpr std::size_t kDemoValidation = 2000;

// In the order of their labels; sample i is of class i modulo their number.
std::vector<std::string> demo_classes();

// Writes kDemoSide x kDemoSide pixels.
void draw_demo(std::uint64_t sample, std::span<std::uint8_t> pixels);

// The first kDemoTrain samples, and the kDemoValidation after them.
MemoryDataset demo_train();
MemoryDataset demo_validation();

}  // namespace sluice::data

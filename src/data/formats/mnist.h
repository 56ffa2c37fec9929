// mnist.h - mnist:DIR: four IDX files, plain or gzipped, of MNIST or of a set in its shape
// (Fashion-MNIST, KMNIST).
//
//   train-images-idx3-ubyte  train-labels-idx1-ubyte  t10k-images-idx3-ubyte t10k-labels-idx1-ubyte
//
// each as it is, with .gz, or with a dot before idx.
#pragma once

#include <filesystem>

#include "data/data.h"

namespace sluice::data {

Result<Data> open_mnist(const std::filesystem::path& folder);

}  // namespace sluice::data

// formats.h - one function for each kind of data that open_data() knows.
//
// An error names the file and what is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/data.h"
#include "data/dataset.h"
#include "sluice/status.h"

namespace sluice::data {

// demo: ten drawn figures, 28x28, grey. It needs no download.
//
// An image is a function of its number alone. Its figure has a random position, size, direction and
// thickness, is lighter or darker than the background, and lies under noise with a random scratch
// beside it. So no single pixel determines the class: a linear model fails, and a small
// convolutional network needs some epochs.

// Raised whenever a pixel changes: accuracies on different images cannot be compared.
inline constexpr int kDemoVersion = 1;
inline constexpr int kDemoSide = 28;
inline constexpr std::size_t kDemoTrain = 12000;
inline constexpr std::size_t kDemoValidation = 2000;

// In the order of their labels; sample i is of class i modulo the number of classes.
std::vector<std::string> demo_classes();
// Writes kDemoSide x kDemoSide pixels.
void draw_demo(std::uint64_t sample, std::span<std::uint8_t> pixels);
// The first kDemoTrain samples, and the kDemoValidation after them.
MemoryDataset demo_train();
MemoryDataset demo_validation();
Data open_demo();

// random:SIDE: images of random pixels, three channels, ten classes. They serve measurements; there
// is nothing to learn. `side`, height and width, is a whole number from 8 to 512.
Result<Data> open_random(const std::filesystem::path& side);

// mnist:DIR: four IDX files, plain or gzipped, of MNIST or a set with the same files
// (Fashion-MNIST, KMNIST).
//
//   train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte
//
// A name may end in .gz, and may have a dot instead of the dash before idx.
Result<Data> open_mnist(const std::filesystem::path& folder);

// cifar10:DIR: the binary version, data_batch_1.bin to data_batch_5.bin and test_batch.bin. DIR may
// also be the folder that holds cifar-10-batches-bin.
//
// A record is one byte of label and 3 x 32 x 32 bytes of pixels, as planes. Every file must have
// exactly `records` of them.
Result<Data> open_cifar10(const std::filesystem::path& folder, std::size_t records = 10000);

// images:DIR: image files in folders: DIR/train, DIR/val or DIR/test, and in each of them one
// folder for each class, the same classes in both. Files are read whenever their images are needed.
//
// Small images of one size (CIFAR-10 as JPEG files) are kept decoded once they have been read: an
// epoch then costs as much as from memory, and start-up reads only a few files.
Result<Data> open_images(const std::filesystem::path& folder, const DataOptions& options);

enum class Split : std::uint8_t { Train, Test };

struct ImageFile {
  std::filesystem::path path;
  int label = 0;
};

struct ImageFolder {
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// Lists DIR/train, or DIR/test or DIR/val, without hidden files. Classes are numbered in the order
// of their names, images in the order of class and name, so every rank that sees the same files
// numbers them in the same way. `most_per_class` 0: all images.
Result<ImageFolder> list_images(const std::filesystem::path& folder, Split split,
                                std::size_t most_per_class = 0);

struct LoadedImages {
  MemoryDataset images;
  std::vector<std::string> classes;
  std::vector<std::string> skipped;  // a sentence for each broken file
};

// Decodes all images. Broken ones are left out; it is an error when none is left.
Result<LoadedImages> load_images(const ImageFolder& folder);

}  // namespace sluice::data

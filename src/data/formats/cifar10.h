// cifar10.h - cifar10:DIR: the binary version, data_batch_1.bin to data_batch_5.bin and
// test_batch.bin; DIR may also be the folder that holds cifar-10-batches-bin.
#pragma once

#include <filesystem>

#include "data/data.h"

namespace sluice::data {

// A record is a byte of label and 3 x 32 x 32 bytes of pixels, plane after plane. Every file holds
// `records` of them; another number is an error.
Result<Data> open_cifar10(const std::filesystem::path& folder, std::size_t records = 10000);

}  // namespace sluice::data

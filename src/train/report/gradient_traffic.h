// gradient_traffic.h - how many bytes of gradients a rank sends, computed from closed forms.
#pragma once

#include <cstdint>

#include "recipe/epoch_table.h"
#include "recipe/recipe.h"
#include "sluice/communicator.h"
#include "train/models/models.h"

namespace sluice::train {

// In steps first .. last - 1. The share of a buffer that a rank sends is that of the algorithm
// which a whole bucket runs by; a sparse step counts as what it is to send at its sparsity. Every
// rank must call it.
double gradient_bytes_sent(const recipe::Recipe& recipe, const recipe::EpochTable& plan,
                           const Model& network, Communicator& communicator, std::int64_t first,
                           std::int64_t last);

}  // namespace sluice::train

// reference.h - computes the results of the kernels one element at a time, without bit tricks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/convert.h"
#include "kernels/reduce.h"

namespace sluice::kernels::reference {

// An f16 or bf16 as f32, and the nearest f16 or bf16 (ties to even) of an f32.
float decode(DataType type, std::uint16_t bits);
std::uint16_t encode(DataType type, float value);

// The result of reduce_into().
void reduce(const Reduction& reduction, void* target, std::span<const void* const> sources,
            std::size_t count);

ConvertCounts count_narrowed(DataType type, const std::vector<float>& from, float scale);

// The norm of a chunk, added in the order of norms.h.
double norm(DataType type, const void* chunk, std::size_t count, bool square);

}  // namespace sluice::kernels::reference

// embed.h - an algorithm inside another: the same steps among some of the ranks, on some chunks.
#pragma once

#include <span>

#include "sluice/schedule.h"

namespace sluice::algorithms {

struct Embedding {
  std::span<const Rank> ranks;  // the inner algorithm's rank i is this rank
  int first_chunk = 0;          // its chunk c is chunks first_chunk + c * chunks_each and on
  int chunks_each = 1;
};

// Adds the operations of one step of the inner Program to the outer Program's present step.
// REQUIRES: the outer Program has the inner one's scratch buffers, in the same order.
void embed_step(Program& outer, const Program& inner, int step, const Embedding& embedding);

// Every step of the inner Program as a step of its own.
void embed(Program& outer, const Program& inner, const Embedding& embedding);

}  // namespace sluice::algorithms

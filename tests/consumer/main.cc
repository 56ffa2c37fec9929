// Builds a 4-rank ring all_reduce with the installed library and proves it.
#include <cstdio>

#include "sluice/algorithms.h"
#include "sluice/schedule.h"
#include "sluice/verify.h"

int main() {
  const sluice::Algorithm& ring = *sluice::find_algorithm("ring").value();
  const sluice::Shape shape = sluice::complete_shape(ring, {.ranks = 4}).value();
  const sluice::Proof proof = sluice::verify(sluice::build_schedule(ring, shape));
  std::puts(proof.proven ? "proven" : proof.reason.c_str());
  return proof.proven ? 0 : 1;
}

// phases.h - the two halves that most algorithms are made of.
#pragma once

#include "sluice/schedule.h"

namespace sluice::algorithms {

inline bool has_reduce_phase(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::ReduceScatter;
}

inline bool has_gather_phase(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::AllGather;
}

inline int phases(Collective collective) {
  return int{has_reduce_phase(collective)} + int{has_gather_phase(collective)};
}

}  // namespace sluice::algorithms

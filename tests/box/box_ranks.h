// box_ranks.h - a job whose ranks are processes on the emulated hosts of a ClusterBox.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/communicator.h"
#include "tests/box/cluster_box.h"

namespace sluice::box {

// A barrier of all ranks and the parent, which reads the counters of the links there.
class Gate {
 public:
  // The descriptors of two pipes: the rank reports its arrival to one, and waits on the other.
  Gate(int arrived, int go) : arrived_{arrived}, go_{go} {}
  void pass() const;  // throws when the parent is gone

 private:
  int arrived_;
  int go_;
};

struct BoxJob {
  std::vector<int> hosts;  // by rank
  std::vector<std::pair<std::string, std::string>> environment;
  std::chrono::seconds deadline{60};
  // Runs at every rank. Returns "" or an error.
  std::function<std::string(Communicator&, const Gate&)> body;
  // Runs in the parent when all ranks have arrived at the n-th gate, from 0.
  std::function<void(int gate)> at_gate = [](int) {};
};

// Runs the job to its end. Returns "" or the errors of its ranks.
std::string run_job(const ClusterBox& cluster, const BoxJob& job);

}  // namespace sluice::box

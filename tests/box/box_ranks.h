// box_ranks.h - a job whose ranks are processes on the hosts of a box.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/communicator.h"
#include "tests/box/cluster_box.h"

namespace sluice::box {

// Where all ranks wait until the parent has looked at the links.
class Gate {
 public:
  Gate(int tell, int go) : tell_{tell}, go_{go} {}
  void pass() const;  // throws when the parent is gone

 private:
  int tell_;
  int go_;
};

struct BoxJob {
  std::vector<int> hosts;  // of every rank
  std::vector<std::pair<std::string, std::string>> environment;
  std::chrono::seconds deadline{60};
  // What every rank does; returns "" or what was wrong.
  std::function<std::string(Communicator&, const Gate&)> body;
  // What the parent does when all ranks stand at the n-th gate, from 0.
  std::function<void(int gate)> at_gate = [](int) {};
};

// Runs the job to its end. Returns "" or what went wrong first.
std::string run_job(const ClusterBox& cluster, const BoxJob& job);

}  // namespace sluice::box

// measurement.h - runs the slices of all entrants, in turns, and makes rows of them.
//
// A slice's order is made for the network: idle links have saved up credit that would flatter
// whoever comes first, so every batch of a buffer that is not large starts with operations that use
// it up and are not timed. Of a contender's settings those that the first rounds show to be clearly
// slower rest in the other rounds of that row.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/allreduce/progress.h"
#include "bench/network/outcome.h"
#include "bench/network/roster.h"

namespace sluice::bench {

class Measurement {
 public:
  // Starts all teams; who does not start, or fails later, is told of and left out.
  Measurement(const std::vector<Entrant>& entrants, const Venue& venue, const StopSignals& signals,
              std::function<void(const std::string&)> tell);

  NetworkRow run(std::uint64_t bytes, int rounds, Progress& progress);

  // "3 slices were run again ..." where others had the cores; or "".
  std::string disturbances() const;

  // Whether nobody failed.
  bool well() const { return well_; }

  // About how long a row takes, in any unit.
  double effort(std::uint64_t bytes) const;

 private:
  struct Contestant {
    Entrant entrant;
    std::unique_ptr<Team> team;  // none: it failed
    double guess_s = 1e-3;       // of the next operation
    bool rests = false;
    std::vector<double> slices_s;
    std::vector<double> cpu_s;
    std::vector<double> wire_bytes;  // sent by each host
    double closed_form_bytes = 0;    // of a host
  };

  double buffer_bytes(const Contestant& contestant, std::uint64_t bytes) const;
  SliceOrder order_for(const Contestant& contestant, std::uint64_t bytes) const;
  void run_slice(Contestant& contestant, std::uint64_t bytes, bool measured);
  void rest_the_slow();
  void lose(Contestant& contestant, const std::string& why);
  NetworkRow row_of(std::uint64_t bytes) const;

  const box::ClusterBox& box_;
  const EmulatedCluster& cluster_;
  std::function<void(const std::string&)> tell_;
  std::vector<Contestant> contestants_;
  int repeated_ = 0;      // slices in which others had the cores, run again
  int disturbed_ = 0;     // and those kept all the same
  bool started_ = false;  // the very first slices are behind us
  bool well_ = true;
};

}  // namespace sluice::bench

// measurement.h - runs the slices of all contenders in turns and returns rows of results.
//
// Idle links save up credit in their token buckets, which would favour the first contender. So
// every batch of a small buffer starts with untimed operations that use up the credit. After the
// first rounds of a row, settings that are clearly slower than the contender's best are skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/network/outcome.h"
#include "bench/network/roster.h"
#include "bench/program.h"

namespace sluice::bench {

class Measurement {
 public:
  // Starts all teams. Reports contenders that fail, now or later, and skips them.
  Measurement(const std::vector<ContenderSetting>& settings, const ClusterSetup& setup,
              const StopSignals& signals, std::function<void(const std::string&)> report);

  NetworkRow run(std::uint64_t bytes, int rounds, Progress& progress);

  // A sentence about slices that were repeated because of stolen time, or "".
  std::string disturbances() const;

  // Whether no contender has failed.
  bool well() const { return well_; }

  // The approximate time of a row.
  double effort(std::uint64_t bytes) const;

 private:
  struct ContenderState {
    ContenderSetting setting;
    std::unique_ptr<Team> team;  // null: it failed
    double guess_s = 1e-3;       // expected time of the next operation
    bool skipped = false;        // too slow for the rest of the row
    std::vector<double> slices_s;
    std::vector<double> cpu_s;
    std::vector<double> wire_bytes;  // sent by each host
    double closed_form_bytes = 0;    // the least that a host sends
  };

  double buffer_bytes(const ContenderState& contender, std::uint64_t bytes) const;
  SliceRequest slice_for(const ContenderState& contender, std::uint64_t bytes) const;
  void run_slice(ContenderState& contender, std::uint64_t bytes, bool measured);
  void skip_slow_settings();
  void lose(ContenderState& contender, const std::string& why);
  NetworkRow row_of(std::uint64_t bytes) const;

  const box::ClusterBox& box_;
  const EmulatedCluster& cluster_;
  std::function<void(const std::string&)> report_;
  std::vector<ContenderState> contenders_;
  int repeated_ = 0;      // slices repeated because of stolen time
  int disturbed_ = 0;     // slices kept despite stolen time
  bool started_ = false;  // the warm-up slices have run
  bool well_ = true;
};

}  // namespace sluice::bench

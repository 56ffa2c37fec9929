// stolen_time.h - how much of this machine's cores others had meanwhile.
//
// On a virtual machine the host may give its cores to others for a while; who sleeps until a packet
// comes then wakes late, and who spins does not notice. A slice in which that happened says little.
#pragma once

#include <fstream>
#include <string>

namespace sluice::bench {

class StolenTime {
 public:
  StolenTime() : begin_{read()} {}

  // Of all cores, since it was made.
  double share() const {
    const Ticks end = read();
    const double all = end.all - begin_.all;
    return all > 0 ? (end.stolen - begin_.stolen) / all : 0;
  }

 private:
  struct Ticks {
    double all = 0;
    double stolen = 0;
  };
  static Ticks read() {
    constexpr int kFields = 8;  // user nice system idle iowait irq softirq steal
    std::ifstream file{"/proc/stat"};
    std::string word;
    file >> word;
    Ticks ticks;
    for (int i = 0; i < kFields; ++i) {
      double field = 0;
      file >> field;
      ticks.all += field;
      ticks.stolen = field;
    }
    return ticks;
  }

  Ticks begin_;
};

}  // namespace sluice::bench

// stolen_time.h - the fraction of processor time that the hypervisor gave to other machines.
//
// On a virtual machine, a process that sleeps until a packet arrives then wakes up late, while a
// process that spins may not notice. A slice with much stolen time is not a fair measurement.
#pragma once

#include <fstream>
#include <string>

namespace sluice::bench {

class StolenTime {
 public:
  StolenTime() : begin_{read()} {}

  // The stolen fraction of the time of all cores since construction.
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

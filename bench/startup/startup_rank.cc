// startup_rank.cc - the program that bench/startup/startup launches: it joins and adds up 4 MiB
// twice.
//
// With --memory, rank 0 then prints the mean proportional set size (Pss) of a rank in KiB, taken
// while all ranks live.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/communicator.h"

namespace {

constexpr std::size_t kCount = std::size_t{1} << 20;

std::int64_t pss_kib() {
  std::ifstream file{"/proc/self/smaps_rollup"};
  for (std::string word; file >> word;) {
    std::int64_t kib = 0;
    if (word == "Pss:" && file >> kib) return kib;
  }
  return 0;
}

int run(bool memory) {
  sluice::Communicator comm = sluice::Communicator::from_env(std::chrono::seconds{60});
  comm.set_deadline(std::chrono::seconds{60});
  std::vector<float> values(kCount);
  const float sum = static_cast<float>(comm.size()) * static_cast<float>(comm.size() + 1) / 2;
  for (int round = 0; round < 2; ++round) {
    values.assign(kCount, static_cast<float>(comm.rank() + 1));
    comm.all_reduce(values).wait();
    for (const float value : values) {
      if (value != sum) {
        std::fprintf(stderr, "rank %d has %g instead of %g\n", comm.rank(), value, sum);
        return 1;
      }
    }
  }
  if (!memory) return 0;
  std::int64_t pss = pss_kib();
  comm.all_reduce(std::span{&pss, 1}).wait();
  if (comm.rank() == 0) std::printf("%ld\n", static_cast<long>(pss / comm.size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 && std::string_view{argv[1]} == "--memory");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}

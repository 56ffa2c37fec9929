// contender.h - one process of a library that is compared, and the orders it takes.
//
// Each is a process as in resident.h. All contenders go through the same code here: only what a
// Contender's methods do differs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/allreduce/resident.h"
#include "sluice/schedule.h"
#include "sluice/types.h"

namespace sluice::bench {

inline constexpr int kMostBatches = 256;

// Batches of all-reduces that follow one another, each batch on fresh data and checked. Before them
// comes one that nobody times.
struct SliceOrder {
  std::uint64_t bytes = 0;
  std::uint64_t most_warm_up_bytes = ~std::uint64_t{0};  // of an all-reduce before the first batch
  std::int32_t operations = 1;                           // timed, of a batch
  std::int32_t lead_in = 0;  // operations at the start of a batch that are not timed
  std::int32_t batches = 1;
  DataType type = DataType::F32;
};

// What the ranks of a process transmit in that slice, in all-reduces of order.bytes.
double operations_of(const SliceOrder& order);

struct SliceReport {
  std::array<double, kMostBatches> operation_s{};  // of each batch: its time / its operations
  double cpu_s = 0;               // this process' processor time of an operation, over all batches
  std::array<char, 200> wrong{};  // a sentence, where a result was wrong
};

struct Share {
  Rank rank = 0;
  void* data = nullptr;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual int ranks() const = 0;
  virtual bool takes(DataType type) const { return type == DataType::F32; }
  // False: it only moves the bytes that an all-reduce moves, and there is no result to check.
  virtual bool reduces() const { return true; }
  // The buffers of the ranks that live in this process; they replace those before.
  virtual std::vector<Share> allocate(std::size_t bytes) = 0;
  virtual void release() = 0;
  // Every one is followed by all_reduce(), whose time is taken.
  virtual void barrier() = 0;
  // In place, one after the other.
  virtual void all_reduce(DataType type, std::size_t count, int times) = 0;
};

// Pages of this process alone, as any program's memory.
class OrdinaryMemory {
 public:
  OrdinaryMemory() = default;
  ~OrdinaryMemory() { release(); }
  OrdinaryMemory(const OrdinaryMemory&) = delete;
  OrdinaryMemory& operator=(const OrdinaryMemory&) = delete;
  void* allocate(std::size_t bytes);
  void release();

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

using MakeContender = std::function<std::unique_ptr<Contender>(const ContenderArguments&)>;

// main() of a contender.
int contender_main(int argc, char** argv, const MakeContender& make);

}  // namespace sluice::bench

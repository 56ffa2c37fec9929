// contender.h - one process of a library under comparison, and the requests that it serves.
//
// Each process is a worker (worker.h). All contenders run the same measurement code; they differ
// only in the methods of Contender.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/allreduce/worker.h"
#include "sluice/schedule.h"
#include "sluice/types.h"

namespace sluice::bench {

inline constexpr int kMostBatches = 256;

// Batches of back-to-back all-reduces. Each batch starts from fresh data, and its results are
// checked. An untimed warm-up batch comes first.
struct SliceRequest {
  std::uint64_t bytes = 0;
  std::uint64_t most_warm_up_bytes = ~std::uint64_t{0};  // per all-reduce of the warm-up batch
  std::int32_t operations = 1;                           // timed operations per batch
  std::int32_t lead_in = 0;  // untimed operations at the start of each batch
  std::int32_t batches = 1;
  DataType type = DataType::F32;
};

// The number of all-reduces of request.bytes that a slice transmits, warm-up included.
double operations_of(const SliceRequest& request);

struct SliceReport {
  std::array<double, kMostBatches> operation_s{};  // per batch: time / operations
  double cpu_s = 0;               // processor time per operation of this process, all batches
  std::array<char, 200> error{};  // set if a result was wrong
};

struct RankBuffer {
  Rank rank = 0;
  void* data = nullptr;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual int ranks() const = 0;
  virtual bool supports(DataType type) const { return type == DataType::F32; }
  // False for a reference that only moves the bytes of an all-reduce and has no result to check.
  virtual bool reduces() const { return true; }
  // Allocates the buffers of the ranks in this process and frees the previous ones.
  virtual std::vector<RankBuffer> allocate(std::size_t bytes) = 0;
  virtual void release() = 0;
  // Always followed by a timed all_reduce().
  virtual void barrier() = 0;
  // In place, `times` operations in a row.
  virtual void all_reduce(DataType type, std::size_t count, int times) = 0;
};

// Private pages, like the memory of any program.
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

using MakeContender = std::function<std::unique_ptr<Contender>(const WorkerArguments&)>;

// The main() of a contender.
int contender_main(int argc, char** argv, const MakeContender& make);

}  // namespace sluice::bench

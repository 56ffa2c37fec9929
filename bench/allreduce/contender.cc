#include "bench/allreduce/contender.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "base/format.h"
#include "cli/bench/bench_allreduce.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Larger buffers are freed after each slice: those of all contenders would not fit in memory.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

// The processor time of all threads of this process.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The operations of the warm-up batch.
int warm_up_operations(const SliceRequest& request) {
  return request.bytes > kMostKept ? 1 : request.operations;
}

// Runs the slices of one contender.
class SliceRunner {
 public:
  explicit SliceRunner(Contender& contender) : contender_{contender} {}

  SliceReport run(const SliceRequest& request) {
    if (request.bytes != held_bytes_) {
      buffers_ = contender_.allocate(request.bytes);
      held_bytes_ = request.bytes;
    }
    if (!contender_.supports(request.type))
      throw std::runtime_error{base::format("the library has no {}", name(request.type))};
    const std::size_t count = request.bytes / size_of(request.type);
    const std::size_t most_warm_up = request.most_warm_up_bytes / size_of(request.type);
    SliceReport report;
    (void)run_batch({request.type, std::min(count, most_warm_up), 0, warm_up_operations(request)},
                    report);
    for (int i = 0; i < request.batches; ++i) {
      const Used used =
          run_batch({request.type, count, request.lead_in, request.operations}, report);
      report.operation_s[i] = used.wall_s / request.operations;
      report.cpu_s += used.cpu_s / request.operations / request.batches;
    }
    if (request.bytes > kMostKept) {
      buffers_.clear();
      contender_.release();
      held_bytes_ = 0;
    }
    return report;
  }

 private:
  struct Batch {
    DataType type;
    std::size_t count;
    int lead_in;
    int timed;
  };
  struct Used {
    double wall_s;
    double cpu_s;
  };

  Used run_batch(const Batch& batch, SliceReport& report) {
    const cli::BenchPattern pattern{batch.type, ReduceOp::Sum, contender_.ranks()};
    if (contender_.reduces()) {
      for (const RankBuffer& buffer : buffers_) pattern.fill(buffer.data, batch.count, buffer.rank);
    }
    contender_.barrier();
    if (batch.lead_in > 0) contender_.all_reduce(batch.type, batch.count, batch.lead_in);
    const double cpu_before_s = processor_seconds();
    const auto start = Clock::now();
    contender_.all_reduce(batch.type, batch.count, batch.timed);
    const std::chrono::duration<double> took = Clock::now() - start;
    const Used used{took.count(), processor_seconds() - cpu_before_s};
    if (contender_.reduces()) check(pattern, batch, report);
    return used;
  }

  void check(const cli::BenchPattern& pattern, const Batch& batch, SliceReport& report) const {
    const int operations = batch.lead_in + batch.timed;
    for (const RankBuffer& buffer : buffers_) {
      const auto wrong = pattern.check(buffer.data, batch.count, operations);
      if (!wrong || report.error[0] != '\0') continue;
      const std::string text =
          base::format("rank {} has {} instead of {} at element {} after {} all-reduces",
                       buffer.rank, wrong->found, wrong->expected, wrong->element, operations);
      text.copy(report.error.data(), report.error.size() - 1);
    }
  }

  Contender& contender_;
  std::vector<RankBuffer> buffers_;
  std::size_t held_bytes_ = 0;
};

}  // namespace

double operations_of(const SliceRequest& request) {
  const double warm_up_part =
      static_cast<double>(std::min(request.bytes, request.most_warm_up_bytes)) /
      static_cast<double>(request.bytes);
  return warm_up_part * warm_up_operations(request) +
         static_cast<double>(request.batches) * (request.lead_in + request.operations);
}

void* OrdinaryMemory::allocate(std::size_t bytes) {
  release();
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::runtime_error{"no memory for the buffer"};
  data_ = pages;
  bytes_ = bytes;
  return pages;
}

void OrdinaryMemory::release() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
}

int contender_main(int argc, char** argv, const MakeContender& make) {
  return worker_main(argc, argv, [&](const WorkerArguments& arguments) -> RequestHandler {
    const std::shared_ptr<Contender> contender = make(arguments);
    return
        [contender, runner = std::make_shared<SliceRunner>(*contender)](std::string_view message) {
          SliceRequest request;
          if (message.size() != sizeof request)
            throw std::runtime_error{"the request has the wrong size"};
          std::memcpy(&request, message.data(), sizeof request);
          const SliceReport report = runner->run(request);
          return std::string{reinterpret_cast<const char*>(&report), sizeof report};
        };
  });
}

}  // namespace sluice::bench

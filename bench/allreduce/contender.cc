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

// Larger buffers are given back after every slice: all contenders' together would not fit.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

// Of all threads of this process.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The operations of the batch before the first.
int warm_up_operations(const SliceOrder& order) {
  return order.bytes > kMostKept ? 1 : order.operations;
}

class Server {
 public:
  explicit Server(Contender& contender) : contender_{contender} {}

  SliceReport run(const SliceOrder& order) {
    if (order.bytes != held_bytes_) {
      shares_ = contender_.allocate(order.bytes);
      held_bytes_ = order.bytes;
    }
    if (!contender_.takes(order.type))
      throw std::runtime_error{base::format("it has no {}", name(order.type))};
    const std::size_t count = order.bytes / size_of(order.type);
    const std::size_t most_warm_up = order.most_warm_up_bytes / size_of(order.type);
    SliceReport report;
    (void)run_batch({order.type, std::min(count, most_warm_up), 0, warm_up_operations(order)},
                    report);
    for (int i = 0; i < order.batches; ++i) {
      const Used used = run_batch({order.type, count, order.lead_in, order.operations}, report);
      report.operation_s[i] = used.wall_s / order.operations;
      report.cpu_s += used.cpu_s / order.operations / order.batches;
    }
    if (order.bytes > kMostKept) {
      shares_.clear();
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
      for (const Share& share : shares_) pattern.fill(share.data, batch.count, share.rank);
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
    for (const Share& share : shares_) {
      const auto wrong = pattern.check(share.data, batch.count, operations);
      if (!wrong || report.wrong[0] != '\0') continue;
      const std::string sentence =
          base::format("rank {} holds {} instead of {} at element {} after {} all-reduces",
                       share.rank, wrong->found, wrong->expected, wrong->element, operations);
      sentence.copy(report.wrong.data(), report.wrong.size() - 1);
    }
  }

  Contender& contender_;
  std::vector<Share> shares_;
  std::size_t held_bytes_ = 0;
};

}  // namespace

double operations_of(const SliceOrder& order) {
  const double warm_up_part = static_cast<double>(std::min(order.bytes, order.most_warm_up_bytes)) /
                              static_cast<double>(order.bytes);
  return warm_up_part * warm_up_operations(order) +
         static_cast<double>(order.batches) * (order.lead_in + order.operations);
}

void* OrdinaryMemory::allocate(std::size_t bytes) {
  release();
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::runtime_error{"there is no memory for the buffer"};
  data_ = pages;
  bytes_ = bytes;
  return pages;
}

void OrdinaryMemory::release() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
}

int contender_main(int argc, char** argv, const MakeContender& make) {
  return resident_main(argc, argv, [&](const ContenderArguments& arguments) -> Answer {
    const std::shared_ptr<Contender> contender = make(arguments);
    return [contender, server = std::make_shared<Server>(*contender)](std::string_view message) {
      SliceOrder order;
      if (message.size() != sizeof order) throw std::runtime_error{"that is no order"};
      std::memcpy(&order, message.data(), sizeof order);
      const SliceReport report = server->run(order);
      return std::string{reinterpret_cast<const char*>(&report), sizeof report};
    };
  });
}

}  // namespace sluice::bench

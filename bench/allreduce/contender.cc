#include "bench/allreduce/contender.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "base/fd.h"
#include "bootstrap/cores.h"
#include "cli/bench_pattern.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Larger buffers are given back after every slice: all contenders' together would not fit.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

Fd connect_to(const std::string& name) {
  Fd fd{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (connect(fd.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    throw std::runtime_error{fmt::format("no driver listens at {}", name)};
  return fd;
}

class Server {
 public:
  explicit Server(Contender& contender)
      : contender_{contender}, pattern_{DataType::F32, ReduceOp::Sum, contender.ranks()} {}

  SliceReport run(const SliceOrder& order) {
    if (order.bytes != held_bytes_) {
      shares_ = contender_.allocate(order.bytes);
      held_bytes_ = order.bytes;
    }
    const bool large = order.bytes > kMostKept;
    SliceReport report;
    (void)run_batch(large ? 1 : order.operations, report);  // warms up
    for (int batch = 0; batch < order.batches; ++batch) {
      report.operation_s[batch] = run_batch(order.operations, report);
    }
    if (large) {
      shares_.clear();
      contender_.release();
      held_bytes_ = 0;
    }
    return report;
  }

 private:
  double run_batch(int operations, SliceReport& report) {
    const std::size_t count = held_bytes_ / sizeof(float);
    for (const Share& share : shares_) pattern_.fill(share.data, count, share.rank);
    contender_.barrier();
    const auto start = Clock::now();
    contender_.all_reduce(count, operations);
    const std::chrono::duration<double> took = Clock::now() - start;
    for (const Share& share : shares_) {
      const auto wrong = pattern_.check(share.data, count, operations);
      if (!wrong || report.wrong[0] != '\0') continue;
      const std::string sentence =
          fmt::format("rank {} holds {} instead of {} at element {} after {} all-reduces",
                      share.rank, wrong->found, wrong->expected, wrong->element, operations);
      sentence.copy(report.wrong.data(), report.wrong.size() - 1);
    }
    return took.count() / operations;
  }

  Contender& contender_;
  cli::BenchPattern pattern_;
  std::vector<Share> shares_;
  std::size_t held_bytes_ = 0;
};

void serve(Contender& contender, const std::string& socket) {
  const Fd driver = connect_to(socket);
  Server server{contender};
  for (SliceOrder order; recv(driver.number(), &order, sizeof order, 0) == sizeof order;) {
    const SliceReport report = server.run(order);
    if (send(driver.number(), &report, sizeof report, MSG_NOSIGNAL) != sizeof report) return;
  }
}

int number_from(const char* name, int fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::atoi(text);
}

ContenderArguments arguments_of(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error{"the benchmark's driver starts this, not you"};
  ContenderArguments arguments{.socket = argv[1]};
  if (argc > 3) {
    arguments.rank = std::atoi(argv[2]);
    arguments.ranks = std::atoi(argv[3]);
  } else {
    arguments.rank = number_from("OMPI_COMM_WORLD_RANK", number_from("PMI_RANK", 0));
  }
  if (argc > 4) arguments.extra = argv[4];
  return arguments;
}

}  // namespace

float* OrdinaryMemory::allocate(std::size_t bytes) {
  release();
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::runtime_error{"there is no memory for the buffer"};
  data_ = pages;
  bytes_ = bytes;
  return static_cast<float*>(pages);
}

void OrdinaryMemory::release() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
}

int contender_main(int argc, char** argv, const MakeContender& make) {
  try {
    const ContenderArguments arguments = arguments_of(argc, argv);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Before the library starts any thread, so that its threads stay on the rank's core, too.
    const std::vector<int> cores = usable_cores();
    const int core = cores[static_cast<std::size_t>(arguments.rank) % cores.size()];
    if (!pin_to({&core, 1})) throw std::runtime_error{fmt::format("core {} is not ours", core)};
    const std::unique_ptr<Contender> contender = make(arguments);
    serve(*contender, arguments.socket);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "contender: {}\n", error.what());
    return 1;
  }
}

}  // namespace sluice::bench

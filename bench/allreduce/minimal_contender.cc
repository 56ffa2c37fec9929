// minimal_contender.cc - the least work of an all-reduce in shared memory: read each element from
// all n buffers and write the sum to all n. It uses no library, messages or processes: threads of
// one process, one per core, synchronise by spinning between operations.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "bench/allreduce/contender.h"
#include "bench/kernels/minimal.h"
#include "bootstrap/host.h"

namespace sluice::bench {
namespace {

class MinimalContender : public Contender {
 public:
  MinimalContender(int ranks, const std::vector<int>& cores)
      : ranks_{ranks}, threads_{std::min(ranks, static_cast<int>(cores.size()))} {
    for (int i = 1; i < threads_; ++i)
      workers_.emplace_back([this, i, core = cores[i]] {
        bootstrap::pin_to({&core, 1});
        serve(i);
      });
  }

  ~MinimalContender() override {
    stopping_ = true;
    wake();
    for (std::thread& worker : workers_) worker.join();
    release();
  }

  MinimalContender(const MinimalContender&) = delete;
  MinimalContender& operator=(const MinimalContender&) = delete;

  int ranks() const override { return ranks_; }

  std::vector<RankBuffer> allocate(std::size_t bytes) override {
    release();
    bytes_ = bytes;
    std::vector<RankBuffer> result;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const base::Fd file{memfd_create("minimal", MFD_CLOEXEC)};
      if (!file.open() || ftruncate(file.number(), static_cast<off_t>(bytes)) != 0)
        throw std::runtime_error{"no memory for the buffers"};
      void* const pages =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
      if (pages == MAP_FAILED) throw std::runtime_error{"cannot map the buffers"};
      buffers_.push_back(static_cast<float*>(pages));
      result.push_back({rank, buffers_.back()});
    }
    return result;
  }

  void release() override {
    for (float* const buffer : buffers_) munmap(buffer, bytes_);
    buffers_.clear();
  }

  // Returns when all threads are awake and spin until all_reduce().
  void barrier() override {
    wake();
    meet();
  }

  void all_reduce(DataType /*f32*/, std::size_t count, int times) override {
    count_ = count;
    times_ = times;
    meet();
    work(0);
  }

 private:
  void wake() {
    ++woken_;
    woken_.notify_all();
  }

  void meet() {
    const std::uint64_t round = arrived_.fetch_add(1) / threads_;
    while (arrived_.load() < threads_ * (round + 1)) {
    }
  }

  void work(int thread) {
    const auto at = [&](int i) { return count_ * static_cast<std::size_t>(i) / threads_; };
    const std::size_t first = at(thread);
    const std::size_t count = at(thread + 1) - first;
    for (int i = 0; i < times_; ++i) {
      minimal_all_reduce(buffers_, first, count);
      meet();
    }
  }

  void serve(int thread) {
    for (int seen = 0;; ++seen) {
      woken_.wait(seen);
      if (stopping_) return;
      meet();
      meet();
      work(thread);
    }
  }

  int ranks_;
  int threads_;
  std::vector<float*> buffers_;
  std::size_t bytes_ = 0;
  std::size_t count_ = 0;
  int times_ = 0;
  std::atomic<int> woken_{0};
  alignas(64) std::atomic<std::uint64_t> arrived_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  const std::vector<int> cores =
      sluice::bootstrap::usable_cores();  // before this process is pinned
  return contender_main(argc, argv, [&](const WorkerArguments& arguments) {
    return std::make_unique<MinimalContender>(arguments.ranks, cores);
  });
}

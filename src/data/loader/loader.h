// loader.h - batches ahead of the training that takes them.
//
// Worker threads share the samples of the next few batches; batches come in order, and hold the
// same bits for any number of threads. Beyond the last batch of one epoch they go on with the next.
//
//   Loader loader{*data.train, {.threads = 2, .image = 28, ...}, which, 0, plan.steps};
//   while (const Batch* batch = loader.next().value()) train(*batch);
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/image/normalization.h"
#include "data/image/viewer.h"
#include "data/loader/batcher.h"
#include "data/loader/sample_ref.h"
#include "sluice/status.h"

namespace sluice::data {

struct LoaderOptions {
  int threads = 1;  // 0: next() does the work itself, which is best for images in memory
  int ahead = 4;    // batches that are made beyond the one in use
  ViewOptions view;
  Normalization normalization;
  std::uint64_t seed = 0;
  int image = 0;              // the side of what the network takes
  int most_broken = 100;      // images, each counted once; one more is an error
  bool may_be_empty = false;  // evaluation: a batch of broken images alone is no error
};

// Thread-safety: next() and skipped() from one thread.
class Loader {
 public:
  // Batches `first` to `last` - 1. `which` is called once for each, in order, by one thread at a
  // time; what it returns need not outlive its next call. `dataset` must outlive the loader.
  // REQUIRES: image > 0, ahead > 0.
  Loader(const Dataset& dataset, const LoaderOptions& options,
         std::function<std::span<const SampleRef>(std::int64_t batch)> which, std::int64_t first,
         std::int64_t last);
  // Waits for at most the few images that are being decoded.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the next call; null after the last. Blocks until it is ready.
  // Broken images are left out of it, so it may be shorter. After an error every call returns it.
  Result<const Batch*> next();

  // Images that were left out so far, a sentence each, each image once.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  // A batch in the making. Workers write disjoint parts of it; the counts are under the mutex.
  struct Slot {
    std::vector<SampleRef> samples;
    std::vector<std::string> problems;  // one a sample; "" for none
    std::size_t claimed = 0;
    std::size_t done = 0;
    Batch batch;
  };
  struct Worker {
    explicit Worker(const LoaderOptions& options)
        : viewer{options.view, options.normalization, options.image, options.seed} {}
    Viewer viewer;
    std::vector<std::uint8_t> buffer;
  };

  Slot& slot_of(std::int64_t batch) {
    return slots_[static_cast<std::size_t>(batch) % slots_.size()];
  }
  void prepare(std::int64_t batch);
  void make(Slot& slot, std::size_t first, std::size_t count, Worker& worker);
  void work(Worker& worker);
  void work_until_stopped(Worker& worker, std::unique_lock<std::mutex>& lock);
  Status take_out_broken(Slot& slot);

  const Dataset* dataset_;
  LoaderOptions options_;
  std::function<std::span<const SampleRef>(std::int64_t)> which_;
  const std::int64_t last_;
  std::vector<Slot> slots_;
  std::deque<Worker> workers_;  // at least one; next() uses it where there are no threads
  std::vector<std::string> skipped_;
  std::set<std::size_t> broken_;
  std::int64_t next_;  // to be handed out

  std::mutex mutex_;
  std::condition_variable more_work_;
  std::condition_variable batch_done_;
  bool stopped_ = false;
  bool preparing_ = false;  // a worker asks `which`, without the mutex
  std::int64_t oldest_;     // slots of batches before it are free
  std::int64_t prepared_;   // batches before it have their samples
  Status failure_;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::data

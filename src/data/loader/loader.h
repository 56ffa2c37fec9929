// loader.h - worker threads that prepare the next few batches while training goes on.
//
// The threads share the samples of these batches. Batches come in order, and have the same bits
// with any number of threads. Loading does not stop at the end of an epoch: it continues with the
// next.
//
//   Loader loader{*data.train, {.threads = 2, .image = 28, ...}, samples_of, 0, plan.steps};
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
#include "data/image/viewer.h"
#include "sluice/status.h"

namespace sluice::data {

// Samples as a network takes them. The next batch reuses the memory.
struct Batch {
  std::size_t count = 0;  // samples
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<float> images;  // count x channels x height x width
  std::vector<std::int64_t> labels;

  std::size_t image_size() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) *
           static_cast<std::size_t>(width);
  }
};

struct LoaderOptions {
  int threads = 1;  // 0: next() does the work itself, which is best for images in memory
  int ahead = 4;    // batches prepared beyond the one in use
  ViewOptions view;
  Normalization normalization;
  std::uint64_t seed = 0;
  int image = 0;              // height and width that the network takes
  int most_broken = 100;      // broken images, each counted once; one more is an error
  bool may_be_empty = false;  // for evaluation: accept a batch of which every image is broken
};

// Thread-safety: next() and skipped() from one thread.
class Loader {
 public:
  // Prepares batches `first` to `last` - 1. `samples_of` returns the samples of a batch. It is
  // called once for each batch, in order, by one thread at a time; its result must live until its
  // next call. `dataset` must outlive the loader. REQUIRES: image > 0, ahead > 0.
  Loader(const Dataset& dataset, const LoaderOptions& options,
         std::function<std::span<const SampleRef>(std::int64_t batch)> samples_of,
         std::int64_t first, std::int64_t last);
  // Waits only for the few images that are being decoded.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the next call; null after the last. Blocks until it is ready.
  // Broken images are left out of it, so it may be shorter. After an error every call returns that
  // error.
  Result<const Batch*> next();

  // One sentence for each image left out so far.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  // A batch in preparation. Workers write disjoint parts of it; the mutex guards the counts.
  struct Slot {
    std::vector<SampleRef> samples;
    std::vector<std::string> problems;  // one for each sample; "" for none
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
  void load(Slot& slot, std::size_t first, std::size_t count, Worker& worker);
  void work(Worker& worker);
  void work_until_stopped(Worker& worker, std::unique_lock<std::mutex>& lock);
  Status remove_broken(Slot& slot);

  const Dataset* dataset_;
  LoaderOptions options_;
  std::function<std::span<const SampleRef>(std::int64_t)> samples_of_;
  const std::int64_t last_;
  std::vector<Slot> slots_;
  std::deque<Worker> workers_;  // at least one; next() uses it where there are no threads
  std::vector<std::string> skipped_;
  std::set<std::size_t> broken_;
  std::int64_t next_;  // the batch that next() returns

  std::mutex mutex_;
  std::condition_variable more_work_;
  std::condition_variable batch_done_;
  bool stopped_ = false;
  bool preparing_ = false;  // a worker calls `samples_of_`, without the mutex
  std::int64_t oldest_;     // slots of batches before it are free
  std::int64_t prepared_;   // batches before it have their samples
  Status failure_;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::data

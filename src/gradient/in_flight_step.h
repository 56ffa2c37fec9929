// in_flight_step.h - makes the buckets and the trailer of a step, sends them and waits for them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "buckets/buckets.h"
#include "gradient/bucket.h"
#include "gradient/layout.h"
#include "gradient/sparse/sparse_bucket.h"
#include "sluice/communicator.h"

namespace sluice::gradient {

// The buckets of a step, rebuilt for every step that sends other gradient chunks. Theta counts
// the bytes that are sent, so sparse steps have fewer buckets, each of more gradients. It allocates
// nothing in the steady state. Thread-safety: one thread at a time. REQUIRES: set_dense() and
// set_sparse() are not called while its buckets are in flight.
class BucketList {
 public:
  // Everything that it refers to must outlive the list.
  struct Inputs {
    const std::vector<GradientSpec>& gradients;
    const PoolLayout& layout;
    const GradientOptions& options;
    const WireBuffer* wire = nullptr;    // for narrowed f32 gradients; null: not narrowed
    const WireBuffer* packed = nullptr;  // for sparse gradients; null: packed in the pool
  };
  // Makes dense buckets.
  BucketList(const Inputs& inputs, StepContext& step);
  BucketList(const BucketList&) = delete;
  BucketList& operator=(const BucketList&) = delete;

  void set_dense();
  void set_sparse(const SparseContext& context);

  const std::vector<buckets::BucketRange>& ranges() const { return ranges_; }
  std::span<Bucket* const> buckets() const { return buckets_; }

 private:
  void clear();
  void add_dense(const buckets::BucketRange& range);
  BucketSpec spec(const buckets::BucketRange& range, const WireBuffer* wire) const;

  Inputs inputs_;
  StepContext* step_;
  std::vector<buckets::BucketRange> dense_ranges_;
  std::vector<buckets::BucketRange> ranges_;
  std::vector<buckets::GradientSize> sent_;  // the part that a sparse step sends, by position
  // Filled up to the reserved capacity at most, so addresses stay valid.
  std::vector<DenseBucket> dense_;
  std::vector<SparseBucket> sparse_;
  std::vector<Bucket*> buckets_;
};

// The small sum behind the last bucket of a step:
//
//   users     for each gradient, the number of ranks that have it
//   counts    for each rank, the OverflowCounts of its gradients
//   norms     the sum over the ranks of the norm of each gradient chunk
//
// Users and counts are whole numbers, so their sums are exact; counts past 2^24 are rounded.
class StepTrailer {
 public:
  StepTrailer(Communicator& communicator, std::size_t gradients, std::size_t chunks = 0);

  float* data() const { return numbers_.data(); }
  std::size_t count() const { return numbers_.size(); }

  // To call at each rank before the sum; clear() comes first.
  void clear();
  void set_used(std::size_t i) { numbers_[i] = 1; }
  void set_counts(const OverflowCounts& counts);
  std::span<float> norms() const { return numbers_.subspan(counts_ + kCountNumbers * ranks_); }

  // To call after the sum. set_users() is for a restored step.
  int users(std::size_t i) const { return static_cast<int>(numbers_[i]); }
  void set_users(std::size_t i, int users) { numbers_[i] = static_cast<float>(users); }
  OverflowCounts counts(Rank rank) const;

 private:
  static constexpr std::size_t kCountNumbers = 4;
  std::span<float> counts_of(Rank rank) const;

  Pool pool_;
  std::span<float> numbers_;
  std::size_t counts_;  // index of the first count
  std::size_t ranks_;
  Rank rank_;
};

// Sends the buckets and the trailer of a step, and waits for them. One step at a time.
//
// The progress thread uses buckets and StepContext until the last handle of the communicator is
// gone. They must outlive this object, which holds such a handle.
//
// Thread-safety: one thread at a time; the hooks run on the progress thread.
class InFlightStep {
 public:
  struct Options {
    std::size_t gradients = 0;
    std::size_t chunks = 0;
    std::string algorithm;
  };
  // `step` must outlive it.
  InFlightStep(Communicator communicator, StepContext& step, Options options);
  InFlightStep(const InFlightStep&) = delete;
  InFlightStep& operator=(const InFlightStep&) = delete;

  bool begun() const { return begun_; }

  // `buckets` must exist until wait() returns. REQUIRES: not begun.
  void begin(const StepContext& step, std::span<Bucket* const> buckets);
  // Call it when all gradients of a bucket are ready.
  void set_ready(std::size_t bucket) { buckets_[bucket]->set_ready(); }
  // Sends the next buckets, up to but not including bucket `end`. REQUIRES: begun.
  void send(std::size_t end);
  // REQUIRES: all buckets have been sent.
  void send_trailer(const std::vector<std::size_t>& used);
  // Blocks until all results have arrived. Afterwards begun() is false. Throws Error, as
  // Work::wait() does.
  void wait();

  // The results of the last step that was waited for, until the next step begins.
  const StepContext& step() const { return *step_; }
  const StepTrailer& trailer() const { return trailer_; }

  // Sets `step` as the last step that was waited for. The caller fills the returned trailer.
  // REQUIRES: not begun.
  StepTrailer& restore(const StepContext& step) {
    *step_ = step;
    return trailer_;
  }

 private:
  struct TrailerHooks final : engine::ProgressHooks {
    explicit TrailerHooks(InFlightStep& its_owner) : owner{its_owner} {}
    void load() override;
    InFlightStep& owner;
  };
  void issue(Elements data, const CollectiveOptions& options, engine::ProgressHooks& hooks);

  StepContext* step_;
  std::span<Bucket* const> buckets_;
  TrailerHooks trailer_hooks_{*this};
  Communicator communicator_;
  StepTrailer trailer_;
  std::vector<Work> works_;
  CollectiveOptions collective_options_;
  std::size_t sent_ = 0;
  bool begun_ = false;
};

}  // namespace sluice::gradient

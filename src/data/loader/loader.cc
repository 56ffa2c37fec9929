#include "data/loader/loader.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/format.h"

namespace sluice::data {
namespace {

// Samples that a worker claims at once: few enough to share a batch evenly, enough to make the cost
// of claiming them negligible.
constexpr std::size_t kPortion = 4;

}  // namespace

Loader::Loader(const Dataset& dataset, const LoaderOptions& options,
               std::function<std::span<const SampleRef>(std::int64_t)> samples_of,
               std::int64_t first, std::int64_t last)
    : dataset_{&dataset},
      options_{options},
      samples_of_{std::move(samples_of)},
      last_{last},
      slots_(options.threads > 0 ? static_cast<std::size_t>(options.ahead) + 1 : 1),
      next_{first},
      oldest_{first},
      prepared_{first} {
  assert(options.image > 0 && options.ahead > 0);
  const auto threads = static_cast<std::size_t>(std::max(0, options.threads));
  for (std::size_t i = 0; i < std::max<std::size_t>(1, threads); ++i) {
    workers_.emplace_back(options_);
  }
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i] { work(workers_[i]); });
  }
}

Loader::~Loader() {
  {
    const std::lock_guard lock{mutex_};
    stopped_ = true;
  }
  more_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::prepare(std::int64_t batch) {
  Slot& slot = slot_of(batch);
  const std::span<const SampleRef> samples = samples_of_(batch);
  slot.samples.assign(samples.begin(), samples.end());
  if (slot.problems.size() < samples.size()) slot.problems.resize(samples.size());
  for (std::string& problem : slot.problems) problem.clear();
  slot.claimed = 0;
  slot.done = 0;
  slot.batch.channels = static_cast<int>(options_.normalization.mean.size());
  slot.batch.height = options_.image;
  slot.batch.width = options_.image;
  slot.batch.images.resize(samples.size() * slot.batch.image_size());
  slot.batch.labels.resize(samples.size());
}

void Loader::load(Slot& slot, std::size_t first, std::size_t count, Worker& worker) {
  for (std::size_t i = first; i < first + count; ++i) {
    const SampleRef& ref = slot.samples[i];
    ImageView stored;
    Status status = dataset_->read(ref.sample, worker.buffer, stored);
    if (!status.ok()) {
      slot.problems[i] = status.message();
      continue;
    }
    status =
        worker.viewer.view(stored, ref, slot.batch.images.data() + i * slot.batch.image_size());
    if (!status.ok()) {
      slot.problems[i] = base::format("{} {}", dataset_->name(ref.sample), status.message());
      continue;
    }
    slot.batch.labels[i] = dataset_->label(ref.sample);
  }
}

void Loader::work(Worker& worker) {
  std::unique_lock lock{mutex_};
  try {
    work_until_stopped(worker, lock);
  } catch (const std::exception& error) {
    if (!lock.owns_lock()) lock.lock();
    if (failure_.ok()) failure_ = Status{Code::NoMemory, error.what()};
    stopped_ = true;
    more_work_.notify_all();
    batch_done_.notify_all();
  }
}

void Loader::work_until_stopped(Worker& worker, std::unique_lock<std::mutex>& lock) {
  std::int64_t mine = oldest_;
  while (!stopped_) {
    // The oldest batch is needed first.
    mine = std::max(mine, oldest_);
    while (mine < prepared_ && slot_of(mine).claimed == slot_of(mine).samples.size()) ++mine;
    if (mine < prepared_) {
      Slot& slot = slot_of(mine);
      const std::size_t first = slot.claimed;
      const std::size_t count = std::min(kPortion, slot.samples.size() - first);
      slot.claimed += count;
      lock.unlock();
      load(slot, first, count, worker);
      lock.lock();
      slot.done += count;
      if (slot.done == slot.samples.size()) batch_done_.notify_all();
    } else if (!preparing_ && prepared_ < last_ &&
               prepared_ < oldest_ + static_cast<std::int64_t>(slots_.size())) {
      preparing_ = true;
      lock.unlock();
      prepare(prepared_);
      lock.lock();
      preparing_ = false;
      ++prepared_;
      more_work_.notify_all();
      batch_done_.notify_all();  // a batch without samples is done
    } else {
      more_work_.wait(lock);
    }
  }
}

Status Loader::remove_broken(Slot& slot) {
  Batch& batch = slot.batch;
  const std::size_t size = batch.image_size();
  batch.count = 0;
  std::string last_problem;
  for (std::size_t i = 0; i < slot.samples.size(); ++i) {
    if (slot.problems[i].empty()) {
      if (batch.count != i) {
        std::copy_n(batch.images.begin() + static_cast<std::ptrdiff_t>(i * size), size,
                    batch.images.begin() + static_cast<std::ptrdiff_t>(batch.count * size));
        batch.labels[batch.count] = batch.labels[i];
      }
      ++batch.count;
      continue;
    }
    last_problem = slot.problems[i];
    if (broken_.insert(slot.samples[i].sample).second) skipped_.push_back(slot.problems[i]);
  }
  if (broken_.size() > static_cast<std::size_t>(options_.most_broken)) {
    return {Code::InvalidInput, base::format("more than {} images are broken, the last: {}",
                                             options_.most_broken, skipped_.back())};
  }
  if (batch.count == 0 && !slot.samples.empty() && !options_.may_be_empty) {
    return {Code::InvalidInput, base::format("none of a batch's {} images can be used: {}",
                                             slot.samples.size(), last_problem)};
  }
  return {};
}

Result<const Batch*> Loader::next() {
  const std::int64_t batch = next_;
  Slot& slot = slot_of(batch);
  {
    std::unique_lock lock{mutex_};
    oldest_ = batch;  // the batch before is free
    if (!failure_.ok()) return failure_;
    if (batch == last_) return nullptr;
    if (threads_.empty()) {
      prepare(batch);
      load(slot, 0, slot.samples.size(), workers_.front());
    } else {
      more_work_.notify_all();
      batch_done_.wait(lock, [&] {
        return !failure_.ok() || (batch < prepared_ && slot.done == slot.samples.size());
      });
      if (!failure_.ok()) return failure_;
    }
  }
  ++next_;
  Status status = remove_broken(slot);
  if (!status.ok()) {
    const std::lock_guard lock{mutex_};
    failure_ = status;
    return status;
  }
  return &slot.batch;
}

}  // namespace sluice::data

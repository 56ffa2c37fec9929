#include "train/checkpoint/checkpoint_writer.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/format.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/training_snapshot.h"

namespace sluice::train {

class CheckpointWriter::Impl {
 public:
  explicit Impl(Options options) : options_{std::move(options)} {}

  Status save(const TrainingState& state, const TrainingObjects& objects);
  Status finish();

 private:
  void run(const std::stop_token& stop);
  Status write() const;

  const Options options_;
  // The thread's while `busy_`, else the caller's.
  TrainingSnapshot snapshot_;
  CheckpointHeader header_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool busy_ = false;
  Status failed_;
  std::jthread thread_;  // last: it uses the others
};

Status CheckpointWriter::Impl::finish() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return !busy_; });
  return std::exchange(failed_, Status{});
}

Status CheckpointWriter::Impl::save(const TrainingState& state, const TrainingObjects& objects) {
  Status before = finish();
  try {
    snapshot_.take(state, objects, options_.rank == 0);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::exception& error) {
    return {Code::InvalidArgument,
            base::format("the state of the training cannot be saved: {}", error.what())};
  }
  header_ = {.step = state.step,
             .run = options_.run,
             .ranks = options_.ranks,
             .owner = options_.rank,
             .accuracy = state.accuracy};
  {
    const std::lock_guard lock{mutex_};
    busy_ = true;
  }
  if (!thread_.joinable())
    thread_ = std::jthread{[this](const std::stop_token& stop) { run(stop); }};
  changed_.notify_all();
  return before;
}

void CheckpointWriter::Impl::run(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (changed_.wait(lock, stop, [&] { return busy_; }) || busy_) {
    lock.unlock();
    Status status = write();
    lock.lock();
    if (!status.ok() && failed_.ok()) failed_ = std::move(status);
    busy_ = false;
    changed_.notify_all();
  }
}

Status CheckpointWriter::Impl::write() const {
  const std::filesystem::path checkpoint = checkpoint_path(options_.folder, header_.step);
  std::error_code error;
  std::filesystem::create_directories(checkpoint, error);
  if (error)
    return {Code::InvalidInput,
            base::format("{} could not be made: {}", checkpoint.string(), error.message())};
  if (Status synced = sync_folder(options_.folder); !synced.ok()) return synced;
  // The common file last: where it is there, rank 0 is done.
  if (Status own = write_part(part_path(checkpoint, options_.rank), header_, snapshot_.own());
      !own.ok())
    return own;
  if (options_.rank != 0) return {};
  CheckpointHeader common = header_;
  common.owner = CheckpointHeader::kCommon;
  if (Status status = write_part(part_path(checkpoint, common.owner), common, snapshot_.common());
      !status.ok())
    return status;
  prune_checkpoints(options_.folder, options_.keep);
  return {};
}

CheckpointWriter::CheckpointWriter(Options options)
    : impl_{std::make_unique<Impl>(std::move(options))} {}
CheckpointWriter::~CheckpointWriter() = default;
Status CheckpointWriter::save(const TrainingState& state, const TrainingObjects& objects) {
  return impl_->save(state, objects);
}
Status CheckpointWriter::finish() { return impl_->finish(); }

}  // namespace sluice::train

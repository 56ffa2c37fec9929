#include "train/checkpoint/checkpoint_writer.h"

#include <exception>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace sluice::train {

CheckpointWriter::CheckpointWriter(Options options) : options_{std::move(options)} {}

Status CheckpointWriter::finish() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return !busy_; });
  return std::exchange(failed_, Status{});
}

Status CheckpointWriter::save(const TrainingState& state, const TrainingObjects& objects) {
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

void CheckpointWriter::run(const std::stop_token& stop) {
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

Status CheckpointWriter::write() const {
  const std::filesystem::path checkpoint = checkpoint_path(options_.folder, header_.step);
  std::error_code error;
  std::filesystem::create_directories(checkpoint, error);
  if (error)
    return {Code::InvalidInput,
            base::format("{} could not be created: {}", checkpoint.string(), error.message())};
  if (Status synced = sync_folder(options_.folder); !synced.ok()) return synced;
  // Rank 0 writes the common file last: once it exists, rank 0 has written everything.
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

}  // namespace sluice::train

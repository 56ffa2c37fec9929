#include "train/checkpoint/checkpoint.h"

#include <torch/serialize/archive.h>

#include <array>
#include <bit>
#include <random>
#include <utility>

#include "base/format.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/training_snapshot.h"

namespace sluice::train {
namespace {

// Draws a number that is not 0.
std::uint64_t random_number() {
  std::random_device source;
  return ((std::uint64_t{source()} << 32U) | source()) | 1U;
}

}  // namespace

Status LoadedCheckpoint::apply(const TrainingObjects& objects) const {
  return restore(common_, own_, objects);
}

Status LoadedCheckpoint::apply_weights(torch::nn::Module& network) const {
  return restore_weights(common_, own_, network);
}

Result<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& checkpoint,
                                         std::optional<Rank> own) {
  Result<CheckpointPart> common = read_part(part_path(checkpoint, CheckpointHeader::kCommon));
  if (!common.ok())
    return Status{
        common.status().code(),
        base::format("{} is refused: common: {}", checkpoint.string(), common.status().message())};
  const CheckpointHeader header = common.value().header();
  Result<TrainingState> state = training_state(common.value());
  if (!state.ok()) return state.status();
  Result<CheckpointPart> part =
      own ? own_part(checkpoint, header, *own) : mean_part(checkpoint, header);
  if (!part.ok()) return part.status();
  return LoadedCheckpoint{std::move(state).value(), std::move(common).value(),
                          std::move(part).value()};
}

Result<FoundCheckpoint> load_latest(const std::filesystem::path& folder,
                                    Communicator& communicator) {
  FoundCheckpoint found;
  std::array<std::int64_t, 2> decided = {-1, 0};  // step, run
  if (communicator.rank() == 0) {
    NewestCheckpoint newest = newest_checkpoint(folder);
    found.refused = std::move(newest.refused);
    if (newest.path) decided[0] = newest.step;
    decided[1] = std::bit_cast<std::int64_t>(random_number());
  }
  communicator.broadcast(decided).wait();
  found.run = std::bit_cast<std::uint64_t>(decided[1]);
  if (decided[0] < 0) return found;

  const std::filesystem::path path = checkpoint_path(folder, decided[0]);
  const Result<CheckpointHeader> header =
      read_part_header(part_path(path, CheckpointHeader::kCommon));
  const bool same_ranks = header.ok() && header.value().ranks == communicator.size();
  Result<LoadedCheckpoint> loaded =
      load_checkpoint(path, same_ranks ? std::optional{communicator.rank()} : std::nullopt);
  std::int64_t all_loaded = loaded.ok() ? 1 : 0;
  communicator.all_reduce(std::span{&all_loaded, 1}, {.op = ReduceOp::Min}).wait();
  if (!loaded.ok()) return loaded.status();
  if (all_loaded == 0)
    return Status{Code::InvalidInput,
                  base::format("another rank could not read {}; all ranks must see the same files",
                               path.string())};
  found.checkpoint = std::move(loaded).value();
  return found;
}

std::uint64_t draw_run(Communicator& communicator) {
  auto run = std::bit_cast<std::int64_t>(communicator.rank() == 0 ? random_number() : 0);
  communicator.broadcast(std::span{&run, 1}).wait();
  return std::bit_cast<std::uint64_t>(run);
}

Status export_weights(const torch::nn::Module& network, const std::filesystem::path& file) {
  const std::filesystem::path temporary =
      file.parent_path() / ("." + file.filename().string() + ".part");
  try {
    torch::serialize::OutputArchive archive;
    network.save(archive);
    archive.save_to(temporary.string());
    std::filesystem::rename(temporary, file);
  } catch (const c10::Error& error) {
    return {Code::InvalidInput, base::format("{} could not be written: {}", file.string(),
                                             error.what_without_backtrace())};
  } catch (const std::filesystem::filesystem_error& error) {
    return {Code::InvalidInput,
            base::format("{} could not be written: {}", file.string(), error.code().message())};
  }
  return {};
}

}  // namespace sluice::train

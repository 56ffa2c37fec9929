#include "train/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/format.h"

namespace sluice::train {
namespace {

constexpr std::string_view kPrefix = "step-";

std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc{} || stop != end || step < 0) return std::nullopt;
  return step;
}

std::string name_of(int owner) {
  return owner == CheckpointHeader::kCommon ? "common" : base::format("rank-{}", owner);
}

Status refusal(int owner, const std::string& reason) {
  return {Code::InvalidInput, base::format("{}: {}", name_of(owner), reason)};
}

// Of a checkpoint all of whose files are there, by name.
std::optional<CheckpointHeader> whole(const std::filesystem::path& checkpoint) {
  const Result<CheckpointHeader> common =
      read_part_header(part_path(checkpoint, CheckpointHeader::kCommon));
  if (!common.ok()) return std::nullopt;
  std::error_code error;
  for (int rank = 0; rank < common.value().ranks; ++rank) {
    if (!std::filesystem::exists(part_path(checkpoint, rank), error)) return std::nullopt;
  }
  return common.value();
}

// First what it is nothing without: who is interrupted here leaves no half of a checkpoint that
// looks whole.
void discard(const std::filesystem::path& checkpoint) {
  std::error_code error;
  std::filesystem::remove(part_path(checkpoint, CheckpointHeader::kCommon), error);
  base::remove_folder(checkpoint);
}

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step) {
  return folder / base::format("{}{:08}", kPrefix, step);
}

std::filesystem::path part_path(const std::filesystem::path& checkpoint, int owner) {
  return checkpoint / name_of(owner);
}

std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{folder, error}) {
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>{});
  return steps;
}

Result<CheckpointHeader> check_checkpoint(const std::filesystem::path& checkpoint) {
  constexpr int kCommon = CheckpointHeader::kCommon;
  const Result<CheckpointPart> common = read_part(part_path(checkpoint, kCommon));
  if (!common.ok()) return refusal(kCommon, common.status().message());
  const CheckpointHeader expected = common.value().header();
  if (expected.owner != kCommon) return refusal(kCommon, "it is another file of a checkpoint");
  for (int rank = 0; rank < expected.ranks; ++rank) {
    const Result<CheckpointPart> part = read_part(part_path(checkpoint, rank));
    if (!part.ok()) return refusal(rank, part.status().message());
    const CheckpointHeader& header = part.value().header();
    if (header.owner != rank) return refusal(rank, "it is another file of a checkpoint");
    if (header.step != expected.step || header.run != expected.run ||
        header.ranks != expected.ranks)
      return refusal(rank, "it was written by another run than common");
  }
  return expected;
}

NewestCheckpoint newest_checkpoint(const std::filesystem::path& folder) {
  NewestCheckpoint newest;
  for (const std::int64_t step : checkpoint_steps(folder)) {
    const std::filesystem::path path = checkpoint_path(folder, step);
    const Result<CheckpointHeader> header = check_checkpoint(path);
    if (header.ok() && header.value().step == step) {
      newest.path = path;
      newest.step = step;
      return newest;
    }
    newest.refused.push_back(
        base::format("{} is not used; {}", path.string(),
                     header.ok() ? base::format("it is of step {}", header.value().step)
                                 : header.status().message()));
  }
  return newest;
}

void prune_checkpoints(const std::filesystem::path& folder, int keep) {
  struct Whole {
    std::int64_t step;
    double accuracy;
  };
  const std::vector<std::int64_t> steps = checkpoint_steps(folder);
  std::vector<Whole> all;
  for (const std::int64_t step : steps) {
    if (const auto header = whole(checkpoint_path(folder, step)))
      all.push_back({step, header->accuracy});
  }
  if (all.empty()) return;
  std::vector<std::int64_t> kept;
  for (const Whole& each : all) {
    if (std::ssize(kept) < keep) kept.push_back(each.step);
  }
  // max_element takes the first of equals, and the first here is the oldest.
  const auto best = std::max_element(all.rbegin(), all.rend(), [](const Whole& a, const Whole& b) {
    return a.accuracy < b.accuracy;
  });
  if (best->accuracy >= 0) kept.push_back(best->step);
  for (const std::int64_t step : steps) {
    const bool stays =
        step > all.front().step || std::find(kept.begin(), kept.end(), step) != kept.end();
    if (!stays) discard(checkpoint_path(folder, step));
  }
}

}  // namespace sluice::train

#include "train/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

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

// Returns the header of a checkpoint if the files of all its ranks exist.
std::optional<CheckpointHeader> complete_header(const std::filesystem::path& checkpoint) {
  const Result<CheckpointHeader> common =
      read_part_header(part_path(checkpoint, CheckpointHeader::kCommon));
  if (!common.ok()) return std::nullopt;
  std::error_code error;
  for (int rank = 0; rank < common.value().ranks; ++rank) {
    if (!std::filesystem::exists(part_path(checkpoint, rank), error)) return std::nullopt;
  }
  return common.value();
}

// Removes the common file first: if the removal is interrupted, the remaining files do not count as
// a complete checkpoint.
void discard(const std::filesystem::path& checkpoint) {
  std::error_code error;
  std::filesystem::remove(part_path(checkpoint, CheckpointHeader::kCommon), error);
  base::remove_folder(checkpoint);
}

template <class T>
void add(std::vector<double>& sums, const Section& section) {
  const std::span values{reinterpret_cast<const T*>(section.data.data()), sums.size()};
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += double{values[i]};
}

template <class T>
void store_mean(const std::vector<double>& sums, int ranks, const Section& section) {
  // The memory belongs to the part and is not const.
  auto* const to = reinterpret_cast<T*>(const_cast<std::byte*>(section.data.data()));
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i] / ranks);
}

bool is_averaged(const Section& section) {
  return section.type == DataType::F32 || section.type == DataType::F64;
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
  if (expected.owner != kCommon) return refusal(kCommon, "it is the file of another rank");
  for (int rank = 0; rank < expected.ranks; ++rank) {
    const Result<CheckpointPart> part = read_part(part_path(checkpoint, rank));
    if (!part.ok()) return refusal(rank, part.status().message());
    const CheckpointHeader& header = part.value().header();
    if (header.owner != rank) return refusal(rank, "it is the file of another rank");
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
  struct Complete {
    std::int64_t step;
    double accuracy;
  };
  const std::vector<std::int64_t> steps = checkpoint_steps(folder);
  std::vector<Complete> all;
  for (const std::int64_t step : steps) {
    if (const auto header = complete_header(checkpoint_path(folder, step)))
      all.push_back({step, header->accuracy});
  }
  if (all.empty()) return;
  std::vector<std::int64_t> kept;
  for (const Complete& each : all) {
    if (std::ssize(kept) < keep) kept.push_back(each.step);
  }
  // max_element returns the first of equal elements; in reverse order that is the oldest.
  const auto best = std::max_element(
      all.rbegin(), all.rend(),
      [](const Complete& a, const Complete& b) { return a.accuracy < b.accuracy; });
  if (best->accuracy >= 0) kept.push_back(best->step);
  for (const std::int64_t step : steps) {
    const bool stays =
        step > all.front().step || std::find(kept.begin(), kept.end(), step) != kept.end();
    if (!stays) discard(checkpoint_path(folder, step));
  }
}

Result<CheckpointPart> own_part(const std::filesystem::path& checkpoint,
                                const CheckpointHeader& common, int rank) {
  const std::filesystem::path file = part_path(checkpoint, rank);
  Result<CheckpointPart> part = read_part(file);
  if (!part.ok())
    return Status{part.status().code(),
                  base::format("{} is refused: {}", file.string(), part.status().message())};
  const CheckpointHeader& header = part.value().header();
  if (header.step != common.step || header.run != common.run || header.ranks != common.ranks ||
      header.owner != rank)
    return Status{Code::InvalidInput,
                  base::format("{} is refused: it was written by another run", file.string())};
  return part;
}

Result<CheckpointPart> mean_part(const std::filesystem::path& checkpoint,
                                 const CheckpointHeader& common) {
  Result<CheckpointPart> first = own_part(checkpoint, common, 0);
  if (!first.ok() || common.ranks == 1) return first;
  const std::vector<Section>& sections = first.value().sections();
  std::vector<std::vector<double>> sums(sections.size());
  for (int rank = 0; rank < common.ranks; ++rank) {
    const Result<CheckpointPart> part = own_part(checkpoint, common, rank);
    if (!part.ok()) return part.status();
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (!is_averaged(sections[i])) continue;
      const Section* const theirs = part.value().find(sections[i].name);
      if (theirs == nullptr || theirs->type != sections[i].type ||
          theirs->data.size() != sections[i].data.size())
        return Status{Code::InvalidInput,
                      base::format("{}: rank {} has no '{}' of the same type and size as rank 0",
                                   checkpoint.string(), rank, sections[i].name)};
      sums[i].resize(theirs->data.size() / size_of(*theirs->type));
      if (theirs->type == DataType::F32) {
        add<float>(sums[i], *theirs);
      } else {
        add<double>(sums[i], *theirs);
      }
    }
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].type == DataType::F32) store_mean<float>(sums[i], common.ranks, sections[i]);
    if (sections[i].type == DataType::F64) store_mean<double>(sums[i], common.ranks, sections[i]);
  }
  return first;
}

}  // namespace sluice::train

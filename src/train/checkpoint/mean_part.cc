#include "train/checkpoint/mean_part.h"

#include <utility>
#include <vector>

#include "base/format.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace sluice::train {
namespace {

template <class T>
void add(std::vector<double>& sums, const Section& section) {
  const std::span values{reinterpret_cast<const T*>(section.data.data()), sums.size()};
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += double{values[i]};
}

template <class T>
void put_mean(const std::vector<double>& sums, int ranks, const Section& section) {
  // The part's own memory, which is not const.
  auto* const to = reinterpret_cast<T*>(const_cast<std::byte*>(section.data.data()));
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i] / ranks);
}

bool is_averaged(const Section& section) {
  return section.type == DataType::F32 || section.type == DataType::F64;
}

}  // namespace

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
                      base::format("{}: rank {} has not the '{}' that rank 0 has",
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
    if (sections[i].type == DataType::F32) put_mean<float>(sums[i], common.ranks, sections[i]);
    if (sections[i].type == DataType::F64) put_mean<double>(sums[i], common.ranks, sections[i]);
  }
  return first;
}

}  // namespace sluice::train

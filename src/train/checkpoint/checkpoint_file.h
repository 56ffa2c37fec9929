// checkpoint_file.h - one file of a checkpoint: a header and named arrays, all checksummed.
//
// docs/checkpoints.md has the format. A file appears under its name only when it is whole and on
// the disk, so one that was interrupted leaves the file that was there before, or none.
//
// Thread-safety: plain values and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/status.h"
#include "sluice/types.h"

namespace sluice::train {

struct CheckpointHeader {
  static constexpr int kCommon = -1;
  std::int64_t step = 0;
  std::uint64_t run = 0;  // drawn anew whenever a training is started or resumed
  int ranks = 1;
  int owner = kCommon;   // a rank, or kCommon
  double accuracy = -1;  // percent; negative: not known
};

// A named array. The name and what `data` refers to are somebody else's.
struct Section {
  std::string name;
  std::optional<DataType> type;     // none: bytes
  std::vector<std::int64_t> shape;  // elements, by dimension
  std::span<const std::byte> data;
};

// What was read from a file, and its memory.
class CheckpointPart {
 public:
  CheckpointPart(CheckpointHeader header, std::vector<std::byte> memory,
                 std::vector<Section> sections)
      : header_{header}, memory_{std::move(memory)}, sections_{std::move(sections)} {}
  CheckpointPart(CheckpointPart&&) = default;
  CheckpointPart& operator=(CheckpointPart&&) = default;
  CheckpointPart(const CheckpointPart&) = delete;
  CheckpointPart& operator=(const CheckpointPart&) = delete;

  const CheckpointHeader& header() const { return header_; }
  const std::vector<Section>& sections() const { return sections_; }
  // Null where there is none of that name.
  const Section* find(std::string_view name) const;

 private:
  CheckpointHeader header_;
  std::vector<std::byte> memory_;
  std::vector<Section> sections_;
};

// Writes `file` by way of a temporary file beside it, whose name begins with a dot. When it
// returns Ok the file is on the disk, and so is its name.
Status write_part(const std::filesystem::path& file, const CheckpointHeader& header,
                  std::span<const Section> sections);

// Names that were made in it are on the disk.
Status sync_folder(const std::filesystem::path& folder);

// The reason why a file is refused is what its message says, without the file's name.
Result<CheckpointPart> read_part(const std::filesystem::path& file);
// Of the header alone, which may be followed by nothing of use.
Result<CheckpointHeader> read_part_header(const std::filesystem::path& file);

}  // namespace sluice::train

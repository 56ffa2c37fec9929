// checkpoint_file.h - one file of a checkpoint: a header and named arrays, all checksummed.
//
// docs/checkpoints.md describes the format. A file gets its name only when it is complete and on
// the disk, so an interrupted write leaves the old file, or no file.
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
  std::uint64_t run = 0;  // a random number, drawn whenever a training starts or resumes
  int ranks = 1;
  int owner = kCommon;   // a rank, or kCommon
  double accuracy = -1;  // percent; negative: not evaluated
};

// A named array. It does not own the memory of `data`.
struct Section {
  std::string name;
  std::optional<DataType> type;     // none: bytes
  std::vector<std::int64_t> shape;  // elements, by dimension
  std::span<const std::byte> data;
};

// The content of a file; owns its memory.
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
  // Null if there is no section of that name.
  const Section* find(std::string_view name) const;

 private:
  CheckpointHeader header_;
  std::vector<std::byte> memory_;
  std::vector<Section> sections_;
};

// Writes a temporary file beside `file` (named .NAME.part) and renames it. When it returns Ok, the
// file and its name are on the disk.
Status write_part(const std::filesystem::path& file, const CheckpointHeader& header,
                  std::span<const Section> sections);

// Syncs a folder, so that new names in it are on the disk.
Status sync_folder(const std::filesystem::path& folder);

// An error says why the file is refused, without the name of the file.
Result<CheckpointPart> read_part(const std::filesystem::path& file);
// Reads only the header, and does not check the rest of the file.
Result<CheckpointHeader> read_part_header(const std::filesystem::path& file);

}  // namespace sluice::train

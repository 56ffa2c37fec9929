// pack_writer.h - writes a pack file, whole or not at all.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/formats/pack.h"
#include "data/image/normalization.h"
#include "sluice/status.h"

namespace sluice::data {

// FILE.part until finish() renames it; what is left of an attempt that died is written over by the
// next. Training records come first.
class PackWriter {
 public:
  static Result<PackWriter> open(std::filesystem::path file);
  // Removes FILE.part unless finish() went well.
  ~PackWriter();
  PackWriter(PackWriter&&) noexcept = default;
  PackWriter& operator=(PackWriter&&) = delete;

  Status add(std::span<const std::uint8_t> bytes, int label, int height, int width);
  // `header` says storage, channels, resized, train and validation; the rest is known here.
  Status finish(PackHeader header, const Normalization& normalization,
                const std::vector<std::string>& classes);

  // Of the finished file.
  std::uint64_t bytes() const { return offset_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  explicit PackWriter(std::filesystem::path file) : path_{std::move(file)} {}
  Status write(const void* bytes, std::size_t count);
  Status refuse() const;
  std::filesystem::path part() const { return path_.string() + ".part"; }

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::uint64_t offset_ = 0;
  std::vector<PackRecord> records_;
};

}  // namespace sluice::data

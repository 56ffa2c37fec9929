#include "data/formats/pack_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/format.h"

namespace sluice::data {
namespace {

void append(std::vector<std::uint8_t>& index, const void* bytes, std::size_t count) {
  const auto* const from = static_cast<const std::uint8_t*>(bytes);
  index.insert(index.end(), from, from + count);
}

}  // namespace

// A disk that is full is the machine's fault, not the input's.
Status PackWriter::refuse() const {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EIO;
  return {full ? Code::NoMemory : Code::InvalidInput,
          base::format("{} cannot be written: {}", part().string(), std::strerror(error))};
}

Result<PackWriter> PackWriter::open(std::filesystem::path file) {
  PackWriter writer{std::move(file)};
  writer.file_.reset(std::fopen(writer.part().c_str(), "wb"));
  if (writer.file_ == nullptr) return writer.refuse();
  const Status status =
      writer.write(std::vector<char>(sizeof(PackHeader)).data(), sizeof(PackHeader));
  if (!status.ok()) return status;
  return writer;
}

PackWriter::~PackWriter() {
  if (file_ != nullptr) unlink(part().c_str());
}

Status PackWriter::write(const void* bytes, std::size_t count) {
  if (std::fwrite(bytes, 1, count, file_.get()) != count) return refuse();
  offset_ += count;
  return {};
}

Status PackWriter::add(std::span<const std::uint8_t> bytes, int label, int height, int width) {
  records_.push_back({.offset = offset_,
                      .bytes = static_cast<std::uint32_t>(bytes.size()),
                      .label = static_cast<std::uint32_t>(label),
                      .height = static_cast<std::uint32_t>(height),
                      .width = static_cast<std::uint32_t>(width),
                      .checksum = pack_checksum(bytes)});
  return write(bytes.data(), bytes.size());
}

Status PackWriter::finish(PackHeader header, const Normalization& normalization,
                          const std::vector<std::string>& classes) {
  std::vector<std::uint8_t> index;
  append(index, records_.data(), records_.size() * sizeof(PackRecord));
  for (std::size_t channel = 0; channel < normalization.mean.size(); ++channel) {
    append(index, &normalization.mean[channel], sizeof(double));
    append(index, &normalization.deviation[channel], sizeof(double));
  }
  const auto count = static_cast<std::uint32_t>(classes.size());
  append(index, &count, sizeof count);
  for (const std::string& name : classes) {
    const auto length = static_cast<std::uint32_t>(name.size());
    append(index, &length, sizeof length);
    append(index, name.data(), name.size());
  }
  std::memcpy(header.magic, kPackMagic, sizeof header.magic);
  header.version = kPackVersion;
  header.index_offset = offset_;
  header.index_bytes = index.size();
  header.checksum = pack_checksum(header, index);
  Status status = write(index.data(), index.size());
  if (!status.ok()) return status;
  std::FILE* const file = file_.get();
  if (std::fseek(file, 0, SEEK_SET) != 0 || std::fwrite(&header, sizeof header, 1, file) != 1 ||
      std::fflush(file) != 0 || fsync(fileno(file)) != 0 ||
      std::rename(part().c_str(), path_.c_str()) != 0) {
    return refuse();
  }
  file_.reset();
  // So that the name, too, survives a power cut.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const base::Fd opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened.open()) (void)fsync(opened.number());
  return {};
}

}  // namespace sluice::data

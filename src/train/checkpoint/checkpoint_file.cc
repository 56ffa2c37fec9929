#include "train/checkpoint/checkpoint_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/format.h"

namespace sluice::train {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::array<char, 8> kMagic = {'S', 'L', 'U', 'I', 'C', 'E', 'C', 'P'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kMostSections = 1'000'000;
constexpr std::size_t kMostDimensions = 16;

struct FileHeader {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::int32_t ranks = 0;
  std::int64_t step = 0;
  std::uint64_t run = 0;
  std::int32_t owner = 0;
  std::uint32_t sections = 0;
  std::uint64_t bytes = 0;  // of the file
  double accuracy = 0;
  std::uint64_t checksum = 0;  // of the members above
};
static_assert(sizeof(FileHeader) == 64);

// In the file it is followed by the shape, the name, zeros up to a multiple of 64 bytes, the data,
// and again zeros up to a multiple of 64 bytes.
struct SectionHeader {
  std::uint64_t checksum = 0;  // of the rest of the section, seeded with the checksum of the file
  std::uint64_t bytes = 0;     // of data
  std::uint32_t name_bytes = 0;
  std::uint16_t dimensions = 0;
  std::uint16_t type = 0;  // 0: bytes, else 1 + DataType
};
static_assert(sizeof(SectionHeader) == 24);

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr std::array<std::byte, kAlignment> kZeros{};

std::size_t padding_of(const Section& section) {
  return aligned(section.data.size()) - section.data.size();
}

std::uint64_t checksum(const FileHeader& header) {
  return XXH64(&header, offsetof(FileHeader, checksum), 0);
}

Status failure(const std::filesystem::path& file, const char* action) {
  return {Code::InvalidInput,
          base::format("{} could not be {}: {}", file.string(), action, std::strerror(errno))};
}

Status refused(std::string reason) { return {Code::InvalidInput, std::move(reason)}; }

// Returns the bytes of a section before its data, including the checksum of the whole section.
std::vector<std::byte> head_of(const Section& section, std::uint64_t seed) {
  SectionHeader header{.bytes = section.data.size(),
                       .name_bytes = static_cast<std::uint32_t>(section.name.size()),
                       .dimensions = static_cast<std::uint16_t>(section.shape.size())};
  if (section.type)
    header.type = static_cast<std::uint16_t>(1U + static_cast<unsigned>(*section.type));
  const std::size_t shape_bytes = section.shape.size() * sizeof(std::int64_t);
  std::vector<std::byte> head(aligned(sizeof header + shape_bytes + section.name.size()));
  std::memcpy(head.data(), &header, sizeof header);
  if (shape_bytes > 0) std::memcpy(head.data() + sizeof header, section.shape.data(), shape_bytes);
  std::memcpy(head.data() + sizeof header + shape_bytes, section.name.data(), section.name.size());

  XXH64_state_t state;
  XXH64_reset(&state, seed);
  XXH64_update(&state, head.data() + sizeof header.checksum, head.size() - sizeof header.checksum);
  if (!section.data.empty()) XXH64_update(&state, section.data.data(), section.data.size());
  XXH64_update(&state, kZeros.data(), padding_of(section));
  header.checksum = XXH64_digest(&state);
  std::memcpy(head.data(), &header.checksum, sizeof header.checksum);
  return head;
}

std::uint64_t bytes_of(const Section& section) {
  return aligned(sizeof(SectionHeader) + section.shape.size() * sizeof(std::int64_t) +
                 section.name.size()) +
         aligned(section.data.size());
}

bool write_all(int fd, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

bool write_sections(int fd, const FileHeader& header, std::span<const Section> sections) {
  if (!write_all(fd, &header, sizeof header)) return false;
  for (const Section& section : sections) {
    const std::vector<std::byte> head = head_of(section, header.checksum);
    if (!write_all(fd, head.data(), head.size()) ||
        !write_all(fd, section.data.data(), section.data.size()) ||
        !write_all(fd, kZeros.data(), padding_of(section)))
      return false;
  }
  return true;
}

Result<FileHeader> check(const FileHeader& header, std::uint64_t bytes) {
  if (bytes < sizeof header) {
    if (bytes >= kMagic.size() && header.magic != kMagic)
      return refused("it is not a checkpoint of Sluice");
    return refused(base::format("it is torn: it ends after {} bytes", bytes));
  }
  if (header.magic != kMagic) return refused("it is not a checkpoint of Sluice");
  // Checked before the checksum, because another version may have another header.
  if (header.version != kVersion)
    return refused(base::format("it is of version {}, and this Sluice reads version {}",
                                header.version, kVersion));
  if (header.checksum != checksum(header)) return refused("its header is damaged");
  if (bytes != header.bytes)
    return refused(base::format("it is torn: it has {} of {} bytes", bytes, header.bytes));
  if (header.sections > kMostSections || header.ranks < 1 ||
      header.owner < CheckpointHeader::kCommon || header.owner >= header.ranks)
    return refused("its header contradicts itself");
  return header;
}

CheckpointHeader part_header(const FileHeader& header) {
  return {.step = header.step,
          .run = header.run,
          .ranks = header.ranks,
          .owner = header.owner,
          .accuracy = header.accuracy};
}

// Reads the section at offset `at`, and moves `at` to its end.
Result<Section> read_section(std::span<const std::byte> file, std::uint64_t& at, std::uint64_t seed,
                             std::size_t number) {
  const auto damaged = [&] { return refused(base::format("its array {} is damaged", number)); };
  SectionHeader header;
  if (file.size() - at < sizeof header) return damaged();
  std::memcpy(&header, file.data() + at, sizeof header);
  if (header.dimensions > kMostDimensions || header.name_bytes > file.size() ||
      header.bytes > file.size())
    return damaged();
  const std::uint64_t shape_bytes = header.dimensions * sizeof(std::int64_t);
  const std::uint64_t head_bytes = aligned(sizeof header + shape_bytes + header.name_bytes);
  if (file.size() - at < head_bytes + aligned(header.bytes)) return damaged();
  const std::uint64_t own =
      XXH64(file.data() + at + sizeof header.checksum,
            head_bytes + aligned(header.bytes) - sizeof header.checksum, seed);
  if (own != header.checksum || header.type > 1U + static_cast<unsigned>(DataType::I64))
    return damaged();

  Section section;
  const std::byte* const shape = file.data() + at + sizeof header;
  section.shape.resize(header.dimensions);
  if (shape_bytes > 0) std::memcpy(section.shape.data(), shape, shape_bytes);
  section.name.assign(reinterpret_cast<const char*>(shape + shape_bytes), header.name_bytes);
  section.data = file.subspan(at + head_bytes, header.bytes);
  if (header.type > 0) section.type = static_cast<DataType>(header.type - 1);
  std::uint64_t elements = 1;
  for (const std::int64_t size : section.shape) elements *= static_cast<std::uint64_t>(size);
  if (elements * (section.type ? size_of(*section.type) : 1) != header.bytes) return damaged();
  at += head_bytes + aligned(header.bytes);
  return section;
}

Status unreadable() {
  return refused(errno == ENOENT ? std::string{"it is missing"}
                                 : base::format("it cannot be read: {}", std::strerror(errno)));
}

// Fills `into` from the beginning of the file; a short file fills only the front.
Status read_front(int fd, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<FileHeader> read_header(const std::filesystem::path& path, base::Fd& fd) {
  fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.open() || fstat(fd.number(), &status) != 0) return unreadable();
  if (!S_ISREG(status.st_mode)) return refused("it is not a regular file");
  FileHeader header;
  if (Status read = read_front(fd.number(), std::as_writable_bytes(std::span{&header, 1}));
      !read.ok())
    return read;
  return check(header, static_cast<std::uint64_t>(status.st_size));
}

}  // namespace

const Section* CheckpointPart::find(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

Status sync_folder(const std::filesystem::path& folder) {
  const base::Fd fd{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd.open() || fsync(fd.number()) != 0) return failure(folder, "synced to the disk");
  return {};
}

Status write_part(const std::filesystem::path& file, const CheckpointHeader& header,
                  std::span<const Section> sections) {
  FileHeader own{.ranks = header.ranks,
                 .step = header.step,
                 .run = header.run,
                 .owner = header.owner,
                 .sections = static_cast<std::uint32_t>(sections.size()),
                 .bytes = sizeof(FileHeader),
                 .accuracy = header.accuracy};
  for (const Section& section : sections) own.bytes += bytes_of(section);
  own.checksum = checksum(own);

  const std::filesystem::path folder = file.parent_path();
  const std::filesystem::path temporary = folder / ("." + file.filename().string() + ".part");
  const base::Fd fd{open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (!fd.open()) return failure(temporary, "created");
  Status status;
  if (!write_sections(fd.number(), own, sections) || fsync(fd.number()) != 0) {
    status = failure(temporary, "written");
  } else if (rename(temporary.c_str(), file.c_str()) != 0) {
    status = failure(file, "renamed to this name");
  } else {
    return sync_folder(folder);
  }
  unlink(temporary.c_str());
  return status;
}

Result<CheckpointHeader> read_part_header(const std::filesystem::path& file) {
  base::Fd fd;
  const Result<FileHeader> header = read_header(file, fd);
  if (!header.ok()) return header.status();
  return part_header(header.value());
}

Result<CheckpointPart> read_part(const std::filesystem::path& file) {
  base::Fd fd;
  const Result<FileHeader> header = read_header(file, fd);
  if (!header.ok()) return header.status();
  std::vector<std::byte> memory(header.value().bytes);
  if (Status read = read_front(fd.number(), memory); !read.ok()) return read;
  std::vector<Section> sections;
  std::uint64_t at = sizeof(FileHeader);
  for (std::size_t i = 0; i < header.value().sections; ++i) {
    Result<Section> section = read_section(memory, at, header.value().checksum, i);
    if (!section.ok()) return section.status();
    sections.push_back(std::move(section).value());
  }
  if (at != memory.size()) return refused("its arrays do not fill it");
  return CheckpointPart{part_header(header.value()), std::move(memory), std::move(sections)};
}

}  // namespace sluice::train

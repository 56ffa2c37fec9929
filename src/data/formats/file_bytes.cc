#include "data/formats/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/format.h"

namespace sluice::data {
namespace {

Status refuse(int error) {
  return {Code::InvalidInput, base::format("cannot be read: {}", std::strerror(error))};
}

}  // namespace

Status read_bytes(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes) {
  const base::Fd file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.open()) return refuse(errno);
  struct stat about {};
  if (fstat(file.number(), &about) != 0) return refuse(errno);
  if (S_ISDIR(about.st_mode)) return refuse(EISDIR);
  bytes.resize(static_cast<std::size_t>(about.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.number(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse(errno);
    if (count == 0) break;  // the file was truncated in the meantime
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return {};
}

Status read_maybe_gzipped(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes) {
  Status status = read_bytes(path, bytes);
  if (!status.ok() || bytes.size() < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) return status;
  return gunzip(bytes);
}

}  // namespace sluice::data

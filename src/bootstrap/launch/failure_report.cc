#include "bootstrap/launch/failure_report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bootstrap {
namespace {

// A report in the pipe. It is short enough for the system to write it in one piece.
struct Record {
  static constexpr std::uint64_t kMagic = 0x736c7569'63650301;  // "sluice", report, version 1
  std::uint64_t magic = kMagic;
  Rank rank = 0;
  Rank culprit = 0;
  std::array<char, 1008> message{};  // ends with a zero
};
static_assert(sizeof(Record) <= PIPE_BUF);

// "7:12:34567": the descriptor, and the device and number of its pipe. Empty: it is no pipe.
std::string name_of_pipe(int descriptor) {
  struct stat pipe {};
  if (fstat(descriptor, &pipe) != 0 || !S_ISFIFO(pipe.st_mode)) return "";
  return base::format("{}:{}:{}", descriptor, pipe.st_dev, pipe.st_ino);
}

}  // namespace

FailureReporter FailureReporter::to(std::string_view launcher) {
  const auto descriptor = base::parse_integer(launcher.substr(0, launcher.find(':')), 0,
                                              std::numeric_limits<int>::max(), "the descriptor");
  if (!descriptor.ok()) return {};
  const int number = static_cast<int>(descriptor.value());
  if (name_of_pipe(number) != launcher) return {};
  fcntl(number, F_SETFD, FD_CLOEXEC);
  return FailureReporter{number};
}

void FailureReporter::send(const FailureReport& report) const {
  if (descriptor_ < 0) return;
  Record record{.rank = report.rank, .culprit = report.culprit};
  std::copy_n(report.message.begin(), std::min(report.message.size(), record.message.size() - 1),
              record.message.begin());
  (void)!write(descriptor_, &record, sizeof record);
}

Result<FailureReports> FailureReports::make() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0)
    return Status{Code::NoMemory, base::format("cannot make a pipe: {}", std::strerror(errno))};
  FailureReports reports;
  reports.read_end_.reset(ends[0]);
  reports.write_end_.reset(ends[1]);
  fcntl(ends[1], F_SETFD, 0);
  reports.variable_ = name_of_pipe(ends[1]);
  return reports;
}

void FailureReports::read(int ranks) {
  Record record;
  while (::read(read_end_.number(), &record, sizeof record) == sizeof record) {
    const bool valid = record.magic == Record::kMagic && record.message.back() == '\0' &&
                       0 <= record.rank && record.rank < ranks && 0 <= record.culprit &&
                       record.culprit < ranks;
    if (!valid) continue;
    first_.try_emplace(record.rank,
                       FailureReport{record.rank, record.culprit, record.message.data()});
  }
}

const FailureReport* FailureReports::of(Rank rank) const {
  const auto found = first_.find(rank);
  return found == first_.end() ? nullptr : &found->second;
}

}  // namespace sluice::bootstrap

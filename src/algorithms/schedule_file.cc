#include "algorithms/schedule_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "schedule/traffic.h"

namespace sluice::algorithms {
namespace {

constexpr std::string_view kPrefix = "file:";

// A name that was used, with all that the Algorithm refers to.
struct NamedFile {
  std::string name;
  ScheduleFile file;
  Collective collective{};
  Algorithm algorithm;
};

std::shared_ptr<NamedFile> load(std::string_view name) {
  auto named = std::make_shared<NamedFile>();
  named->name = name;
  Algorithm& algorithm = named->algorithm;
  ScheduleFile& file = named->file;
  algorithm.name = named->name;
  algorithm.file = &file;
  Result<Schedule> read = read_schedule_file(path_of_file(name));
  if (!read.ok()) {
    file.status = read.status();
    return named;
  }
  file.schedule = std::move(read).value();
  file.hash = hash_schedule(file.schedule);
  const Schedule& schedule = file.schedule;
  named->collective = schedule.shape.collective;
  algorithm.collectives = {&named->collective, 1};
  algorithm.ordered = schedule.ordered;
  algorithm.equal_chunks = schedule.equal_chunks;
  algorithm.program = [&schedule](const Shape& /*shape*/, Rank rank) {
    return schedule.programs[static_cast<std::size_t>(rank)];
  };
  algorithm.steps = [&schedule](const Shape& /*shape*/) {
    int steps = 0;
    for (const Program& program : schedule.programs) steps = std::max(steps, program.steps());
    return steps;
  };
  algorithm.sent = [&schedule](const Shape& /*shape*/, Rank rank) {
    return sent_share(schedule.programs[static_cast<std::size_t>(rank)]);
  };
  algorithm.traffic = [&schedule](const Shape& /*shape*/, TrafficSink& sink) {
    schedule::count_traffic(schedule, sink);
  };
  return named;
}

struct Files {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<NamedFile>, std::less<>> by_name;

  // Files with the same contents are the same algorithm, under the name that was used first.
  std::shared_ptr<NamedFile> find_same(const ScheduleFile& file) const {
    for (const auto& [name, named] : by_name) {
      if (file.status.ok() && named->file.status.ok() && named->file.schedule == file.schedule)
        return named;
    }
    return nullptr;
  }
};

Files& files_of_process() {
  static Files files;
  return files;
}

}  // namespace

bool names_file(std::string_view name) { return name.starts_with(kPrefix); }

std::string path_of_file(std::string_view name) { return std::string{name.substr(kPrefix.size())}; }

const Algorithm& file_algorithm(std::string_view name) {
  Files& files = files_of_process();
  const std::lock_guard lock{files.mutex};
  auto known = files.by_name.find(name);
  if (known == files.by_name.end()) {
    std::shared_ptr<NamedFile> named = load(name);
    if (const auto same = files.find_same(named->file)) named = same;
    known = files.by_name.emplace(name, std::move(named)).first;
  }
  return known->second->algorithm;
}

const Algorithm* find_file_by_hash(std::uint32_t hash) {
  Files& files = files_of_process();
  const std::lock_guard lock{files.mutex};
  for (const auto& [name, named] : files.by_name) {
    if (named->file.status.ok() && static_cast<std::uint32_t>(named->file.hash) == hash)
      return &named->algorithm;
  }
  return nullptr;
}

Result<Shape> shape_of_file(const Algorithm& algorithm, const Shape& asked) {
  const Shape& shape = algorithm.file->schedule.shape;
  if (asked.ranks != shape.ranks) {
    return Status{Code::InvalidArgument,
                  base::format("{} is a schedule of {} ranks, not {}: give one of {} ranks",
                               algorithm.name, shape.ranks, asked.ranks, asked.ranks)};
  }
  if (has_root(asked.collective) && asked.root != shape.root) {
    return Status{Code::InvalidArgument,
                  base::format("{} has root {}, not {}: give a schedule with that root",
                               algorithm.name, shape.root, asked.root)};
  }
  return shape;
}

Status check_count(const Algorithm& algorithm, std::int64_t count) {
  if (!algorithm.equal_chunks) return {};
  const int chunks = algorithm.file->schedule.programs.front().chunking().chunks();
  if (count % chunks == 0) return {};
  return {Code::InvalidArgument,
          base::format("{} cuts the buffer into {} equal chunks: give a number of elements that is "
                       "a multiple of {}, not {}",
                       algorithm.name, chunks, chunks, count)};
}

Result<Schedule> read_schedule_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Status{Code::InvalidInput, base::format("{}{}", path, why)};
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return refuse(" is a folder, not a schedule file");
  std::ifstream file{path, std::ios::binary};
  if (!file) return refuse(base::format(" cannot be read: {}", std::strerror(errno)));
  Result<Schedule> schedule = parse_schedule(file);
  if (!schedule.ok()) return refuse(base::format(", {}", schedule.status().message()));
  return schedule;
}

}  // namespace sluice::algorithms

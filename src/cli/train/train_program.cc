#include "cli/train/train_program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/host.h"
#include "sluice/status.h"

namespace sluice::cli {

std::string train_program() {
#ifndef SLUICE_TORCH_VERSION
  throw Error{Status{Code::InvalidArgument,
                     "this sluice was built without libtorch and does not train: install it (apt "
                     "install libtorch-dev, or tools/setup) and build again"}};
#else
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sluice-train";
  if (access(path.c_str(), X_OK) != 0) {
    throw Error{
        Status{Code::InvalidInput,
               base::format("{}, which belongs beside sluice, is not there: build or install "
                            "again",
                            base::quote(path.string()))}};
  }
  return path.string();
#endif
}

void become_train_program(std::vector<std::string> arguments) {
  const std::string path = train_program();
  arguments.insert(arguments.begin(), path);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  throw Error{Status{Code::InvalidInput, base::format("{} cannot be run: {}", base::quote(path),
                                                      std::strerror(errno))}};
}

RankThreads share_threads(int threads, bool decodes) {
  if (!decodes) return {.compute = std::max(1, threads), .loader = 0};
  const int loader = std::max(1, threads / 4);
  return {.compute = std::max(1, threads - loader), .loader = loader};
}

void take_share_of_cores(const bootstrap::Placement& placement,
                         const bootstrap::Environment& environment) {
  const std::vector<int> cores = bootstrap::usable_cores();
  // A launcher that binds its ranks gives each fewer cores than it has itself.
  const bool bound = bootstrap::usable_cores(getppid()) != cores;
  std::span<const int> share = cores;
  if (!bound) {
    share = bootstrap::share_of_cores(cores, placement.local_ranks, placement.local_rank);
    (void)bootstrap::pin_to(share);  // not to be pinned is slower, not wrong
  }
  if (!environment.has(bootstrap::variable::kThreads))
    setenv(bootstrap::variable::kThreads.name.data(), std::to_string(share.size()).c_str(), 0);
}

int threads_of_rank(const bootstrap::Environment& environment) {
  constexpr int kMostThreads = 4096;
  const auto text = environment.text(bootstrap::variable::kThreads);
  const auto number =
      text ? base::parse_whole(*text, 1, kMostThreads, bootstrap::variable::kThreads.name)
           : Result<std::int64_t>{1};
  return number.ok() ? static_cast<int>(number.value()) : 1;
}

}  // namespace sluice::cli

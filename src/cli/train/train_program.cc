#include "cli/train/train_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/text.h"
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

}  // namespace sluice::cli

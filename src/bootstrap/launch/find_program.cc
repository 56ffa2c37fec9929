#include "bootstrap/launch/find_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bootstrap {
namespace {

bool runnable(const std::string& path) {
  struct stat found {};
  return access(path.c_str(), X_OK) == 0 && stat(path.c_str(), &found) == 0 &&
         S_ISREG(found.st_mode);
}

}  // namespace

Result<std::string> find_program(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) {
    if (runnable(name)) return name;
    const bool there = access(name.c_str(), F_OK) == 0;
    return Status{Code::InvalidArgument,
                  base::format("{} {}", base::quote(name),
                               there ? "is not a program that can be run" : "does not exist")};
  }
  const std::string folders =
      environment.text(variable::kPath).value_or(std::string{variable::kPath.fallback});
  for (std::string_view rest = folders; !name.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    std::string path = base::format("{}/{}", folder.empty() ? "." : folder, name);
    if (runnable(path)) return path;
    if (folder.size() == rest.size()) break;
    rest.remove_prefix(folder.size() + 1);
  }
  return Status{
      Code::InvalidArgument,
      base::format(
          "there is no program {} on PATH{}", base::quote(name),
          !name.empty() && runnable("./" + name) ? base::format(": write ./{}", name) : "")};
}

}  // namespace sluice::bootstrap

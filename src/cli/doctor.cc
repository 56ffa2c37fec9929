// doctor.cc - `sluice doctor`: lists the libraries and hardware that Sluice found, and what each is
// for.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/host.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "sluice/algorithms.h"
#include "sluice/version.h"
#include "transport/mpi/mpi.h"

namespace sluice::cli {
namespace {

struct Finding {
  std::string what;
  bool found;
  std::string detail;
};

std::string cpu_model() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return "unknown processor";
}

Finding library(const std::string& what, std::initializer_list<const char*> names,
                const std::string& fix, const std::string& use) {
  for (const char* const name : names) {
    if (void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL); handle != nullptr) {
      dlclose(handle);
      return {what, true, base::format("{} ({})", name, use)};
    }
  }
  return {what, false, base::format("{} not found ({}): {}", *names.begin(), use, fix)};
}

Finding libtorch() {
#ifdef SLUICE_TORCH_VERSION
  return {"libtorch", true, "built with version " SLUICE_TORCH_VERSION " (for training)"};
#else
  return {
      "libtorch", false,
      "Sluice was built without it and cannot train: apt install libtorch-dev, then build again"};
#endif
}

// Debian's libtorch multiplies matrices with the library that libblas.so.3 links to.
Finding blas() {
  void* const handle = dlopen("libblas.so.3", RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr)
    return {"blas", false, "libblas.so.3 not found; libtorch may contain its own"};
  const link_map* map = nullptr;
  std::string path = "libblas.so.3";
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(map->l_name, error);
    if (!error) path = real.string();
  }
  dlclose(handle);
  const bool reference = path.find("/blas/") != std::string::npos;
  if (!reference) return {"blas", true, path + " (for the Linear layers of libtorch)"};
  return {"blas", false,
          path + " is the reference BLAS, 20 times slower: apt install libopenblas0-pthread"};
}

Finding image_files() {
  std::vector<std::string> lacking;
#ifndef SLUICE_HAS_TURBOJPEG
  lacking.emplace_back("JPEG (libturbojpeg0-dev)");
#endif
#ifndef SLUICE_HAS_PNG
  lacking.emplace_back("PNG (libpng-dev)");
#endif
#ifndef SLUICE_HAS_Z
  lacking.emplace_back("gzip (zlib1g-dev)");
#endif
  if (lacking.empty()) return {"image files", true, "JPEG, PNG, gzip"};
  return {"image files", false,
          base::format("Sluice was built without {}: install it, then build again",
                       base::join(lacking, ", "))};
}

std::vector<Finding> findings() {
  std::vector<Finding> all;
  all.push_back({"processor", true,
                 base::format("{}, {} of {} cores usable", cpu_model(),
                              bootstrap::usable_cores().size(), sysconf(_SC_NPROCESSORS_CONF))});
  all.push_back({"memory", true,
                 base::format("{}, {} available", base::format_bytes(memory_bytes("MemTotal")),
                              base::format_bytes(memory_bytes("MemAvailable")))});
  all.push_back({"compiler", true, base::format("built with {}", __VERSION__)});
  all.push_back({"algorithms", true, base::format("{} built in", built_in_algorithms().size())});
  all.push_back(libtorch());
  all.push_back(blas());
  all.push_back(image_files());
  all.push_back({"mpi", transport::has_mpi(), transport::mpi_description()});
  all.push_back(library("cuda", {"libcuda.so.1"}, "install the NVIDIA driver",
                        "for GPUs, which this version does not use yet"));
  all.push_back(library("nccl", {"libnccl.so.2"}, "install NCCL",
                        "for GPUs, which this version does not use yet"));
  return all;
}

void run(bool json) {
  const std::vector<Finding> all = findings();
  if (json) {
    nlohmann::ordered_json document{{"version", SLUICE_VERSION}};
    for (const Finding& finding : all) {
      document["findings"].push_back(
          {{"what", finding.what}, {"found", finding.found}, {"detail", finding.detail}});
    }
    base::print("{}\n",
                document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  base::print("sluice {}\n", SLUICE_VERSION);
  for (const Finding& finding : all) {
    base::print("  {:<4} {:<11} {}\n", finding.found ? "yes" : "no", finding.what, finding.detail);
  }
}

}  // namespace

void add_doctor(CommandLine& program, int& exit_status) {
  auto json = std::make_shared<bool>(false);
  CommandLine* const command =
      program.add_subcommand("doctor", "List what Sluice found on this machine");
  command->add_flag("--json", *json, "Print one JSON document");
  command->footer(
      "Each line is 'yes' or 'no', a part, and what it is for or how to install it.\n"
      "Examples:\n"
      "  sluice doctor\n"
      "  sluice doctor --json");
  command->callback([json, &exit_status] {
    run(*json);
    exit_status = kExitDone;
  });
}

}  // namespace sluice::cli

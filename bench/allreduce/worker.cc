#include "bench/allreduce/worker.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "bootstrap/host.h"

namespace sluice::bench {
namespace {

base::Fd connect_to(const std::string& path) {
  base::Fd fd{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(fd.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error{base::format("cannot connect to the driver at {}", path)};
  return fd;
}

int number_from(const char* name, int fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::atoi(text);
}

WorkerArguments arguments_of(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error{"this program is started by a benchmark, not by hand"};
  WorkerArguments arguments{.socket = argv[1], .extra = argc > 2 ? argv[2] : ""};
  if (argc > 4) {
    arguments.rank = std::atoi(argv[3]);
    arguments.ranks = std::atoi(argv[4]);
  } else {
    arguments.rank = number_from("OMPI_COMM_WORLD_RANK", number_from("PMI_RANK", 0));
  }
  return arguments;
}

void serve(const RequestHandler& handle, const std::string& socket) {
  const base::Fd driver = connect_to(socket);
  std::string request(kMostMessage, '\0');
  for (;;) {
    const ssize_t size = recv(driver.number(), request.data(), request.size(), 0);
    if (size <= 0) return;
    const std::string reply =
        handle(std::string_view{request}.substr(0, static_cast<std::size_t>(size)));
    if (send(driver.number(), reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
  }
}

}  // namespace

int worker_main(int argc, char** argv, const MakeRequestHandler& make) {
  try {
    const WorkerArguments arguments = arguments_of(argc, argv);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Pin before the library starts threads, so that they stay on the rank's core, too.
    const std::vector<int> cores = bootstrap::usable_cores();
    const int core = cores[static_cast<std::size_t>(arguments.rank) % cores.size()];
    if (!bootstrap::pin_to({&core, 1}))
      throw std::runtime_error{base::format("cannot pin to core {}", core)};
    serve(make(arguments), arguments.socket);
    return 0;
  } catch (const std::exception& error) {
    base::print(stderr, "contender: {}\n", error.what());
    return 1;
  }
}

}  // namespace sluice::bench

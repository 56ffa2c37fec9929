#include "bench/allreduce/team.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/format.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStartLimit{60};
constexpr std::chrono::milliseconds kEndGrace{3000};

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&set, signal);
  return set;
}

base::Fd listen_at(const std::string& path) {
  base::Fd fd{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof address.sun_path) {
    throw Error{
        Status{Code::InvalidInput,
               base::format("{} is too long for a socket: set TMPDIR to a shorter path", path)}};
  }
  path.copy(address.sun_path, path.size());
  if (bind(fd.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.number(), SOMAXCONN) != 0) {
    throw Error{Status{Code::InvalidInput,
                       base::format("cannot listen at {}: {}", path, std::strerror(errno))}};
  }
  return fd;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void StopSignals::throw_if_any() const {
  signalfd_siginfo info{};
  if (read(fd(), &info, sizeof info) == sizeof info)
    throw Stopped{static_cast<int>(info.ssi_signo)};
}

Team::Team(TeamOptions options, const StopSignals& signals)
    : options_{std::move(options)},
      signals_{signals},
      job_{base::format("sluice-bench.{}.{}.{}", getpid(), options_.name, options_.ranks)},
      socket_{options_.folder + "/driver"} {
  try {
    await_processes();
  } catch (...) {
    end(true);
    throw;
  }
}

Team::~Team() { end(false); }

void Team::start(const std::vector<std::string>& command, Rank rank) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::string log = base::format("{}/{}.log", options_.folder, options_.name);
  const pid_t driver = getpid();
  const pid_t child = fork();
  if (child != 0) {
    if (child > 0) children_.push_back(child);
    return;
  }
  prctl(PR_SET_PDEATHSIG, options_.launcher.empty() ? SIGKILL : SIGTERM);
  if (getppid() != driver) _exit(1);
  setpgid(0, 0);  // Ctrl-C reaches only the driver, which ends all teams in order
  const sigset_t set = stop_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  setenv("TMPDIR", options_.folder.c_str(), 1);
  if (options_.launcher.empty()) {
    setenv("SLUICE_RANK", std::to_string(rank).c_str(), 1);
    setenv("SLUICE_RANKS", std::to_string(options_.ranks).c_str(), 1);
    setenv("SLUICE_JOB", job_.c_str(), 1);
    setenv("SLUICE_TOKEN", job_.c_str(), 1);
  }
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  options_.prepare(rank);
  execvp(arguments[0], arguments.data());
  base::print(stderr, "contender: cannot run {}: {}\n", command[0], std::strerror(errno));
  _exit(127);
}

void Team::await_processes() {
  const base::Fd listener = listen_at(socket_);
  if (options_.launcher.empty()) {
    for (Rank rank = 0; rank < options_.processes; ++rank) {
      std::vector<std::string> command = options_.interpreter;
      command.insert(command.end(), {options_.program, socket_, options_.extra,
                                     std::to_string(rank), std::to_string(options_.ranks)});
      start(command, rank);
    }
  } else {
    std::vector<std::string> command = options_.launcher;
    command.insert(command.end(), {options_.program, socket_, options_.extra});
    start(command, 0);
  }
  const auto limit = Clock::now() + kStartLimit;
  while (processes_.size() < static_cast<std::size_t>(options_.processes)) {
    std::array<pollfd, 2> ready{{{listener.number(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    poll(ready.data(), ready.size(), 100);
    signals_.throw_if_any();
    if ((ready[0].revents & POLLIN) != 0) {
      base::Fd fd{accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC)};
      ucred peer{};
      socklen_t size = sizeof peer;
      getsockopt(fd.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
      if (!fd.open() || peer.uid != getuid()) continue;
      base::Fd process{static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0))};
      processes_.push_back({std::move(fd), std::move(process)});
    } else if (reap()) {
      fail("did not start");
    } else if (Clock::now() > limit) {
      fail(base::format("did not start within {} s", kStartLimit.count()));
    }
  }
}

std::vector<std::string> Team::request(std::string_view message) {
  for (const Process& process : processes_) {
    if (send(process.socket.number(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
      fail("died");
  }
  std::vector<std::string> replies;
  const auto limit = Clock::now() + options_.slice_limit;
  for (const Process& process : processes_) {
    std::array<pollfd, 2> ready{{{process.socket.number(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    while (ready[0].revents == 0) {
      poll(ready.data(), ready.size(), 1000);
      signals_.throw_if_any();
      // If a rank dies, the others wait forever, so check the processes.
      if (ready[0].revents == 0 && reap()) fail("died");
      if (ready[0].revents == 0 && Clock::now() > limit)
        fail(base::format("took longer than {} s", options_.slice_limit.count()));
    }
    std::string reply(kMostMessage, '\0');
    const ssize_t size = recv(process.socket.number(), reply.data(), reply.size(), 0);
    if (size <= 0) fail("died");
    reply.resize(static_cast<std::size_t>(size));
    replies.push_back(std::move(reply));
  }
  return replies;
}

SliceResult Team::run(const SliceRequest& slice) {
  std::array<double, kMostBatches> slowest_s{};
  double cpu_s = 0;
  for (const std::string& reply : request({reinterpret_cast<const char*>(&slice), sizeof slice})) {
    SliceReport report;
    if (reply.size() != sizeof report) fail("sent a reply of the wrong size");
    std::memcpy(&report, reply.data(), sizeof report);
    if (report.error[0] != '\0') {
      end(true);
      throw Error{Status{Code::InvalidInput, base::format("{} computed a wrong result: {}", name(),
                                                          report.error.data())}};
    }
    cpu_s += report.cpu_s;
    for (int i = 0; i < slice.batches; ++i)
      slowest_s[i] = std::max(slowest_s[i], report.operation_s[i]);
  }
  double* const middle = slowest_s.data() + slice.batches / 2;
  std::nth_element(slowest_s.data(), middle, slowest_s.data() + slice.batches);
  return {*middle, cpu_s};
}

// Whether a child has ended since the last call. Keeps the exit text of the first one.
bool Team::reap() {
  const std::size_t before = children_.size();
  std::erase_if(children_, [&](pid_t child) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) != child) return false;
    if (exit_text_.empty() && !ending_) {
      exit_text_ = WIFSIGNALED(status) ? base::format(" ({})", strsignal(WTERMSIG(status)))
                                       : base::format(" (status {})", WEXITSTATUS(status));
    }
    return true;
  });
  return children_.size() < before;
}

bool Team::all_ended_within(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  for (reap(); !children_.empty(); reap()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

void Team::end(bool at_once) {
  reap();
  ending_ = true;
  for (Process& process : processes_) process.socket.reset();  // the ranks see that and exit
  if (at_once || !all_ended_within(kEndGrace)) {
    for (const pid_t child : children_) kill(child, SIGTERM);  // mpirun ends its ranks
    if (!all_ended_within(kEndGrace)) {
      for (const pid_t child : children_) kill(-child, SIGKILL);
    }
  }
  for (const Process& process : processes_) {
    if (process.process.open())
      syscall(SYS_pidfd_send_signal, process.process.number(), SIGKILL, nullptr, 0);
  }
  for (const pid_t child : children_) waitpid(child, nullptr, 0);
  children_.clear();
  processes_.clear();
}

void Team::fail(const std::string& what) {
  end(true);
  const std::string words = last_error_line();
  throw Error{Status{Code::PeerLost, base::format("{} {}{}{}", name(), what, exit_text_,
                                                  words.empty() ? "" : "; its output: " + words)}};
}

// The last error line of the contender, or else the first line of its launcher.
std::string Team::last_error_line() const {
  std::ifstream log{base::format("{}/{}.log", options_.folder, options_.name)};
  std::string first;
  std::string own;
  for (std::string line; std::getline(log, line);) {
    constexpr std::string_view kMark = "contender: ";
    if (line.starts_with(kMark)) own = line.substr(kMark.size());
    if (first.empty() && line.find_first_not_of(" -=\r") != std::string::npos) first = line;
  }
  return own.empty() ? first : own;
}

}  // namespace sluice::bench

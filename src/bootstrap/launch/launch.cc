#include "bootstrap/launch/launch.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "bootstrap/environment.h"
#include "bootstrap/host.h"
#include "bootstrap/launch/failure_report.h"
#include "bootstrap/launch/rank_process.h"
#include "transport/tcp/tcp_socket.h"
#include "transport/token_proof.h"
#include "transport/wait.h"

namespace sluice::bootstrap {
namespace {

// Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGPIPE during its lifetime and
// makes them readable. SIGCHLD has its default action meanwhile, because waitpid() needs it. The
// destructor drops signals that were not read.
class LaunchSignals {
 public:
  LaunchSignals();
  ~LaunchSignals();
  LaunchSignals(const LaunchSignals&) = delete;
  LaunchSignals& operator=(const LaunchSignals&) = delete;

  const sigset_t& before() const { return before_; }  // the signal mask before
  int fd() const { return fd_.number(); }
  int next() const;  // 0: none

 private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  base::Fd fd_;
};

LaunchSignals::LaunchSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE})
    sigaddset(&taken, signal);
  pthread_sigmask(SIG_BLOCK, &taken, &before_);
  fd_.reset(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &child_before_);
}

LaunchSignals::~LaunchSignals() {
  while (next() != 0) continue;  // a pending signal would be delivered when the mask is restored
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int LaunchSignals::next() const {
  signalfd_siginfo info{};
  return read(fd_.number(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                               : 0;
}

// Raises the limit of open files during its lifetime: the launcher has three for each rank.
class ManyFiles {
 public:
  ManyFiles() {
    if (getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
    rlimit raised = before_;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised);
  }
  ~ManyFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  ManyFiles(const ManyFiles&) = delete;
  ManyFiles& operator=(const ManyFiles&) = delete;

  const rlimit& before() const { return before_; }

 private:
  rlimit before_{};
};

bool is_termination(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

using Variables = std::vector<std::pair<std::string_view, std::string>>;

// The launcher's own environment, with the added variables first; they replace those of the same
// name.
std::vector<std::string> environment_with(const Variables& added) {
  std::vector<std::string> all;
  for (const auto& [name, value] : added) all.push_back(base::format("{}={}", name, value));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(added.begin(), added.end(),
                     [&](const auto& pair) { return pair.first == name; })) {
      all.emplace_back(text);
    }
  }
  return all;
}

constexpr int kWrongInput = 2;  // an exit status

bool is_final(const LaunchOptions& options, int status) {
  return std::find(options.final_statuses.begin(), options.final_statuses.end(), status) !=
         options.final_statuses.end();
}

std::string because_of(const FailureReport* report) {
  return report != nullptr ? base::format(" because of rank {}", report->culprit) : "";
}

// One start of all ranks.
struct Attempt {
  int restarts = 0;                       // before this attempt
  std::int64_t started_ns = 0;            // start of the first attempt, since 1970
  transport::Clock::time_point deadline;  // of all attempts together
};

class Launch {
 public:
  Launch(const LaunchOptions& options, const LaunchSignals& signals, const Attempt& attempt)
      : options_{options}, signals_{signals}, attempt_{attempt}, deadline_{attempt.deadline} {}

  Status start() {
    const Environment environment = Environment::of_process();
    auto path = find_program(options_.program[0], environment);
    if (!path.ok()) return path.status();
    Variables shared = shared_variables(environment);
    auto reports = FailureReports::make();
    if (!reports.ok()) return reports.status();
    reports_ = std::move(reports).value();
    shared.emplace_back(variable::kLauncher.name, reports_->variable());
    const std::vector<int> cores = usable_cores();
    const std::size_t threads =
        std::max<std::size_t>(1, cores.size() / static_cast<std::size_t>(options_.ranks));

    ranks_.reserve(static_cast<std::size_t>(options_.ranks));
    for (Rank local = 0; local < options_.ranks; ++local) {
      Variables added = shared;
      added.emplace_back(variable::kRank.name, std::to_string(global(local)));
      added.emplace_back(variable::kLocalRank.name, std::to_string(local));
      if (!environment.has(variable::kThreads))
        added.emplace_back(variable::kThreads.name, std::to_string(threads));
      RankCommand command{.rank = global(local),
                          .path = path.value(),
                          .arguments = options_.program,
                          .environment = environment_with(added),
                          .signals = signals_.before(),
                          .files = files_.before(),
                          .prefix = prefix_of(global(local)),
                          .owns_terminal = options_.first_rank_owns_terminal && local == 0,
                          .out = options_.out,
                          .err = options_.err};
      if (options_.bind) command.cores = share_of_cores(cores, options_.ranks, local);
      auto started = RankProcess::start(command);
      if (!started.ok()) return started.status();
      reaper_.add(started.value().pid());
      ranks_.push_back(std::move(started).value());
    }
    return {};
  }

  LaunchOutcome run_to_end() {
    while (!all_ended()) {
      wait_and_copy_output();
      forward_signals();
      check_ends();
      check_time();
    }
    for (RankProcess& rank : ranks_) {
      if (!rank.out().finish() || !rank.err().finish()) handle_lost_output();
    }
    forward_signals();  // a termination signal that came just now prevents a restart
    if (first_failed_) {
      RankProcess& rank = ranks_[*first_failed_];
      const Rank number = global(static_cast<Rank>(*first_failed_));
      outcome_.first_failure = {.rank = number,
                                .how = rank.end()->describe(),
                                .status = rank.end()->by_signal ? -1 : rank.end()->number,
                                .last_lines = rank.err().last_lines()};
      if (const FailureReport* const report = report_of(*first_failed_)) {
        outcome_.first_failure->culprit = report->culprit;
        outcome_.first_failure->report = report->message;
      }
    }
    return outcome_;
  }

 private:
  // The global number of a rank of this host.
  Rank global(Rank local) const { return options_.host * options_.ranks + local; }

  // The first rank may have drawn a line on the terminal; the lines of other ranks overwrite it.
  std::string prefix_of(Rank rank) const {
    return base::format("{}{}", options_.first_rank_owns_terminal ? "\r\033[K" : "",
                        options_.prefix ? base::format("[{}] ", rank) : std::string{});
  }

  // The variables that all ranks of this host receive.
  Variables shared_variables(const Environment& environment) const {
    Variables shared{{variable::kRanks.name, std::to_string(options_.hosts * options_.ranks)},
                     {variable::kLocalRanks.name, std::to_string(options_.ranks)},
                     {variable::kRestarts.name, std::to_string(attempt_.restarts)},
                     {variable::kStarted.name, std::to_string(attempt_.started_ns)}};
    if (!environment.has(variable::kLog)) shared.emplace_back(variable::kLog.name, "stderr");
    if (!options_.token.empty()) {
      shared.emplace_back(variable::kToken.name, options_.token);
    } else if (options_.hosts == 1) {
      shared.emplace_back(variable::kToken.name, random_token());
    }
    if (options_.master.empty()) {
      shared.emplace_back(variable::kJob.name, transport::random_name());
    } else {
      // The launchers of all hosts must make the same name without communication.
      const std::string master = transport::show_address(options_.master, options_.port);
      // A restart is another job, so that no rank joins ranks of the failed attempt.
      const std::string restart =
          attempt_.restarts > 0 ? base::format("-{}", attempt_.restarts) : std::string{};
      shared.emplace_back(variable::kJob.name, base::format("launch-{}{}", master, restart));
      shared.emplace_back(variable::kMasterAddress.name, options_.master);
      shared.emplace_back(variable::kPort.name, std::to_string(options_.port));
    }
    return shared;
  }

  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const RankProcess& rank) { return rank.end().has_value(); });
  }

  void wait_and_copy_output() {
    std::vector<pollfd> polled;
    std::vector<LineRelay*> relays;  // of the first descriptors
    for (RankProcess& rank : ranks_) {
      for (LineRelay* const relay : {&rank.out(), &rank.err()}) {
        if (!relay->open()) continue;
        polled.push_back({relay->source(), POLLIN, 0});
        relays.push_back(relay);
      }
    }
    for (const RankProcess& rank : ranks_) {
      if (!rank.end()) polled.push_back({rank.process(), POLLIN, 0});
    }
    polled.push_back({signals_.fd(), POLLIN, 0});
    const transport::Clock::time_point until = std::min(deadline_, kill_at_);
    int milliseconds = -1;
    if (until != transport::Clock::time_point::max()) {
      milliseconds = transport::poll_timeout(until, std::chrono::hours{1});
    }
    if (poll(polled.data(), polled.size(), milliseconds) <= 0) return;
    for (std::size_t i = 0; i < relays.size(); ++i) {
      if (polled[i].revents != 0 && !relays[i]->copy_some()) handle_lost_output();
    }
  }

  void forward_signals() {
    for (int signal = 0; (signal = signals_.next()) != 0;) {
      if (signal == SIGPIPE) continue;
      const bool ends = is_termination(signal);
      const bool again = ends && (outcome_.signal != 0 || stopping());
      if (ends && outcome_.signal == 0) outcome_.signal = signal;
      if (ends && !again) {
        options_.report(base::format("forwarding {} to the ranks; a second one kills them",
                                     signal_name(signal)));
      }
      send_all(again ? SIGKILL : signal);
    }
  }

  void check_ends() {
    std::optional<std::size_t> worst;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!ranks_[i].check_end() || !ranks_[i].end()->failed()) continue;
      if (!worst || cause_likelihood(*ranks_[i].end()) > cause_likelihood(*ranks_[*worst].end()))
        worst = i;
    }
    // A rank that ends because the launcher has stopped it did not fail.
    if (!worst || stopping() || outcome_.signal != 0) return;
    first_failed_ = worst;
    reports_->read(options_.hosts * options_.ranks);
    const RankEnd& end = *ranks_[*worst].end();
    const Rank rank = global(static_cast<Rank>(*worst));
    if (end.by_signal || !is_final(options_, end.number)) {
      options_.report(base::format("rank {} {}{}; stopping the others", rank, end.describe(),
                                   because_of(report_of(*worst))));
    }
    stop();
  }

  // Orders ranks that ended at the same time: a crash is a likelier cause than an error, and an
  // error is likelier than status 3, which means that a peer failed.
  static int cause_likelihood(const RankEnd& end) {
    constexpr int kPeerFailed = 3;
    if (end.by_signal) return 2;
    return end.number == kPeerFailed ? 0 : 1;
  }

  // What a rank that failed says of the rank that made it fail; nullptr: it is the culprit itself.
  // An uncaught error ends a rank with SIGABRT; other signals have a cause of their own.
  const FailureReport* report_of(std::size_t local) const {
    const RankEnd& end = *ranks_[local].end();
    const FailureReport* const report = reports_->of(global(static_cast<Rank>(local)));
    const bool other = report != nullptr && report->culprit != report->rank &&
                       (!end.by_signal || end.number == SIGABRT);
    return other ? report : nullptr;
  }

  void check_time() {
    const auto now = transport::Clock::now();
    if (now >= deadline_) {
      deadline_ = transport::Clock::time_point::max();
      if (!all_ended() && !stopping()) {
        outcome_.out_of_time = outcome_.signal == 0;
        stop();
      }
    }
    if (now >= kill_at_) {
      kill_at_ = transport::Clock::time_point::max();
      send_all(SIGKILL);
    }
  }

  void handle_lost_output() {
    if (outcome_.output_lost) return;
    outcome_.output_lost = true;
    if (!stopping()) stop();
  }

  void stop() {
    stopped_ = true;
    kill_at_ = transport::Clock::now() + options_.grace;
    send_all(SIGTERM);
  }
  bool stopping() const { return stopped_; }

  void send_all(int signal) {
    for (const RankProcess& rank : ranks_) rank.send(signal);
  }

  const LaunchOptions& options_;
  const LaunchSignals& signals_;
  const Attempt& attempt_;
  ManyFiles files_;
  std::optional<FailureReports> reports_;
  std::vector<RankProcess> ranks_;
  // Destroyed before the ranks: afterwards the system may reuse their process numbers.
  OrphanReaper reaper_;
  std::optional<std::size_t> first_failed_;
  bool stopped_ = false;
  transport::Clock::time_point deadline_;
  transport::Clock::time_point kill_at_ = transport::Clock::time_point::max();
  LaunchOutcome outcome_;
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Status check_hosts(const LaunchOptions& options) {
  constexpr int kMostRanks = 65536;
  if (options.hosts < 1 || options.hosts > kMostRanks / options.ranks) {
    return {Code::InvalidArgument,
            base::format("{} hosts with {} ranks each: the total must be 1 to {} ranks",
                         options.hosts, options.ranks, kMostRanks)};
  }
  if (options.host < 0 || options.host >= options.hosts) {
    return {Code::InvalidArgument,
            base::format("host {} is not one of {} hosts: hosts count from 0", options.host,
                         options.hosts)};
  }
  if (options.hosts > 1 && (options.master.empty() || options.port == 0))
    return {Code::InvalidArgument,
            "several hosts need a master: give the address and a port of host 0"};
  if (options.host > 0 && options.token.empty() && is_open_to_others(options))
    return {
        Code::InvalidArgument,
        base::format("host {} has no token: run the line that `sluice launch` prints on host 0, "
                     "or give all hosts the same secret as SLUICE_TOKEN or --token-file",
                     options.host)};
  return {};
}

}  // namespace

bool is_open_to_others(const LaunchOptions& options) {
  if (options.hosts == 1 || options.master == "localhost") return false;
  const auto address = transport::SocketAddress::numeric(options.master, options.port);
  return !address || !address->loopback();
}

std::string random_token() { return transport::random_name(); }

std::string describe(const LaunchOutcome::Failure& failure) {
  if (!failure.culprit)
    return base::format("rank {} failed first: it {}", failure.rank, failure.how);
  return base::format("rank {} failed first: rank {}, which {}, reports: {}", *failure.culprit,
                      failure.rank, failure.how, failure.report);
}

bool should_restart(const LaunchOptions& options, const LaunchOutcome& outcome) {
  if (!outcome.first_failure || outcome.signal != 0 || outcome.out_of_time || outcome.output_lost)
    return false;
  const int status = outcome.first_failure->status;
  return outcome.restarts < options.max_restarts && status != kWrongInput &&
         !is_final(options, status);
}

Result<LaunchOutcome> launch(const LaunchOptions& options) {
  if (options.ranks < 1 || options.ranks > kMostLocalRanks) {
    return Status{Code::InvalidArgument, base::format("a machine takes 1 to {} ranks, not {}",
                                                      kMostLocalRanks, options.ranks)};
  }
  if (options.program.empty())
    return Status{Code::InvalidArgument, "there is no program to launch: name one"};
  const Status hosts = check_hosts(options);
  if (!hosts.ok()) return hosts;
  // It outlives all attempts, so that no signal is lost between two of them.
  const LaunchSignals signals;
  Attempt attempt{.started_ns = options.started_ns != 0 ? options.started_ns : now_ns(),
                  .deadline = options.deadline ? transport::Clock::now() + *options.deadline
                                               : transport::Clock::time_point::max()};
  while (true) {
    Launch launch{options, signals, attempt};
    Status status = launch.start();
    if (!status.ok()) return status;
    LaunchOutcome outcome = launch.run_to_end();
    outcome.restarts = attempt.restarts;
    if (!should_restart(options, outcome) || transport::Clock::now() >= attempt.deadline)
      return outcome;
    ++attempt.restarts;
    options.report(base::format("restart {} of {}: rank {} {}; all {} ranks start again",
                                attempt.restarts, options.max_restarts, outcome.first_failure->rank,
                                outcome.first_failure->how, options.ranks));
  }
}

}  // namespace sluice::bootstrap

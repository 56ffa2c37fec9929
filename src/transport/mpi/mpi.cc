// mpi.cc - a network on an MPI communicator of its own.
//
// A rank may leave while others go on, but its communicator must not be freed while messages for it
// may come: MPI could give such a message to the next communicator with the same number. So a rank
// that leaves sends its pending messages and a goodbye to all peers, and retires its link. A
// retired link is freed when all peers have said goodbye to it.
#include "transport/mpi/mpi.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/format.h"
#include "transport/mpi/mpi_link.h"

namespace sluice::transport {
namespace {

constexpr int kSplitTag = 4;
constexpr int kSplitMessageTag = 5;
constexpr int kFirstGroupTag = 16;
constexpr std::uint64_t kGroupTags = 32'000;  // MPI promises tags up to 32'767

void pause_between_polls() { std::this_thread::sleep_for(kPollInterval); }

// This process' use of MPI.
class MpiProcess {
 public:
  static MpiProcess& instance() {
    static MpiProcess process;
    return process;
  }
  MpiProcess(const MpiProcess&) = delete;
  MpiProcess& operator=(const MpiProcess&) = delete;
  ~MpiProcess() { finalize(); }

  Status initialize();
  void join() { ++networks_; }
  void retire(std::unique_ptr<MpiLink> link);
  void free_retired();
  // A rank that has failed may never reach MPI_Finalize, so this one must not call it either.
  void fail() { failed_ = true; }

 private:
  MpiProcess() = default;
  void finalize();

  pid_t initialized_by_ = 0;
  bool failed_ = false;
  int networks_ = 0;
  std::vector<std::unique_ptr<MpiLink>> retired_;
};

Status MpiProcess::initialize() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0) {
    return {Code::InvalidArgument, "MPI was finalised already and cannot be initialised again"};
  }
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  int threads = MPI_THREAD_SINGLE;
  if (is_initialized == 0) {
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
    if (code != MPI_SUCCESS) {
      return {Code::PeerLost, "MPI could not be initialised: " + mpi_error(code)};
    }
    initialized_by_ = getpid();
  } else {
    MPI_Query_thread(&threads);
  }
  if (threads < MPI_THREAD_SERIALIZED) {
    return {Code::InvalidArgument,
            "MPI lets only one thread call it, but Sluice has a thread of its own: initialise it "
            "with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"};
  }
  return {};
}

void MpiProcess::retire(std::unique_ptr<MpiLink> link) {
  --networks_;
  // After a failure the caller may free memory that MPI still sends from, and any MPI call may read
  // it. So Sluice makes no more calls; the peers know already that this rank failed.
  const bool unsafe = failed_ && link->memory_in_use();
  if (!unsafe && !link->leave()) fail();
  retired_.push_back(std::move(link));
  free_retired();
}

void MpiProcess::free_retired() {
  if (failed_) return;
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0) return;
  std::erase_if(retired_, [](const std::unique_ptr<MpiLink>& link) {
    const bool over = link->over();
    if (over) link->free();
    return over;
  });
}

void MpiProcess::finalize() {
  // A forked child must not finalise MPI for its parent.
  if (initialized_by_ != getpid() || failed_ || networks_ > 0) return;
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0) return;
  free_retired();
  for (const std::unique_ptr<MpiLink>& link : retired_) link->cancel_status_receives();
  MPI_Finalize();
}

class MpiNetwork final : public Network {
 public:
  explicit MpiNetwork(std::unique_ptr<MpiLink> link) : link_{std::move(link)} {
    MpiProcess::instance().join();
  }
  MpiNetwork(const MpiNetwork&) = delete;
  MpiNetwork& operator=(const MpiNetwork&) = delete;
  ~MpiNetwork() override { MpiProcess::instance().retire(std::move(link_)); }

  std::string_view name() const override { return "mpi"; }
  // MPI makes progress only inside its own calls.
  WaitPolicy wait_policy() const override { return {.spins = 1, .yields = 2000}; }
  std::shared_ptr<Waiter> waiter() override { return link_->waiter(); }

  void send(Rank peer, const MessageHeader& header, const std::byte* data) override {
    link_->peer(peer).out.send(header, data);
  }
  std::uint64_t sent(Rank peer) override {
    link_->send_pending_status();
    return link_->peer(peer).out.sent();
  }
  std::uint64_t send_progress() const override { return link_->send_progress(); }
  const MessageHeader* incoming(Rank peer) override {
    link_->send_pending_status();
    return link_->peer(peer).dropped ? nullptr : link_->peer(peer).in.incoming();
  }
  std::span<const std::byte> arrived(Rank peer) override { return link_->peer(peer).in.arrived(); }
  void consume(Rank peer, std::size_t bytes) override { link_->peer(peer).in.consume(bytes); }

  void send_status(Rank peer, const StatusUpdate& update) override {
    if (update.failed != 0) MpiProcess::instance().fail();
    link_->send_status(peer, update);
  }
  bool receive_status(Rank peer, StatusUpdate& update) override {
    link_->send_pending_status();
    const bool is_new = link_->peer(peer).status.receive(update);
    if (is_new && update.failed != 0) MpiProcess::instance().fail();
    return is_new;
  }
  std::string death_of(Rank peer) override { return link_->death_of(peer); }
  void drop(Rank peer, const std::string& why) override {
    link_->peer(peer).connection.fail(why);
    link_->peer(peer).dropped = true;
  }

  Result<std::unique_ptr<Network>> split(const std::vector<Rank>& ranks, std::uint64_t id,
                                         const SplitWait& wait) override;

 private:
  // Every rank sends one to the first rank when it has called split(). The first rank answers
  // whether all ranks have.
  struct SplitMessage {
    std::uint64_t id = 0;
    std::int64_t missing = -1;  // a rank that has not called split(); -1: all have
  };

  Status gather(const std::vector<Rank>& ranks, std::uint64_t id, const SplitWait& wait);
  Status await_verdict(Rank first, std::uint64_t id, const SplitWait& wait);
  Status split_error(Rank peer);
  Status pause_and_check(const SplitWait& wait, Rank missing);

  std::unique_ptr<MpiLink> link_;
  // MPI may read a message until its send is complete, so all messages are kept.
  std::vector<std::unique_ptr<SplitMessage>> split_messages_;
  Clock::time_point next_split_check_;
};

Status MpiNetwork::split_error(Rank peer) {
  const std::string death = link_->death_of(peer);
  if (death.empty()) {
    return {Code::DeadlineExceeded,
            base::format("split: rank {} did not call split() in time", peer)};
  }
  return {Code::PeerLost, base::format("split: rank {} is lost: {}", peer, death)};
}

Status MpiNetwork::pause_and_check(const SplitWait& wait, Rank missing) {
  constexpr auto kBetweenChecks = std::chrono::milliseconds{100};
  pause_between_polls();
  const auto now = Clock::now();
  if (now < next_split_check_) return {};
  next_split_check_ = now + kBetweenChecks;
  return wait.check(missing);
}

// The first rank waits for the others and reports to them whether all have called split(). Only if
// they have is it safe to call MPI_Comm_create_group, which has no deadline.
Status MpiNetwork::gather(const std::vector<Rank>& ranks, std::uint64_t id, const SplitWait& wait) {
  Status status;
  SplitMessage verdict{.id = id};
  bool gives_up = false;
  std::size_t here = 1;
  for (; here < ranks.size() && status.ok(); ++here) {
    MpiConnection& connection = link_->peer(ranks[here]).connection;
    SplitMessage called;
    MPI_Request request = MPI_REQUEST_NULL;
    connection.receive(&called, sizeof called, kSplitTag, request);
    while (status.ok()) {
      if (connection.done(request)) {
        if (called.id == id) break;
        // That message belongs to an earlier split, which failed.
        connection.receive(&called, sizeof called, kSplitTag, request);
      } else if (Clock::now() > wait.deadline || !link_->death_of(ranks[here]).empty()) {
        status = split_error(ranks[here]);
        verdict.missing = ranks[here];
      } else {
        status = pause_and_check(wait, static_cast<Rank>(here));
        gives_up = !status.ok();
      }
    }
    while (!connection.cancel(request)) pause_between_polls();
  }
  if (gives_up) return status;  // the check of every other rank fails too
  split_messages_.push_back(std::make_unique<SplitMessage>(verdict));
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] == verdict.missing) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    link_->peer(ranks[i]).connection.send(split_messages_.back().get(), sizeof(SplitMessage),
                                          kSplitMessageTag, request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
  return status;
}

Status MpiNetwork::await_verdict(Rank first, std::uint64_t id, const SplitWait& wait) {
  // The first rank may notice a missing rank only at the deadline itself.
  const Clock::time_point deadline = wait.deadline + std::chrono::seconds{1};
  MpiConnection& connection = link_->peer(first).connection;
  split_messages_.push_back(std::make_unique<SplitMessage>(SplitMessage{.id = id}));
  MPI_Request request = MPI_REQUEST_NULL;
  connection.send(split_messages_.back().get(), sizeof(SplitMessage), kSplitTag, request);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  SplitMessage verdict;
  connection.receive(&verdict, sizeof verdict, kSplitMessageTag, request);
  Status status;
  while (status.ok()) {
    if (connection.done(request)) {
      if (verdict.id == id) break;
      connection.receive(&verdict, sizeof verdict, kSplitMessageTag, request);
    } else if (Clock::now() > deadline || !link_->death_of(first).empty()) {
      status = split_error(first);
    } else {
      status = pause_and_check(wait, 0);
    }
  }
  while (!connection.cancel(request)) pause_between_polls();
  if (!status.ok() || verdict.missing < 0) return status;
  if (verdict.missing < link_->ranks()) return split_error(static_cast<Rank>(verdict.missing));
  return {Code::PeerLost, base::format("split: rank {} says that rank {} of {} is missing", first,
                                       verdict.missing, link_->ranks())};
}

Result<std::unique_ptr<Network>> MpiNetwork::split(const std::vector<Rank>& ranks, std::uint64_t id,
                                                   const SplitWait& wait) {
  MpiProcess::instance().free_retired();
  const Status together = ranks.front() == link_->rank() ? gather(ranks, id, wait)
                                                         : await_verdict(ranks.front(), id, wait);
  if (!together.ok()) return together;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_group(link_->comm(), &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  const int tag = kFirstGroupTag + static_cast<int>(id % kGroupTags);
  const int code = MPI_Comm_create_group(link_->comm(), some, tag, &comm);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  if (code != MPI_SUCCESS) return Status{Code::PeerLost, "split: " + mpi_error(code)};
  return std::unique_ptr<Network>{
      std::make_unique<MpiNetwork>(std::make_unique<MpiLink>(comm, link_->waiter()))};
}

// A duplicate of MPI_COMM_WORLD whose errors are returned.
Result<MPI_Comm> own_world() {
  if (Status status = MpiProcess::instance().initialize(); !status.ok()) return status;
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (code != MPI_SUCCESS) return Status{Code::PeerLost, "MPI_Comm_dup: " + mpi_error(code)};
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

// The texts of all ranks, by rank.
int all_gather(MPI_Comm comm, const std::string& own, std::vector<std::string>& all) {
  const std::size_t ranks = all.size();
  std::vector<int> lengths(ranks);
  std::vector<int> offsets(ranks);
  const int length = static_cast<int>(own.size());
  const int code = MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm);
  if (code != MPI_SUCCESS) return code;
  std::size_t end = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    offsets[rank] = static_cast<int>(end);
    end += static_cast<std::size_t>(lengths[rank]);
  }
  std::string joined(end, '\0');
  const int again = MPI_Allgatherv(own.data(), length, MPI_CHAR, joined.data(), lengths.data(),
                                   offsets.data(), MPI_CHAR, comm);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all[rank] = joined.substr(static_cast<std::size_t>(offsets[rank]),
                              static_cast<std::size_t>(lengths[rank]));
  }
  return again;
}

}  // namespace

bool has_mpi() { return true; }

std::string mpi_description() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  // "Open MPI v4.1.4, package: ...", "MPICH Version:      4.0.2\nMPICH Release date: ..."
  std::string version{text.data()};
  version.resize(std::min(version.find_first_of(",\n"), version.size()));
  const std::size_t number = version.find_first_of("0123456789");
  if (number == std::string::npos) return version;
  const std::string name =
      version.substr(0, version.find(version.starts_with("Open MPI") ? " v" : " V"));
  return name + " " + version.substr(number);
}

Result<MpiWorld> mpi_world(const std::string& own_node, const std::string& own_host) {
  Result<MPI_Comm> comm = own_world();
  if (!comm.ok()) return comm.status();
  MpiWorld world;
  MPI_Comm_rank(comm.value(), &world.rank);
  MPI_Comm_size(comm.value(), &world.ranks);
  world.nodes.resize(static_cast<std::size_t>(world.ranks));
  world.hosts.resize(static_cast<std::size_t>(world.ranks));
  int code = all_gather(comm.value(), own_node, world.nodes);
  if (code == MPI_SUCCESS) code = all_gather(comm.value(), own_host, world.hosts);
  if (code != MPI_SUCCESS) {
    return Status{Code::PeerLost,
                  "the ranks could not exchange their locations: " + mpi_error(code)};
  }
  MPI_Comm_free(&comm.value());
  return world;
}

Result<std::unique_ptr<Network>> make_mpi_network() {
  Result<MPI_Comm> comm = own_world();
  if (!comm.ok()) return comm.status();
  MpiProcess::instance().free_retired();
  return std::unique_ptr<Network>{std::make_unique<MpiNetwork>(
      std::make_unique<MpiLink>(comm.value(), std::make_shared<BackoffWaiter>()))};
}

}  // namespace sluice::transport

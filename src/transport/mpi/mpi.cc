// mpi.cc - a network on an MPI communicator of its own.
//
// Leaving. A rank may leave while others go on, but a communicator must not be freed while a
// message for it may come: MPI would hand that to the next one with the same number. So who leaves
// sends what is left and then says goodbye to all, and its link is retired: it is freed once all
// have said goodbye to it.
#include "transport/mpi/mpi.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/format.h"
#include "transport/mpi/mpi_peer.h"

namespace sluice::transport {
namespace {

constexpr std::chrono::seconds kLeave{2};  // to send what is left
constexpr int kSplitTag = 4;
constexpr int kVerdictTag = 5;
constexpr int kFirstGroupTag = 16;
constexpr std::uint64_t kGroupTags = 32'000;  // MPI promises tags up to 32'767

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return text.data();
}

void nap() { std::this_thread::sleep_for(std::chrono::microseconds{50}); }

// A communicator and what goes over it.
class MpiLink {
 public:
  MpiLink(MPI_Comm comm, std::shared_ptr<BackoffWaiter> waiter)
      : comm_{comm}, waiter_{std::move(waiter)} {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank_);
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    peers_.resize(static_cast<std::size_t>(ranks));
    untold_.reserve(peers_.size());
  }

  MPI_Comm comm() const { return comm_; }
  Rank rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  const std::shared_ptr<BackoffWaiter>& waiter() const { return waiter_; }

  // Counts what goes out.
  std::uint64_t send_progress() const {
    std::uint64_t moved = 0;
    for (const std::unique_ptr<Peer>& peer : peers_) moved += peer ? peer->out.send_progress() : 0;
    return moved;
  }

  Peer& peer(Rank rank) {
    std::unique_ptr<Peer>& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer == nullptr) peer = std::make_unique<Peer>(comm_, rank, *waiter_);
    return *peer;
  }

  void send_status(Rank rank, const StatusUpdate& note);
  // To whomever: who waits for one peer must not hold up what it told another.
  void send_notes() {
    if (!untold_.empty()) std::erase_if(untold_, [](Peer* other) { return other->notes.told(); });
  }
  std::string death_of(Rank rank);
  // False: something could not be sent.
  bool leave();
  bool memory_in_use() const;
  // Whether nobody will send anything here any more, nor wait for anything from here.
  bool over();
  void stop_listening();
  void free() { MPI_Comm_free(&comm_); }

 private:
  MPI_Comm comm_;
  Rank rank_ = 0;
  std::shared_ptr<BackoffWaiter> waiter_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> untold_;  // notes to these wait
};

void MpiLink::send_status(Rank rank, const StatusUpdate& note) {
  Peer& other = peer(rank);
  other.notes.tell(note);
  if (!other.notes.told() && std::find(untold_.begin(), untold_.end(), &other) == untold_.end()) {
    untold_.push_back(&other);
  }
}

std::string MpiLink::death_of(Rank rank) {
  Peer& other = peer(rank);
  if (!other.line.error().empty()) return other.line.error();
  if (!other.notes.goodbye_heard()) return "";
  // Data first, then the news.
  if (other.in.messages_read() < other.notes.messages_before_goodbye()) return "";
  return base::format("process {} has left", other.notes.pid_of_goodbye());
}

bool MpiLink::leave() {
  const Clock::time_point deadline = Clock::now() + kLeave;
  const auto finish = [&](auto&& is_done) {
    for (Rank rank = 0; rank < ranks(); ++rank) {
      if (rank == rank_) continue;
      Peer& other = peer(rank);
      while (other.line.error().empty() && !is_done(other)) {
        if (Clock::now() > deadline) return false;
        nap();
      }
    }
    return true;
  };
  // Who has left reads nothing: what it was sent is not waited for.
  bool all = finish([](Peer& other) { return other.out.idle() || other.notes.goodbye_heard(); });
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (rank != rank_) peer(rank).notes.say_goodbye(peer(rank).out.messages());
  }
  all = finish([](Peer& other) { return other.notes.idle(); }) && all;
  for (const std::unique_ptr<Peer>& other : peers_) {
    if (other == nullptr) continue;
    other->in.close();
    all = all && other->line.error().empty() && other->out.idle();
  }
  return all;
}

bool MpiLink::memory_in_use() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const std::unique_ptr<Peer>& other) {
    return other != nullptr && other->out.in_use();
  });
}

bool MpiLink::over() {
  return std::all_of(peers_.begin(), peers_.end(), [](const std::unique_ptr<Peer>& other) {
    return other == nullptr || (other->notes.goodbye_heard() && other->out.idle() &&
                                other->notes.idle() && other->in.close());
  });
}

void MpiLink::stop_listening() {
  for (const std::unique_ptr<Peer>& other : peers_) {
    if (other != nullptr) other->notes.close();
  }
}

// MPI in this process.
class Process {
 public:
  static Process& instance() {
    static Process process;
    return process;
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { finalize(); }

  Status initialize();
  void join() { ++networks_; }
  void retire(std::unique_ptr<MpiLink> link);
  void free_retired();
  // From now on a rank may never reach MPI_Finalize, so this one must not either.
  void fail() { failed_ = true; }

 private:
  Process() = default;
  void finalize();

  pid_t initialized_by_ = 0;
  bool failed_ = false;
  int networks_ = 0;
  std::vector<std::unique_ptr<MpiLink>> retired_;
};

Status Process::initialize() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0) {
    return {Code::InvalidArgument, "MPI was finalised already, and cannot be initialised again"};
  }
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  int threads = MPI_THREAD_SINGLE;
  if (is_initialized == 0) {
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
    if (code != MPI_SUCCESS) {
      return {Code::PeerLost, "MPI could not be initialised: " + error_text(code)};
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

void Process::retire(std::unique_ptr<MpiLink> link) {
  --networks_;
  // After a failure the memory that MPI still sends from may be gone, and any call may read it: no
  // calls, then. The others were told that this rank failed.
  const bool unsafe = failed_ && link->memory_in_use();
  if (!unsafe && !link->leave()) fail();
  retired_.push_back(std::move(link));
  free_retired();
}

void Process::free_retired() {
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

void Process::finalize() {
  // A forked child that ends is not the end of this rank.
  if (initialized_by_ != getpid() || failed_ || networks_ > 0) return;
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0) return;
  free_retired();
  for (const std::unique_ptr<MpiLink>& link : retired_) link->stop_listening();
  MPI_Finalize();
}

class MpiNetwork final : public Network {
 public:
  explicit MpiNetwork(std::unique_ptr<MpiLink> link) : link_{std::move(link)} {
    Process::instance().join();
  }
  MpiNetwork(const MpiNetwork&) = delete;
  MpiNetwork& operator=(const MpiNetwork&) = delete;
  ~MpiNetwork() override { Process::instance().retire(std::move(link_)); }

  std::string_view name() const override { return "mpi"; }
  // Nothing moves but when MPI is asked.
  WaitPolicy wait_policy() const override { return {.spins = 1, .yields = 2000}; }
  std::shared_ptr<Waiter> waiter() override { return link_->waiter(); }

  void send(Rank peer, const MessageHeader& header, const std::byte* data) override {
    link_->peer(peer).out.send(header, data);
  }
  std::uint64_t sent(Rank peer) override {
    link_->send_notes();
    return link_->peer(peer).out.sent();
  }
  std::uint64_t send_progress() const override { return link_->send_progress(); }
  const MessageHeader* incoming(Rank peer) override {
    link_->send_notes();
    return link_->peer(peer).in.incoming();
  }
  std::span<const std::byte> arrived(Rank peer) override { return link_->peer(peer).in.arrived(); }
  void consume(Rank peer, std::size_t bytes) override { link_->peer(peer).in.consume(bytes); }

  void send_status(Rank peer, const StatusUpdate& note) override {
    if (note.failed != 0) Process::instance().fail();
    link_->send_status(peer, note);
  }
  bool receive_status(Rank peer, StatusUpdate& note) override {
    link_->send_notes();
    const bool heard = link_->peer(peer).notes.hear(note);
    if (heard && note.failed != 0) Process::instance().fail();
    return heard;
  }
  std::string death_of(Rank peer) override { return link_->death_of(peer); }

  Result<std::unique_ptr<Network>> split(const std::vector<Rank>& ranks, std::uint64_t id,
                                         Clock::time_point deadline) override;

 private:
  struct Verdict {
    std::uint64_t id = 0;
    std::int64_t missing = -1;  // a rank; -1: all are here
  };

  Status gather(const std::vector<Rank>& ranks, std::uint64_t id, Clock::time_point deadline);
  Status answer_to(Rank first, std::uint64_t id, Clock::time_point deadline);
  Status why_not(Rank peer);

  std::unique_ptr<MpiLink> link_;
  // What split() sent, by call: MPI may read it until it is done.
  std::vector<std::unique_ptr<Verdict>> said_;
};

Status MpiNetwork::why_not(Rank peer) {
  const std::string death = link_->death_of(peer);
  if (death.empty()) {
    return {Code::DeadlineExceeded, base::format("split: rank {} did not call it in time", peer)};
  }
  return {Code::PeerLost, base::format("split: rank {} is lost: {}", peer, death)};
}

// The first of the ranks hears of the others, and tells them whether all are here: only then is
// MPI's own call safe, which waits without a deadline.
Status MpiNetwork::gather(const std::vector<Rank>& ranks, std::uint64_t id,
                          Clock::time_point deadline) {
  Status status;
  Verdict verdict{.id = id};
  std::size_t here = 1;
  for (; here < ranks.size() && status.ok(); ++here) {
    Line& line = link_->peer(ranks[here]).line;
    Verdict called;
    MPI_Request request = MPI_REQUEST_NULL;
    line.receive(&called, sizeof called, kSplitTag, request);
    while (status.ok()) {
      if (line.done(request)) {
        if (called.id == id) break;
        line.receive(&called, sizeof called, kSplitTag, request);  // of one that was given up
      } else if (Clock::now() > deadline || !link_->death_of(ranks[here]).empty()) {
        status = why_not(ranks[here]);
        verdict.missing = ranks[here];
      } else {
        nap();
      }
    }
    while (!line.withdraw(request)) nap();
  }
  said_.push_back(std::make_unique<Verdict>(verdict));
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] == verdict.missing) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    link_->peer(ranks[i]).line.send(said_.back().get(), sizeof(Verdict), kVerdictTag, request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
  return status;
}

Status MpiNetwork::answer_to(Rank first, std::uint64_t id, Clock::time_point deadline) {
  // The first rank may notice at the deadline itself that somebody is missing.
  deadline += std::chrono::seconds{1};
  Line& line = link_->peer(first).line;
  said_.push_back(std::make_unique<Verdict>(Verdict{.id = id}));
  MPI_Request request = MPI_REQUEST_NULL;
  line.send(said_.back().get(), sizeof(Verdict), kSplitTag, request);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  Verdict verdict;
  line.receive(&verdict, sizeof verdict, kVerdictTag, request);
  Status status;
  while (status.ok()) {
    if (line.done(request)) {
      if (verdict.id == id) break;
      line.receive(&verdict, sizeof verdict, kVerdictTag, request);
    } else if (Clock::now() > deadline || !link_->death_of(first).empty()) {
      status = why_not(first);
    } else {
      nap();
    }
  }
  while (!line.withdraw(request)) nap();
  if (status.ok() && verdict.missing >= 0) return why_not(static_cast<Rank>(verdict.missing));
  return status;
}

Result<std::unique_ptr<Network>> MpiNetwork::split(const std::vector<Rank>& ranks, std::uint64_t id,
                                                   Clock::time_point deadline) {
  Process::instance().free_retired();
  const Status together = ranks.front() == link_->rank() ? gather(ranks, id, deadline)
                                                         : answer_to(ranks.front(), id, deadline);
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
  if (code != MPI_SUCCESS) return Status{Code::PeerLost, "split: " + error_text(code)};
  return std::unique_ptr<Network>{
      std::make_unique<MpiNetwork>(std::make_unique<MpiLink>(comm, link_->waiter()))};
}

// A duplicate of the world, on which errors are returned.
Result<MPI_Comm> own_world() {
  if (Status status = Process::instance().initialize(); !status.ok()) return status;
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (code != MPI_SUCCESS) return Status{Code::PeerLost, "MPI_Comm_dup: " + error_text(code)};
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
  std::string said{text.data()};
  said.resize(std::min(said.find_first_of(",\n"), said.size()));
  const std::size_t number = said.find_first_of("0123456789");
  if (number == std::string::npos) return said;
  const std::string name = said.substr(0, said.find(said.starts_with("Open MPI") ? " v" : " V"));
  return name + " " + said.substr(number);
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
    return Status{Code::PeerLost, "the ranks could not tell where they run: " + error_text(code)};
  }
  MPI_Comm_free(&comm.value());
  return world;
}

Result<std::unique_ptr<Network>> make_mpi_network() {
  Result<MPI_Comm> comm = own_world();
  if (!comm.ok()) return comm.status();
  Process::instance().free_retired();
  return std::unique_ptr<Network>{std::make_unique<MpiNetwork>(
      std::make_unique<MpiLink>(comm.value(), std::make_shared<BackoffWaiter>()))};
}

}  // namespace sluice::transport

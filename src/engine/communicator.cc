#include "sluice/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bootstrap/environment.h"
#include "bootstrap/placement.h"
#include "engine/communicator_state.h"
#include "engine/constants.h"
#include "transport/inproc.h"
#include "transport/shm.h"

namespace sluice {
namespace {

void throw_unless_ok(const Status& status) {
  if (!status.ok()) throw Error{status};
}

}  // namespace

std::byte* Pool::data() const { return state_->segment().data; }
std::size_t Pool::bytes() const { return state_->segment().bytes; }

void Work::wait() { wait(state_->deadline()); }

void Work::wait(std::chrono::milliseconds deadline) {
  if (!state_->is_complete(number_)) throw_unless_ok(state_->wait(number_, deadline));
}

bool Work::done() {
  state_->poll();
  if (state_->is_complete(number_)) return true;
  throw_unless_ok(state_->failure());
  return false;
}

Status Work::status() const { return state_->is_complete(number_) ? Status{} : state_->failure(); }

Communicator Communicator::from_env(std::chrono::milliseconds deadline) {
  const Environment environment = Environment::of_process();
  const Placement placement = placement_of(environment).value();
  if (placement.ranks == 1) return in_process(1).front();
  if (placement.local_ranks != placement.ranks) {
    throw Error{
        Status{Code::InvalidArgument,
               fmt::format("this version runs on one machine, but {} of {} ranks are on others",
                           placement.ranks - placement.local_ranks, placement.ranks)}};
  }
  auto group = make_shm_group(
      {placement.rank, placement.ranks, placement.job, placement.token, Clock::now() + deadline});
  Communicator joined{std::make_shared<detail::CommunicatorState>(
      std::move(group).value(), std::make_shared<detail::RankContext>(placement.ranks),
      typical_constants(), overrides_of(environment).value())};
  joined.set_deadline(deadline);
  joined.agree_on_constants(constants_path(environment, placement.ranks).string());
  joined.set_deadline(detail::kDefaultDeadline);
  return joined;
}

// Rank 0 knows them, or they are measured now; all ranks go by rank 0's.
void Communicator::agree_on_constants(const std::string& constants_file) {
  std::optional<CostConstants> constants;
  if (rank() == 0) constants = load_constants(constants_file);
  std::int32_t known = constants ? 1 : 0;
  broadcast(&known, 1, {.type = DataType::I32}).wait();
  if (known == 0) {
    constants = measure_constants(*this);
    if (rank() == 0 && plausible(*constants)) save_constants(constants_file, *constants, size());
  }
  state_->set_constants(hand_out(*this, constants.value_or(CostConstants{})));
}

std::vector<Communicator> Communicator::in_process(int ranks) {
  if (ranks < 1) throw Error{Status{Code::InvalidArgument, "a communicator needs at least 1 rank"}};
  const Environment environment = Environment::of_process();
  const CostConstants constants =
      load_constants(constants_path(environment, ranks)).value_or(typical_constants());
  const std::vector<Override> overrides = overrides_of(environment).value();
  std::vector<Communicator> communicators;
  for (auto& group : make_inproc_groups(ranks)) {
    communicators.push_back(Communicator{std::make_shared<detail::CommunicatorState>(
        std::move(group), std::make_shared<detail::RankContext>(ranks), constants, overrides)});
  }
  return communicators;
}

Rank Communicator::rank() const { return state_->group().rank(); }
int Communicator::size() const { return state_->group().size(); }
int Communicator::node() const { return 0; }  // all ranks are on one machine
int Communicator::local_rank() const { return rank(); }

std::string_view Communicator::algorithm_for(Collective collective, std::size_t count,
                                             const CollectiveOptions& options) const {
  return state_->choose(collective, count, options).value()->algorithm->name;
}

void Communicator::set_deadline(std::chrono::milliseconds deadline) {
  state_->set_deadline(deadline);
}

Pool Communicator::allocate(std::size_t bytes) {
  return Pool{std::make_shared<detail::PoolState>(state_, state_->allocate(bytes).value())};
}

Work Communicator::issue(Collective collective, void* data, std::size_t count,
                         const CollectiveOptions& options) {
  return {state_, state_->issue(collective, data, count, options).value()};
}

Work Communicator::all_reduce(void* data, std::size_t count, const CollectiveOptions& options) {
  return issue(Collective::AllReduce, data, count, options);
}
Work Communicator::reduce_scatter(void* data, std::size_t count, const CollectiveOptions& options) {
  return issue(Collective::ReduceScatter, data, count, options);
}
Work Communicator::all_gather(void* data, std::size_t count, const CollectiveOptions& options) {
  return issue(Collective::AllGather, data, count, options);
}
Work Communicator::broadcast(void* data, std::size_t count, const CollectiveOptions& options) {
  return issue(Collective::Broadcast, data, count, options);
}
Work Communicator::reduce(void* data, std::size_t count, const CollectiveOptions& options) {
  return issue(Collective::Reduce, data, count, options);
}
Work Communicator::all_reduce(const Pool& pool, const CollectiveOptions& options) {
  return all_reduce(pool.data(), pool.bytes() / size_of(options.type), options);
}

void Communicator::barrier() { all_reduce(nullptr, 0, {}).wait(); }

Communicator::Slice Communicator::slice(std::size_t count, Rank rank) const {
  const Layout layout{size()};
  const auto elements = static_cast<std::int64_t>(count);
  const auto first = static_cast<std::size_t>(layout.begin(rank, elements));
  return {first, static_cast<std::size_t>(layout.begin(rank + 1, elements)) - first};
}

Communicator Communicator::split(int colour, int key) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(rank());
  // Everyone hears everyone's colour and key: a sum to which each gives its own two numbers.
  std::vector<std::int64_t> told(2 * ranks, 0);
  told[2 * me] = colour;
  told[2 * me + 1] = key;
  all_reduce(told.data(), told.size(), {.type = DataType::I64}).wait();
  std::vector<Rank> members;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (told[2 * r] == colour) members.push_back(static_cast<Rank>(r));
  }
  std::stable_sort(members.begin(), members.end(), [&](Rank a, Rank b) {
    return told[2 * static_cast<std::size_t>(a) + 1] < told[2 * static_cast<std::size_t>(b) + 1];
  });

  // The first of each group allocates its control block, and says where.
  const Rank leader = members.front();
  std::vector<std::int64_t> segments(ranks, 0);
  Segment control;
  if (leader == rank()) {
    // Never released: it stays with the memory, whoever of the group leaves first.
    control = state_->group()
                  .memory()
                  .allocate(ControlBlock::bytes(static_cast<int>(members.size())))
                  .value();
    segments[me] = static_cast<std::int64_t>(control.id);
  }
  all_reduce(segments.data(), segments.size(), {.type = DataType::I64}).wait();
  if (leader != rank()) {
    const auto id = static_cast<std::uint64_t>(segments[static_cast<std::size_t>(leader)]);
    control.data = state_->group().address(leader, {id, 0}).value();
  }
  barrier();  // nobody's block may go while another has yet to find it
  auto group = std::make_unique<Group>(state_->group(), members, control.data);
  const Choices& choices = state_->choices();
  Communicator part{std::make_shared<detail::CommunicatorState>(
      std::move(group), state_->context(), choices.constants(), choices.overrides())};
  part.set_deadline(state_->deadline());
  return part;
}

}  // namespace sluice

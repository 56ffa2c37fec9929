#include "sluice/communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/environment.h"
#include "bootstrap/placement.h"
#include "engine/communicator_state.h"
#include "engine/join.h"
#include "engine/select/choices.h"
#include "engine/select/constants.h"
#include "transport/memory/memory.h"

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
  const bootstrap::Environment environment = bootstrap::Environment::of_process();
  const bootstrap::Placement placement = bootstrap::placement_of(environment).value();
  const std::optional<std::string> log = environment.text(bootstrap::variable::kLog);
  if (log && !base::set_log_level_from(*log)) {
    base::log_warning(
        base::format("SLUICE_LOG is {}: choose info, warning or off", base::quote(*log)));
  }
  if (placement.ranks == 1) return in_process(1).front();
  std::unique_ptr<transport::Group> group =
      engine::join_ranks(environment, placement, transport::Clock::now() + deadline).value();
  auto context = group->network() == nullptr
                     ? std::make_shared<engine::RankContext>(placement.ranks)
                     : std::make_shared<engine::RankContext>(*group->network());
  engine::Choices first{engine::RankOrder{*group}, group->rank(), engine::typical_constants(), {}};
  Communicator joined{std::make_shared<engine::CommunicatorState>(
      std::move(group), std::move(context), std::move(first))};
  joined.set_deadline(deadline);
  joined.state_->set_choices(engine::agreed_choices(joined, joined.state_->group(), environment));
  joined.set_deadline(engine::kDefaultDeadline);
  return joined;
}

std::vector<Communicator> Communicator::in_process(int ranks) {
  if (ranks < 1) throw Error{Status{Code::InvalidArgument, "a communicator needs at least 1 rank"}};
  const bootstrap::Environment environment = bootstrap::Environment::of_process();
  const CostConstants constants = engine::load_constants(engine::constants_path(environment, ranks))
                                      .value_or(engine::typical_constants());
  const std::vector<engine::AlgorithmOverride> overrides =
      engine::overrides_of(environment).value();
  std::vector<Communicator> communicators;
  for (auto& group : transport::make_inproc_groups(ranks)) {
    engine::Choices choices{engine::RankOrder{*group}, group->rank(), constants, overrides};
    communicators.push_back(Communicator{std::make_shared<engine::CommunicatorState>(
        std::move(group), std::make_shared<engine::RankContext>(ranks), std::move(choices))});
  }
  return communicators;
}

Rank Communicator::rank() const { return state_->group().rank(); }
int Communicator::size() const { return state_->group().size(); }
int Communicator::node() const { return state_->group().node(); }

int Communicator::local_rank() const {
  int before = 0;
  for (Rank peer = 0; peer < rank(); ++peer) before += state_->group().is_local(peer) ? 1 : 0;
  return before;
}

std::string_view Communicator::algorithm_for(Collective collective, std::size_t count,
                                             const CollectiveOptions& options) const {
  return state_->choose(collective, count, options).value()->algorithm->name;
}

void Communicator::set_deadline(std::chrono::milliseconds deadline) {
  state_->set_deadline(deadline);
}

Pool Communicator::allocate(std::size_t bytes) {
  return Pool{std::make_shared<engine::PoolState>(state_, state_->allocate(bytes).value())};
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

// Of no elements nothing would be sent to other nodes, and nobody waited for.
void Communicator::barrier() {
  float here = 1;
  all_reduce(&here, 1, {}).wait();
}

Communicator::Slice Communicator::slice(std::size_t count, Rank rank) const {
  const Chunking chunking{size()};
  const auto elements = static_cast<std::int64_t>(count);
  const auto first = static_cast<std::size_t>(chunking.begin(rank, elements));
  return {first, static_cast<std::size_t>(chunking.begin(rank + 1, elements)) - first};
}

Communicator Communicator::split(int colour, int key) {
  throw_unless_ok(state_->settle());  // who connects cannot carry anything meanwhile
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

  // On every node the first of the part allocates its control block, and says where.
  const transport::Group& whole = state_->group();
  const auto is_local = [&](Rank member) { return whole.is_local(member); };
  const Rank leader = *std::find_if(members.begin(), members.end(), is_local);
  const auto seats = std::count_if(members.begin(), members.end(), is_local);
  std::vector<std::int64_t> segments(ranks, 0);
  transport::MemoryBlock control;
  if (leader == rank()) {
    // Never released: it stays with the memory, whoever of the group leaves first.
    control =
        whole.memory().allocate(transport::ControlBlock::bytes(static_cast<int>(seats))).value();
    segments[me] = static_cast<std::int64_t>(control.id);
  }
  all_reduce(segments.data(), segments.size(), {.type = DataType::I64}).wait();
  if (leader != rank()) {
    const auto id = static_cast<std::uint64_t>(segments[static_cast<std::size_t>(leader)]);
    control.data = whole.address(leader, {id, 0}).value();
  }
  barrier();  // nobody's block may go while another has yet to find it
  std::unique_ptr<transport::Network> network;
  const std::uint64_t id = state_->next_part(colour);
  if (seats < std::ssize(members)) {
    const auto lock = state_->context()->drive();
    network =
        whole.network()->split(members, id, transport::Clock::now() + state_->deadline()).value();
  }
  auto group = std::make_unique<transport::Group>(whole, members, control.data, std::move(network));
  const engine::Choices& choices = state_->choices();
  // What was measured between nodes says nothing of one alone.
  const bool inside = whole.network() != nullptr && group->network() == nullptr;
  engine::Choices own{choices.order().part(members), group->rank(),
                      inside ? engine::typical_constants() : choices.constants(),
                      choices.overrides()};
  Communicator part{std::make_shared<engine::CommunicatorState>(std::move(group), state_->context(),
                                                                std::move(own), id)};
  part.set_deadline(state_->deadline());
  return part;
}

}  // namespace sluice

namespace sluice::engine {

Work all_reduce_in_background(Communicator& communicator, void* data, std::size_t count,
                              const CollectiveOptions& options, ProgressHooks* errand) {
  const std::shared_ptr<CommunicatorState>& state = communicator.state();
  return {state, state->hand_over(Collective::AllReduce, data, count, options, errand).value()};
}

bool same_everywhere(Communicator& communicator, std::uint64_t value) {
  const auto own = std::bit_cast<std::int64_t>(value);
  // ~ turns the order round: one call finds the smallest and the largest.
  std::array<std::int64_t, 2> ends{own, ~own};
  communicator.all_reduce(ends.data(), ends.size(), {.type = DataType::I64, .op = ReduceOp::Min})
      .wait();
  return ends[0] == ~ends[1];
}

}  // namespace sluice::engine

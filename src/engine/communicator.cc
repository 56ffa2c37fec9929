#include "sluice/communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "engine/communicator_state.h"
#include "engine/select/choices.h"
#include "engine/select/constants.h"

namespace sluice {
namespace {

void throw_unless_ok(const Status& status) {
  if (!status.ok()) throw Error{status};
}

// On each node the first member allocates the control block and sends its location to the others.
std::byte* shared_control_block(Communicator& communicator, const transport::Group& whole,
                                const std::vector<Rank>& local_members) {
  const auto ranks = static_cast<std::size_t>(whole.size());
  const Rank leader = local_members.front();
  std::vector<std::int64_t> ids(ranks, 0);
  transport::MemoryBlock control;
  if (leader == whole.rank()) {
    // Never released, because members leave in any order.
    const int local_ranks = static_cast<int>(local_members.size());
    control = whole.memory().allocate(transport::ControlBlock::bytes(local_ranks)).value();
    ids[static_cast<std::size_t>(leader)] = static_cast<std::int64_t>(control.id);
  }
  communicator.all_reduce(ids).wait();
  if (leader != whole.rank()) {
    const auto id = static_cast<std::uint64_t>(ids[static_cast<std::size_t>(leader)]);
    control.data = whole.address(leader, {id, 0}).value();
  }
  return control.data;
}

}  // namespace

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

Rank Communicator::rank() const { return state_->group().rank(); }
int Communicator::size() const { return state_->group().size(); }
int Communicator::node() const { return state_->group().node(); }

int Communicator::local_rank() const {
  int before = 0;
  for (Rank peer = 0; peer < rank(); ++peer) before += state_->group().is_local(peer) ? 1 : 0;
  return before;
}

std::string_view Communicator::algorithm_for(Collective collective, std::size_t bytes,
                                             const CollectiveOptions& options) const {
  const engine::Choice& choice = *state_->choose(collective, bytes, options).value();
  throw_unless_ok(choice.refusal);
  return choice.algorithm->name;
}

void Communicator::set_deadline(std::chrono::milliseconds deadline) {
  state_->set_deadline(deadline);
}

Pool Communicator::allocate(std::size_t bytes) {
  const transport::MemoryBlock block = state_->allocate(bytes).value();
  const auto release = [state = state_, block](std::byte*) { state->release(block); };
  return {std::shared_ptr<std::byte>{block.data, release}, block.bytes};
}

Work Communicator::all_reduce(Elements data, const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::AllReduce, data, options).value()};
}
Work Communicator::reduce_scatter(Elements data, const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::ReduceScatter, data, options).value()};
}
Work Communicator::all_gather(Elements data, const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::AllGather, data, options).value()};
}
Work Communicator::broadcast(Elements data, const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::Broadcast, data, options).value()};
}
Work Communicator::reduce(Elements data, const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::Reduce, data, options).value()};
}

Work Communicator::all_reduce(ConstElements input, Elements output,
                              const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::AllReduce, input, output, options).value()};
}
Work Communicator::reduce_scatter(ConstElements input, Elements output,
                                  const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::ReduceScatter, input, output, options).value()};
}
Work Communicator::all_gather(ConstElements input, Elements output,
                              const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::AllGather, input, output, options).value()};
}
Work Communicator::reduce(ConstElements input, Elements output, const CollectiveOptions& options) {
  return {state_, state_->issue(Collective::Reduce, input, output, options).value()};
}

// An all_reduce of no elements would send nothing between nodes, and so wait for no rank.
void Communicator::barrier() {
  float here = 1;
  all_reduce(std::span{&here, 1}).wait();
}

Communicator::Slice Communicator::slice(std::size_t count, Rank rank) const {
  return state_->slice(count, rank);
}

Communicator Communicator::split(int colour, int key) {
  // Later, while this rank connects to the others, it moves no collectives.
  throw_unless_ok(state_->context()->drain());
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(rank());
  // Every rank gets all colours and keys from a sum in which each rank sets only its own two
  // numbers.
  std::vector<std::int64_t> pairs(2 * ranks, 0);
  pairs[2 * me] = colour;
  pairs[2 * me + 1] = key;
  all_reduce(pairs).wait();
  std::vector<Rank> members;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (pairs[2 * r] == colour) members.push_back(static_cast<Rank>(r));
  }
  std::stable_sort(members.begin(), members.end(), [&](Rank a, Rank b) {
    return pairs[2 * static_cast<std::size_t>(a) + 1] < pairs[2 * static_cast<std::size_t>(b) + 1];
  });

  const transport::Group& whole = state_->group();
  std::vector<Rank> local_members;
  std::copy_if(members.begin(), members.end(), std::back_inserter(local_members),
               [&](Rank member) { return whole.is_local(member); });
  std::unique_ptr<transport::Network> network;
  const std::uint64_t id = state_->next_split_id(colour);
  if (local_members.size() < members.size()) network = state_->split_network(members, id).value();
  std::byte* const control = shared_control_block(*this, whole, local_members);
  auto group = std::make_unique<transport::Group>(whole, members, control, std::move(network));
  const engine::Choices& choices = state_->choices();
  // Constants measured between nodes do not hold for ranks of one node.
  const bool left_network = whole.network() != nullptr && group->network() == nullptr;
  engine::Choices own{choices.order().part(members), group->rank(),
                      left_network ? engine::typical_constants() : choices.constants(),
                      engine::overrides_of_part(choices.overrides(), group->size())};
  Communicator part{std::make_shared<engine::CommunicatorState>(std::move(group), state_->context(),
                                                                std::move(own), id)};
  part.set_deadline(state_->deadline());
  // A rank returns when all ranks have their connections and have mapped their control blocks.
  // Until then a loss fails this communicator, whose ranks all name the culprit. The part exists
  // already, so that the loss fails it too: some members may have passed the barrier.
  barrier();
  return part;
}

}  // namespace sluice

namespace sluice::engine {

Communicator communicator_with(std::shared_ptr<CommunicatorState> state) {
  return Communicator{std::move(state)};
}

Work all_reduce_in_background(Communicator& communicator, Elements data,
                              const CollectiveOptions& options, ProgressHooks* hooks) {
  const std::shared_ptr<CommunicatorState>& state = communicator.state();
  return {state, state->submit(Collective::AllReduce, data, options, hooks).value()};
}

bool same_everywhere(Communicator& communicator, std::uint64_t value) {
  const auto own = std::bit_cast<std::int64_t>(value);
  // ~ reverses the order, so one call finds both the smallest and the largest value.
  std::array<std::int64_t, 2> extremes{own, ~own};
  communicator.all_reduce(extremes, {.op = ReduceOp::Min}).wait();
  return extremes[0] == ~extremes[1];
}

}  // namespace sluice::engine

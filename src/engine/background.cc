#include "engine/background.h"

#include "engine/communicator_state.h"

namespace sluice::engine {

Work all_reduce_in_background(Communicator& communicator, void* data, std::size_t count,
                              const CollectiveOptions& options, ProgressHooks* errand) {
  const std::shared_ptr<CommunicatorState>& state = communicator.state();
  return {state, state->hand_over(Collective::AllReduce, data, count, options, errand).value()};
}

}  // namespace sluice::engine

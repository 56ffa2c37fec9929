#include "engine/errand.h"

#include "engine/communicator_state.h"

namespace sluice {

Work all_reduce_in_background(Communicator& communicator, void* data, std::size_t count,
                              const CollectiveOptions& options, Errand* errand) {
  return communicator.hand_over(Collective::AllReduce, data, count, options, errand);
}

}  // namespace sluice

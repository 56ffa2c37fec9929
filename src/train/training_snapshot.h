// training_snapshot.h - a rank's part of a training at one moment, copied.
//
// Memory is reused from one take() to the next. Rank 0 has both parts, others their own alone.
// Thread-safety: one thread at a time.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gradient/reducer_state.h"
#include "train/checkpoint.h"
#include "train/section_list.h"

namespace sluice {

class TrainingSnapshot {
 public:
  // Throws Error, as Work::wait() does, and what libtorch throws.
  void take(const TrainingState& state, const TrainingObjects& objects, bool with_common);

  // Valid until the next take().
  std::span<const Section> common() const { return common_.sections(); }
  std::span<const Section> own() const { return own_.sections(); }

 private:
  void copy(const torch::OrderedDict<std::string, torch::Tensor>& tensors, const char* prefix,
            std::vector<torch::Tensor>& copies, SectionList& to);

  SectionList common_;
  SectionList own_;
  ReducerState reducer_;
  std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> buffers_;
  std::vector<std::byte> optimizer_;
};

// Puts back what was taken. `own` may be made up from several.
Status restore(const Part& common, const Part& own, const TrainingObjects& objects);
Status restore_weights(const Part& common, const Part& own, torch::nn::Module& network);
Result<TrainingState> training_state(const Part& common);

}  // namespace sluice

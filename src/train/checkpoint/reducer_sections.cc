#include "train/checkpoint/reducer_sections.h"

#include <string>

#include "gradient/description.h"

namespace sluice::train {
namespace {

std::uint8_t flag(bool value) { return value ? 1 : 0; }

void add_in_flight(const gradient::MeanInFlight& mean, SectionWriter& to) {
  to.add_view<std::byte>("in_flight/pool", mean.pool);
  to.add_view<std::uint8_t>("in_flight/used", mean.used);
  to.add_view<float>("in_flight/norms", mean.norms);
  to.add_value("in_flight/wire_scale", mean.wire_scale);
  to.add_value("in_flight/loss_scale", mean.loss_scale);
  to.add_value("in_flight/largest", mean.largest);
  to.add_value("in_flight/skipped", flag(mean.decision.finished.skipped));
  to.add_value("in_flight/lower_wire_scale", flag(mean.decision.lower_wire_scale));
  to.add_value("in_flight/lower_loss_scale", flag(mean.decision.lower_loss_scale));
  to.add_text("in_flight/warning", mean.decision.finished.warning);
}

gradient::MeanInFlight mean_in_flight(SectionReader& from) {
  return {.pool = from.vector<std::byte>("in_flight/pool"),
          .used = from.vector<std::uint8_t>("in_flight/used"),
          .norms = from.vector<float>("in_flight/norms"),
          .wire_scale = from.value<float>("in_flight/wire_scale"),
          .loss_scale = from.value<double>("in_flight/loss_scale"),
          .largest = from.value<float>("in_flight/largest"),
          .decision = {
              .finished = {.skipped = from.value<std::uint8_t>("in_flight/skipped") != 0,
                           .warning = std::string{from.text("in_flight/warning")}},
              .lower_wire_scale = from.value<std::uint8_t>("in_flight/lower_wire_scale") != 0,
              .lower_loss_scale = from.value<std::uint8_t>("in_flight/lower_loss_scale") != 0}};
}

}  // namespace

void add_common(const gradient::ReducerState& state, SectionWriter& to) {
  to.add_text("gradients/description", gradient::join_lines(state.description));
  const std::vector<std::int64_t> order(state.order.begin(), state.order.end());
  to.add_copy<std::int64_t>("gradients/order", order);
  to.add_value("gradients/layout_hash", state.layout_hash);
  to.add_value("gradients/observed", flag(state.observed));
  to.add_value("gradients/wire_scale", state.wire_scale);
  to.add_value("gradients/loss_scale", state.loss_scale);
  to.add_value("gradients/clean_steps", std::int64_t{state.clean_steps});
  to.add_view<std::uint8_t>("gradients/ever_used", state.ever_used);

  const gradient::SparsityState& sparsity = state.sparsity;
  to.add_value("sparsity/steps", sparsity.steps);
  to.add_value("sparsity/has_norms", flag(sparsity.arrived));
  to.add_view<float>("sparsity/norms", sparsity.norms);
  to.add_view<std::uint32_t>("sparsity/ages", sparsity.ages);
  std::vector<std::uint8_t> sparse;
  std::vector<std::uint8_t> selected;
  for (const gradient::SparsityState::Planned& planned : sparsity.planned) {
    sparse.push_back(flag(planned.sparse));
    selected.insert(selected.end(), planned.selected.begin(), planned.selected.end());
  }
  to.add_copy<std::uint8_t>("sparsity/planned", sparse);
  to.add_copy<std::uint8_t>("sparsity/selected", selected);

  to.add_value("in_flight", flag(state.in_flight));
  if (state.in_flight) add_in_flight(state.mean, to);
}

void add_own(const gradient::ReducerState& state, SectionWriter& to) {
  to.add_view<float>(kResidual, state.residual);
}

Result<gradient::ReducerState> reducer_state(const CheckpointPart& common,
                                             const CheckpointPart& own) {
  SectionReader from{common};
  gradient::ReducerState state;
  state.description = gradient::split_lines(from.text("gradients/description"));
  for (const std::int64_t i : from.values<std::int64_t>("gradients/order"))
    state.order.push_back(static_cast<std::size_t>(i));
  state.layout_hash = from.value<std::uint64_t>("gradients/layout_hash");
  state.observed = from.value<std::uint8_t>("gradients/observed") != 0;
  state.wire_scale = from.value<float>("gradients/wire_scale");
  state.loss_scale = from.value<double>("gradients/loss_scale");
  state.clean_steps = static_cast<int>(from.value<std::int64_t>("gradients/clean_steps"));
  state.ever_used = from.vector<std::uint8_t>("gradients/ever_used");

  gradient::SparsityState& sparsity = state.sparsity;
  sparsity.steps = from.value<std::int64_t>("sparsity/steps");
  sparsity.arrived = from.value<std::uint8_t>("sparsity/has_norms") != 0;
  sparsity.norms = from.vector<float>("sparsity/norms");
  sparsity.ages = from.vector<std::uint32_t>("sparsity/ages");
  std::span<const std::uint8_t> selected = from.values<std::uint8_t>("sparsity/selected");
  const std::size_t chunks = sparsity.norms.size();
  for (const std::uint8_t sparse : from.values<std::uint8_t>("sparsity/planned")) {
    if (selected.size() < chunks) break;  // too few planned steps, which the reducer refuses
    const auto own_part = selected.first(chunks);
    sparsity.planned.push_back(
        {.sparse = sparse != 0, .selected = {own_part.begin(), own_part.end()}});
    selected = selected.subspan(chunks);
  }

  state.in_flight = from.value<std::uint8_t>("in_flight") != 0;
  if (state.in_flight) state.mean = mean_in_flight(from);
  if (!from.status().ok()) return from.status();
  SectionReader rest{own};
  state.residual = rest.vector<float>(kResidual);
  if (!rest.status().ok()) return rest.status();
  return state;
}

}  // namespace sluice::train

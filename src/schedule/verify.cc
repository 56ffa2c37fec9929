// verify.cc - the proof, in the order in which each part relies on the ones before it.
#include "sluice/verify.h"

#include <algorithm>

#include "schedule/event_graph.h"
#include "schedule/values.h"
#include "schedule/well_formed.h"

namespace sluice {
namespace {

std::string why_not_proven(const Schedule& schedule) {
  if (std::string why = schedule::why_malformed(schedule); !why.empty()) return why;  // (d) no race
  schedule::EventGraph graph{schedule};
  if (!graph.mismatch().empty()) return graph.mismatch();  // (b) sends and receives match
  const std::vector<std::uint32_t> order = graph.order();
  if (!graph.deadlock().empty()) return graph.deadlock();     // (c) no deadlock
  return schedule::why_wrong_values(schedule, graph, order);  // (a) the result, (f) nothing unused
}

}  // namespace

Proof verify(const Schedule& schedule) {
  Proof proof;
  proof.reason = why_not_proven(schedule);
  proof.proven = proof.reason.empty();
  for (const Program& program : schedule.programs) {
    proof.steps = std::max(proof.steps, program.steps());
    if (proof.proven) proof.bytes_factor = std::max(proof.bytes_factor, sent_share(program));
    for (int step = 0; step < program.steps(); ++step) {
      proof.transfers += static_cast<std::int64_t>(program.sends(step).size());
    }
  }
  return proof;
}

}  // namespace sluice

// verdict_handover.h - before a communicator first uses a schedule, rank 0 tells all ranks whether
// it is proven.
//
// Only rank 0 proves, in a thread of its own, so that it reports to its peers meanwhile. Its
// verdict travels down a binary tree of the ranks, as the first message of the collective: rank r
// has it from r without its lowest set bit. All ranks agree which collective is the first to use a
// schedule, because they make the same calls and the same choices. A rank that runs ahead waits
// here, and so executes nothing that is not proven.
//
// A schedule from a file must be the same at all ranks. So before rank 0 proves it, reports travel
// up the tree: the hash of the file, or why a rank cannot use it. The verdict then has the marks of
// all operations, which no rank can find in its own Program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "engine/collective.h"
#include "engine/endpoint.h"
#include "engine/proofs.h"
#include "sluice/status.h"

namespace sluice::engine {

class VerdictHandover final : public RunningCollective {
 public:
  explicit VerdictHandover(Endpoint& endpoint) : endpoint_{endpoint} {}

  // REQUIRES: request.first_use. At rank 0 it starts the proof, which may take seconds.
  void begin(const Request& request) override;
  // True when this rank has passed the verdict on. The error says that there is no proof.
  Result<bool> advance() override;
  std::uint64_t moved() const override { return moves_ + endpoint_.moved(); }
  int step() const override { return proves() ? transport::kProvingStep : 0; }
  int steps() const override { return 0; }
  Rank waits_for() const override;
  Rank mismatched_peer() const override { return waits_for(); }
  bool needs(Rank peer) const override { return peer == waits_for(); }

  // Whether rank 0 proves the schedule that this rank waits for, and is heard from. That is no
  // stall.
  bool is_being_proven() const;
  // Of a schedule from a file. REQUIRES: advance() has returned true.
  const std::string& packed_marks() const { return verdict_.value(); }

 private:
  enum class Phase : std::uint8_t { Gather, Report, Receive, PassOn };

  bool proves() const { return proving_.load(std::memory_order_acquire); }
  bool uses_file() const { return request_.algorithm->file != nullptr; }
  void begin_proof();
  Result<bool> advance_phase();
  Result<bool> gather();
  Result<bool> receive();
  Result<bool> pass_on();
  void check_report(Rank child);

  Result<bool> post_message(Rank peer);
  Result<bool> receive_message(Rank peer);
  Result<bool> receive_local(Rank peer);
  std::size_t most_bytes() const;

  Rank next_child(Rank child) const;
  Rank unsent_child() const;
  bool is_sent_to(Rank child) const;

  Endpoint& endpoint_;
  Request request_;
  Phase phase_ = Phase::Receive;
  Rank parent_ = kOwn;
  Rank child_ = 0;        // the next child to hear from or to send to; group size: none is left
  Status trouble_;        // why the file cannot be used, at the ranks below that have reported
  std::string outgoing_;  // the message to each peer of the phase
  std::size_t posted_ = 0;
  std::string incoming_;
  std::size_t arrived_ = 0;
  std::uint64_t moves_ = 0;
  std::atomic<bool> proving_{false};
  Verdict verdict_{std::string{}};  // not to be read while proves()
  std::jthread prover_;             // the last member: the others outlive the proof
};

}  // namespace sluice::engine

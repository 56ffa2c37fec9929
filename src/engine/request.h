// request.h - what a rank asked for, as every rank of the communicator must have asked for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sluice/schedule.h"
#include "sluice/types.h"
#include "transport/network.h"

namespace sluice::engine {

struct Request {
  std::uint64_t number = 0;  // of the collective in its communicator, from 1
  Collective collective = Collective::AllReduce;
  DataType type = DataType::F32;
  ReduceOp op = ReduceOp::Sum;
  Rank root = 0;
  std::uint8_t algorithm = 0;  // its place in built_in_algorithms(), as chosen
  std::size_t count = 0;       // elements
};

// Everything but number and count in one word, for the board.
std::uint64_t packed_kind(const Request& request);
Request unpacked(std::uint64_t number, std::uint64_t kind, std::uint64_t count);

// Equal requests, equal signatures; every message carries it.
std::uint64_t signature_of(const Request& request);

// What goes before that many bytes of it on their way to another node.
transport::MessageHeader header_of(const Request& request, std::uint64_t signature,
                                   std::uint64_t bytes);

// "all_reduce of 1000 f32 (sum) by ring".
std::string describe(const Request& request);

}  // namespace sluice::engine

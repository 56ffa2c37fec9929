// tcp_mesh.h - how the ranks of a network connect: two sockets between every two of them.
//
// A rank calls the lower ranks at their doors and is called by the higher ones. A caller says which
// network it means, who it is and the job's token, and is answered; whoever does not know the token
// is hung up on. One socket is for messages and one for notes, so that neither waits for the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/wait.h"

namespace sluice::transport {

struct TcpAddress {
  std::string host;  // numeric
  std::uint16_t port = 0;
};

enum class TcpUse : std::uint32_t { Messages, Notes };

// The first thing a caller says.
struct TcpHello {
  static constexpr std::uint64_t kMagic = 0x736c7569'63650101;  // "sluice", tcp, version 1
  std::uint64_t magic = kMagic;
  std::uint64_t network = 0;
  Rank from = 0;
  Rank to = 0;
  std::int32_t ranks = 0;
  TcpUse use = TcpUse::Messages;
  char token[256] = {};
};

// A process' listener, and who called before it was expected. Outlives all networks of the rank.
struct TcpListener {
  struct Caller {
    base::Fd socket;
    TcpHello hello;
    std::size_t heard = 0;  // bytes of the hello
    Clock::time_point since;
  };
  base::Fd listener;
  std::string token;
  std::vector<Caller> callers;
};

struct TcpJoin {
  std::uint64_t network = 0;
  Rank rank = 0;
  std::vector<TcpAddress> addresses;  // by rank; of a rank of this node, none
  Clock::time_point deadline;

  int ranks() const { return static_cast<int>(addresses.size()); }
  bool is_remote(Rank peer) const { return addresses[static_cast<std::size_t>(peer)].port != 0; }
};

struct TcpLink {
  base::Fd messages;
  base::Fd notes;
};

// One link a rank; none to those of this node. Fails with a sentence that says who is missing.
Result<std::vector<TcpLink>> join_tcp(const TcpJoin& join, TcpListener& door,
                                      const std::string& own_address);

}  // namespace sluice::transport

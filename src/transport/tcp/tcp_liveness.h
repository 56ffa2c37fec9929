// tcp_liveness.h - whether the host at the other end of a connection still answers.
//
// Only the silence of a host may end a connection: a peer that computes for an hour and reads
// nothing is healthy, and its host goes on answering. Linux has three timers for this, and none of
// them is enough by itself (tcp(7), net/ipv4/tcp_timer.c):
//  - Keep-alive probes an idle connection, and only that: it waits while data is unacknowledged.
//  - TCP_USER_TIMEOUT also counts the time in which the peer's window is closed, although the host
//    answers every probe of it. So it ends connections to healthy peers, and is not used.
//  - Without it, unacknowledged data is sent again for a quarter of an hour (tcp_retries2).
// So keep-alive watches the idle connections, and is_silent() those with unacknowledged data.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::transport {

// A host that answers nothing for that long is lost.
inline constexpr std::chrono::milliseconds kLongestSilence{15'000};

// Lets the system end an idle connection whose host has been silent for about that long.
void watch_idle_host(int socket, std::chrono::milliseconds longest_silence);

// Whether data was sent several times, and the host has acknowledged nothing for that long.
bool is_silent(int socket, std::chrono::milliseconds longest_silence);

// The bytes that the peer's host takes before the peer must read.
std::uint64_t window_of_peer(int socket);

}  // namespace sluice::transport

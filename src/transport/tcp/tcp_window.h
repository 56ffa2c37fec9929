// tcp_window.h - how much a connection takes in before anybody reads it.
//
// A rank that is ahead sends the next step's message while its peer still waits for the last one of
// another rank. What then comes in takes the place of what is waited for, so the rank that is
// behind falls further behind, and left to itself TCP's window grows to megabytes. It need not hold
// more than keeps the link busy. Who receives from one rank alone, as in a ring, is better off with
// all that TCP gives: a thread that comes late to it, because others compute, then finds more.
#pragma once

#include <cstddef>

#include "sluice/cost.h"

namespace sluice::transport {

// For SO_RCVBUF, of which the system gives at the most so many; 0: best left to the system, whose
// window grows with what is asked of it.
std::size_t receive_buffer_for(const Link& link, std::size_t most);

// What this system gives.
std::size_t most_receive_buffer();

// Once said, for good: the system no longer chooses for this socket.
void set_receive_buffer(int socket, std::size_t bytes);

}  // namespace sluice::transport

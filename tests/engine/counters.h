// counters.h - the allocations, bytes in use and waits so far, in all threads of a test program.
//
// A program that calls allocations() links allocation_counter.cc, and one that asks for bytes links
// byte_counter.cc; both replace operator new. A program that calls waits() links wait_counter.cc,
// which wraps functions of the C library.
#pragma once

namespace sluice::engine {

// The number of calls of operator new, in all its forms.
long allocations();

// The bytes that operator new has handed out and that are in use, and the most since the last call
// of forget_most_bytes().
long bytes_in_use();
long most_bytes_in_use();
void forget_most_bytes();

struct WaitCounts {
  long all = 0;        // sleeps on a futex, a descriptor or a clock, and yields
  long with_lock = 0;  // the waits of threads that held a mutex at that moment
};

// Waiting for a mutex does not count.
WaitCounts waits();

}  // namespace sluice::engine

// counted_new.h - a program linked with counted_new.cc counts its allocations.
#pragma once

namespace sluice::engine {

// By operator new of any form that the program uses, in all its threads, so far.
long allocations();

}  // namespace sluice::engine

// shm.h - ranks are processes of one machine: each maps what it needs of its peers' memory.
//
// Processes meet through mesh.h and hand each other their arena (arena.h); a segment's id says
// which pages of it are meant, so a new segment needs no announcement, and is mapped by a peer the
// first time it is named. A released segment's pages are free at once; a peer drops its mapping
// when a new segment takes the place. Nothing has a name in the file system, so no crash leaves
// anything behind.
#pragma once

#include <memory>

#include "transport/group.h"
#include "transport/memory/mesh.h"

namespace sluice::transport {

using ShmJoin = MeshJoin;

// Returns when all ranks have joined, or fails with a sentence that says who did not.
Result<std::shared_ptr<Memory>> connect_shm(const ShmJoin& join);

// The same, with a control block for all of them, which rank 0 has made.
struct JoinedMemory {
  std::shared_ptr<Memory> memory;
  std::byte* control = nullptr;
};
Result<JoinedMemory> enter_shm_room(const ShmJoin& join);

// The same as a group.
Result<std::unique_ptr<Group>> make_shm_group(const ShmJoin& join);

}  // namespace sluice::transport

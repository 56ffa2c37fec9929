// orphan_reaper.h - a process that outlives a killed launcher by a moment, to end what it had
// started.
//
// A rank dies with its launcher by itself (PR_SET_PDEATHSIG), but what the rank has started, say
// from a shell script, does not. The guardian knows the process groups of all ranks; when the
// launcher is gone without having dismissed it, it kills them.
#pragma once

#include <sys/types.h>

#include "base/fd.h"

namespace sluice::bootstrap {

class OrphanReaper {
 public:
  // Forks; where that fails there is no guardian, and ranks still die by themselves.
  OrphanReaper();
  ~OrphanReaper();
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

  void watch(pid_t group);

 private:
  base::Fd pipe_;
  pid_t process_ = -1;
};

}  // namespace sluice::bootstrap

// failure_report.h - how a rank tells its launcher which rank made it fail.
//
// The rank that ends first is often not the cause: when a rank hangs, all others fail. They know
// the culprit, and the launcher has to name it. All ranks of a launcher inherit one end of a pipe,
// and SLUICE_LAUNCHER names it. A rank writes a report when a communicator of its fails, in one
// piece and without blocking. A report that cannot be written is lost, and then the launcher names
// the rank that ended first.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::bootstrap {

// Ranks are numbered as in the job.
struct FailureReport {
  Rank rank = 0;
  Rank culprit = 0;
  std::string message;  // of the error
};

// A rank's end of the pipe.
class FailureReporter {
 public:
  FailureReporter() = default;  // reports nothing
  // `launcher` is the value of SLUICE_LAUNCHER. A program in between may have closed the descriptor
  // and opened another file, so it must still be the same pipe. The descriptor is not inherited any
  // further.
  static FailureReporter to(std::string_view launcher);

  void send(const FailureReport& report) const;

 private:
  explicit FailureReporter(int descriptor) : descriptor_{descriptor} {}

  int descriptor_ = -1;  // the process owns it
};

// The launcher's end.
class FailureReports {
 public:
  static Result<FailureReports> make();

  const std::string& variable() const { return variable_; }  // the value of SLUICE_LAUNCHER
  // Reads what has arrived. Ignores whatever is no report of one of that many ranks.
  void read(int ranks);
  // The first report of a rank; nullptr: there is none.
  const FailureReport* of(Rank rank) const;

 private:
  base::Fd read_end_;
  base::Fd write_end_;  // the ranks inherit it
  std::string variable_;
  std::map<Rank, FailureReport> first_;
};

}  // namespace sluice::bootstrap

// text_words.h - what printer and parser of the text form must agree on.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/line_cursor.h"
#include "sluice/schedule.h"

namespace sluice::schedule {

inline constexpr std::string_view kRankWord = "rank";  // begins every line behind the header
inline constexpr std::string_view kUserBufferName = "buffer";

inline std::string_view buffer_name(const std::vector<std::string>& scratch, BufferId id) {
  return id == kUserBuffer ? kUserBufferName : scratch[static_cast<std::size_t>(id - 1)];
}

// Distinct, proper, and none of them the user's buffer.
inline bool are_scratch_names(const std::vector<std::string>& scratch) {
  for (auto name = scratch.begin(); name != scratch.end(); ++name) {
    if (!is_name(*name) || *name == kUserBufferName) return false;
    if (std::find(scratch.begin(), name, *name) != name) return false;
  }
  return true;
}

}  // namespace sluice::schedule

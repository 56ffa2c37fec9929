// slurm_list.h - the short forms in which Slurm writes lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::bootstrap {

// The n-th number, from 0, of "4(x2),3": 4, 4, 3. None where there is none.
std::optional<std::int64_t> nth_of_counts(std::string_view list, std::int64_t n, std::int64_t most);

// The first name of "node[03-07,9],x": node03. Empty where it is no such list.
std::string first_of_nodes(std::string_view list);

}  // namespace sluice::bootstrap

// remove_folder.h - a folder and all that is in it, gone.
#pragma once

#include <filesystem>

namespace sluice::base {

// As far as it can; what is not there is no error. Links are removed, not followed.
// std::filesystem::remove_all() will not do in programs that load libtorch: the wheels of 2.x
// export one of their own, which calls a function that is not there.
void remove_folder(const std::filesystem::path& folder);

}  // namespace sluice::base

// build_id.h - which build of Sluice this is.
#pragma once

#include <string>

namespace sluice::base {

// The build id that the linker wrote into this program or shared library, in hexadecimal. It
// changes with any change of the code. Empty if the linker wrote none.
std::string build_id();

}  // namespace sluice::base

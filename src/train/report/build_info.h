// build_info.h - what this library was built from.
#pragma once

#include <string_view>

namespace sluice::train {

std::string_view version();
// Of the checkout, when the build was configured; "" where there was none.
std::string_view commit();

}  // namespace sluice::train

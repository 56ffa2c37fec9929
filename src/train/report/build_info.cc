#include "train/report/build_info.h"

#include "sluice/version.h"

namespace sluice::train {

std::string_view version() { return SLUICE_VERSION; }
std::string_view commit() { return SLUICE_COMMIT; }

}  // namespace sluice::train

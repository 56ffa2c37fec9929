// sluice.h - all of Sluice that needs only the standard library.
//
// The headers in sluice/torch/ need libtorch; include those that you use.
#pragma once

#include "sluice/algorithms.h"
#include "sluice/analysis/cost.h"
#include "sluice/analysis/select.h"
#include "sluice/analysis/simulate.h"
#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/log.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "sluice/types.h"
#include "sluice/verify.h"
#include "sluice/version.h"

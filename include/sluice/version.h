// version.h - the version of Sluice: MAJOR.MINOR.PATCH, by semantic versioning.
//
// While MAJOR is 0, a new MINOR may change the API; CHANGELOG.md lists the changes.
#pragma once

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 2
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION "0.2.0"
// For comparisons: #if SLUICE_VERSION_NUMBER >= 200
#define SLUICE_VERSION_NUMBER \
  (SLUICE_VERSION_MAJOR * 10000 + SLUICE_VERSION_MINOR * 100 + SLUICE_VERSION_PATCH)

// Marks a function or class that a shared library exports. Sluice is compiled with hidden
// visibility: names without this mark are internal, even if a header declares them.
#define SLUICE_API __attribute__((visibility("default")))

# What Sluice needs besides the standard library. All but Highway is used header-only, so that the
# installed library asks nothing else of its consumers.

function(sluice_missing what package)
  message(FATAL_ERROR "${what} was not found: install ${package} (tools/setup does).")
endfunction()

find_package(fmt QUIET CONFIG)
if(NOT TARGET fmt::fmt-header-only)
  sluice_missing(fmt libfmt-dev)
endif()

find_package(nlohmann_json QUIET CONFIG)
if(NOT TARGET nlohmann_json::nlohmann_json)
  sluice_missing("JSON for Modern C++" nlohmann-json3-dev)
endif()

find_package(CLI11 QUIET CONFIG)
if(NOT TARGET CLI11::CLI11)
  sluice_missing(CLI11 libcli11-dev)
endif()

find_path(SLUICE_TOMLPLUSPLUS_INCLUDE toml++/toml.h)
if(NOT SLUICE_TOMLPLUSPLUS_INCLUDE)
  sluice_missing(toml++ libtomlplusplus-dev)
endif()

find_path(SLUICE_XXHASH_INCLUDE xxhash.h)
if(NOT SLUICE_XXHASH_INCLUDE)
  sluice_missing(xxHash libxxhash-dev)
endif()
mark_as_advanced(SLUICE_TOMLPLUSPLUS_INCLUDE SLUICE_XXHASH_INCLUDE)

find_package(hwy QUIET CONFIG)
if(NOT TARGET hwy::hwy)
  sluice_missing(Highway libhwy-dev)
endif()

if(SLUICE_TESTS)
  find_package(GTest QUIET)
  if(NOT TARGET GTest::gtest_main)
    sluice_missing(GoogleTest libgtest-dev)
  endif()
endif()

if(SLUICE_BENCH)
  find_package(benchmark QUIET CONFIG)
  if(NOT TARGET benchmark::benchmark)
    sluice_missing("Google Benchmark" libbenchmark-dev)
  endif()
endif()

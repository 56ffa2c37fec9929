# The libraries that Sluice needs. All are used header-only, except Highway, libcrypto and, where it is
# found, MPI. So programs that use the installed library need only these three.

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

# Its HMAC proves the token of a job.
find_package(OpenSSL QUIET COMPONENTS Crypto)
if(NOT TARGET OpenSSL::Crypto)
  sluice_missing("libcrypto (OpenSSL)" libssl-dev)
endif()

# sluice::mpi, where MPI is found. Sluice uses only its C interface. The C wrapper gives the options for
# C++ too, so this project needs neither the C language nor libmpi_cxx. Programs that use the installed
# library must link the same MPI that Sluice was compiled with, so sluice-config.cmake names its files.
if(NOT SLUICE_MPI STREQUAL "OFF")
  if(NOT MPI_CXX_COMPILER)
    find_program(SLUICE_MPICC NAMES mpicc.openmpi mpicc)
    mark_as_advanced(SLUICE_MPICC)
    if(SLUICE_MPICC)
      set(MPI_CXX_COMPILER "${SLUICE_MPICC}" CACHE FILEPATH "MPI's wrapper of the C compiler")
    endif()
  endif()
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    add_library(sluice::mpi INTERFACE IMPORTED)
    target_link_libraries(sluice::mpi INTERFACE ${MPI_CXX_LIBRARIES})
    target_include_directories(sluice::mpi SYSTEM INTERFACE ${MPI_CXX_INCLUDE_DIRS})
  elseif(SLUICE_MPI STREQUAL "AUTO")
    message(STATUS "MPI was not found: Sluice is built without it (libopenmpi-dev, tools/setup)")
  else()
    sluice_missing(MPI libopenmpi-dev)
  endif()
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

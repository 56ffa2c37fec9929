# Finds libtorch. Sets SLUICE_TORCH_FOUND, and where libtorch is found Torch_VERSION and TORCH_LIBRARIES.
#
# clang 14 cannot compile libtorch 1.13 as C++20, so AUTO means OFF unless the compiler is g++.

set(SLUICE_TORCH_FOUND FALSE)
if(SLUICE_TORCH STREQUAL "ON" OR (SLUICE_TORCH STREQUAL "AUTO" AND CMAKE_CXX_COMPILER_ID STREQUAL
                                                                   "GNU"))
  find_package(Torch QUIET CONFIG)
  if(Torch_FOUND)
    set(SLUICE_TORCH_FOUND TRUE)
  elseif(SLUICE_TORCH STREQUAL "AUTO")
    message(STATUS "libtorch was not found: Sluice is built without it (libtorch-dev, tools/setup)")
  else()
    sluice_missing(libtorch libtorch-dev)
  endif()
endif()

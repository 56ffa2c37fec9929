# libtorch, where there is one: SLUICE_TORCH_FOUND, and then Torch_VERSION and TORCH_LIBRARIES.
#
#   sluice_precompile_torch(train_test)
#
# gives a target's sources <torch/torch.h> precompiled. One file serves the layers and their tests, and
# the layer `libtorch` makes it; so these targets must be compiled alike.
#
# clang 14 cannot read libtorch 1.13 as C++20: AUTO is OFF unless the compiler is g++.

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

function(sluice_precompile_torch target)
  if(target STREQUAL "sluice_libtorch")
    target_precompile_headers(${target} PRIVATE <torch/torch.h>)
  else()
    target_precompile_headers(${target} REUSE_FROM sluice_libtorch)
  endif()
  # A program is compiled with -fPIE by default, which a header compiled with -fPIC does not fit.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  # ccache leaves sources with precompiled headers alone unless told that macros may be ignored.
  if(SLUICE_CCACHE)
    set_target_properties(
      ${target} PROPERTIES CXX_COMPILER_LAUNCHER
                           "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${SLUICE_CCACHE}")
  endif()
endfunction()

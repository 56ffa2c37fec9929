# Precompiled headers: most of the time to compile a source goes into the headers that it includes.
#
#   sluice_precompile(target)                # the headers that nearly every source includes
#   sluice_precompile(target torch)          # the same and <torch/torch.h>
#   sluice_precompile(target commands)       # the same and JSON
#   sluice_precompile(target tests)          # the same and GoogleTest
#
# Even from a precompiled header, libtorch costs ten seconds a compilation: its templates are instantiated each
# time. So the sources of a target for torch are compiled several at once, and a name in an anonymous namespace
# is unique within the target.
#
# The first target of a kind makes the file and the others use it, so all must be compiled with the same
# options. Sources still include the headers that they use: the clang preset builds and lints without
# precompiled headers.

set(SLUICE_PRECOMPILED
    <algorithm>
    <array>
    <atomic>
    <chrono>
    <cmath>
    <cstddef>
    <cstdint>
    <cstring>
    <deque>
    <filesystem>
    <fstream>
    <functional>
    <limits>
    <map>
    <memory>
    <mutex>
    <numeric>
    <optional>
    <span>
    <sstream>
    <string>
    <string_view>
    <thread>
    <tuple>
    <utility>
    <variant>
    <vector>
    "${PROJECT_SOURCE_DIR}/src/base/format.h")
set(SLUICE_PRECOMPILED_torch <torch/torch.h>)
set(SLUICE_PRECOMPILED_commands <nlohmann/json.hpp>)
set(SLUICE_PRECOMPILED_tests <gtest/gtest.h>)

function(sluice_precompile target)
  set(kind "${ARGV1}")
  get_property(maker GLOBAL PROPERTY SLUICE_PRECOMPILED_BY_${kind})
  if(maker)
    target_precompile_headers(${target} REUSE_FROM ${maker})
  else()
    target_precompile_headers(${target} PRIVATE ${SLUICE_PRECOMPILED}
                              ${SLUICE_PRECOMPILED_${kind}})
    set_property(GLOBAL PROPERTY SLUICE_PRECOMPILED_BY_${kind} ${target})
  endif()
  if(kind STREQUAL torch)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    # g++ takes a source that another one includes for a header, whose types must not use anonymous namespaces.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  # Programs are compiled with -fPIE by default, but cannot use a precompiled header made with -fPIC.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  # Without this setting ccache does not cache sources that use precompiled headers.
  if(SLUICE_CCACHE)
    set_target_properties(
      ${target} PROPERTIES CXX_COMPILER_LAUNCHER
                           "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${SLUICE_CCACHE}")
  endif()
endfunction()

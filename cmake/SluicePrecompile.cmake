# Precompiled headers: a source spends most of its time on the headers it includes.
#
#   sluice_precompile(target)                # what nearly every source of ours includes
#   sluice_precompile(target torch)          # the same and <torch/torch.h>
#   sluice_precompile(target commands)       # the same and JSON
#   sluice_precompile(target tests)          # the same and GoogleTest
#
# The first target of a kind makes the file, the others use it; so all must be compiled alike. Sources
# still include what they use: the clang preset builds and lints without precompiled headers.

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

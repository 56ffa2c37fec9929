# How our own code is compiled: every target of ours links sluice_build privately.

add_library(sluice_build INTERFACE)
target_include_directories(sluice_build INTERFACE "${PROJECT_SOURCE_DIR}/include"
                                                  "${PROJECT_SOURCE_DIR}/src")
target_include_directories(sluice_build SYSTEM INTERFACE "${SLUICE_TOMLPLUSPLUS_INCLUDE}"
                                                         "${SLUICE_XXHASH_INCLUDE}")
target_include_directories(
  sluice_build SYSTEM
  INTERFACE $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(sluice_build INTERFACE XXH_INLINE_ALL)
target_link_libraries(sluice_build INTERFACE nlohmann_json::nlohmann_json CLI11::CLI11)
# A multiplication fused with an addition rounds once instead of twice: machines with and without that
# instruction would disagree in the last bit.
target_compile_options(sluice_build INTERFACE -ffp-contract=off)
# Options are aggregates with designated initialisers, so leaving members out is how they are used.
target_compile_options(sluice_build INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                              -Wno-sign-conversion -Wno-missing-field-initializers)
if(SLUICE_WERROR)
  target_compile_options(sluice_build INTERFACE -Werror)
endif()

# Whole-program flags: every object must agree on these.
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  # g++ says so by itself; the tests do less under sanitizers.
  if(SLUICE_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_compile_definitions(__SANITIZE_ADDRESS__)
  endif()
  # In std::regex, once instrumented, g++ finds what is not there.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
if(SLUICE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "SLUICE_FUZZ needs clang: configure with the clang preset.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SLUICE_CCACHE ccache)
  mark_as_advanced(SLUICE_CCACHE)
  if(SLUICE_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${SLUICE_CCACHE}")
  endif()
endif()

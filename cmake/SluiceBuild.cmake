# How our own code is compiled: every target of ours links sluice_build privately.

add_library(sluice_build INTERFACE)
target_include_directories(sluice_build INTERFACE "${PROJECT_SOURCE_DIR}/include"
                                                  "${PROJECT_SOURCE_DIR}/src")
target_include_directories(sluice_build SYSTEM INTERFACE "${SLUICE_TOMLPLUSPLUS_INCLUDE}"
                                                         "${SLUICE_XXHASH_INCLUDE}")
# libtorch 2 has the headers of another {fmt} beside its own. A folder with nothing but our {fmt}, before
# libtorch's folders, gives all sources the same one.
get_target_property(fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
list(GET fmt_include 0 fmt_include)
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/fmt-include")
file(CREATE_LINK "${fmt_include}/fmt" "${PROJECT_BINARY_DIR}/fmt-include/fmt" SYMBOLIC)
target_include_directories(sluice_build SYSTEM BEFORE
                           INTERFACE "${PROJECT_BINARY_DIR}/fmt-include")
target_compile_definitions(sluice_build INTERFACE XXH_INLINE_ALL)
target_link_libraries(sluice_build INTERFACE nlohmann_json::nlohmann_json CLI11::CLI11)
# A fused multiply-add rounds once instead of twice. Machines with and without that instruction would
# disagree in the last bit.
target_compile_options(sluice_build INTERFACE -ffp-contract=off)
# Options are aggregates with designated initialisers, and callers leave members out on purpose.
target_compile_options(sluice_build INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                              -Wno-sign-conversion -Wno-missing-field-initializers)
if(SLUICE_WERROR)
  target_compile_options(sluice_build INTERFACE -Werror)
endif()

# Whole-program flags: all objects must be compiled with the same ones.
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  # g++ defines this macro itself. Tests check it and do less work under sanitizers.
  if(SLUICE_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_compile_definitions(__SANITIZE_ADDRESS__)
  endif()
  # g++ gives false warnings in instrumented std::regex.
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

# Toolchain of the clang preset: clang 14 where it is installed, else the system's default clang.
find_program(SLUICE_CLANGXX NAMES clang++-14 clang++)
if(NOT SLUICE_CLANGXX)
  message(FATAL_ERROR "clang was not found: install clang-14 (tools/setup does).")
endif()
set(CMAKE_CXX_COMPILER "${SLUICE_CLANGXX}")

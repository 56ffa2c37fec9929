# Tests: one binary per folder of tests/, one ctest entry per binary, each with a deadline and labels.
#
#   sluice_add_test(schedule SOURCES verify_test.cc [LABELS fast|slow] [TIMEOUT seconds] [TORCH])
#   sluice_use_torch(train_test)                       # links libtorch, its header precompiled
#   sluice_add_tool_test(check_layers)                 # tests/tools/check_layers_test.sh
#   sluice_add_fuzzer(parse SOURCES parse_fuzz.cc)     # replays corpus/parse; with clang also a fuzzer
#
# Sources may include internal headers ("schedule/event_graph.h") and those of tests ("tests/mutation/mutants.h").
# Three macros are defined: SLUICE_COMMAND is the built command, SLUICE_SOURCE_DIR the checkout, and SLUICE_SLOWDOWN
# the factor for the deadlines of this build.

# Sanitized code is about ten times slower.
if(SLUICE_SANITIZE)
  set(SLUICE_SLOWDOWN 10)
else()
  set(SLUICE_SLOWDOWN 1)
endif()

function(sluice_set_deadline name seconds)
  math(EXPR seconds "${seconds} * ${SLUICE_SLOWDOWN}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
endfunction()

function(sluice_test_target target)
  target_link_libraries(${target} PRIVATE sluice_build sluice_simulate_static)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${target} PRIVATE SLUICE_COMMAND="$<TARGET_FILE:sluice_cli>"
                                               SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               SLUICE_SLOWDOWN=${SLUICE_SLOWDOWN})
endfunction()

function(sluice_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "TORCH" "TIMEOUT" "SOURCES;LABELS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 60)
  endif()
  if(NOT test_LABELS)
    set(test_LABELS fast)
  endif()
  add_executable(${name}_test ${test_SOURCES})
  sluice_test_target(${name}_test)
  target_link_libraries(${name}_test PRIVATE GTest::gtest_main)
  if(test_TORCH)
    sluice_use_torch(${name}_test)
  else()
    sluice_precompile(${name}_test tests)
  endif()
  add_dependencies(${name}_test sluice_cli)
  add_test(NAME ${name} COMMAND ${name}_test)
  # Tests must not write their measurements into the user's cache.
  set_tests_properties(${name} PROPERTIES LABELS "${test_LABELS}"
                                          ENVIRONMENT "SLUICE_CACHE=${PROJECT_BINARY_DIR}/cache")
  sluice_set_deadline(${name} ${test_TIMEOUT})
endfunction()

function(sluice_use_torch target)
  target_link_libraries(${target} PRIVATE sluice_train_static)
  sluice_precompile(${target} torch)
endfunction()

function(sluice_add_tool_test name)
  add_test(NAME tools.${name} COMMAND "${PROJECT_SOURCE_DIR}/tests/tools/${name}_test.sh")
  set_tests_properties(tools.${name} PROPERTIES LABELS fast TIMEOUT 60 SKIP_RETURN_CODE 77)
endfunction()

function(sluice_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 fuzz "" "" "SOURCES")
  add_executable(fuzz_${name}_replay ${fuzz_SOURCES} replay.cc)
  sluice_test_target(fuzz_${name}_replay)
  add_test(NAME fuzz.${name} COMMAND fuzz_${name}_replay
                                     "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fast)
  sluice_set_deadline(fuzz.${name} 60)
  if(SLUICE_FUZZ)
    add_executable(fuzz_${name} ${fuzz_SOURCES})
    sluice_test_target(fuzz_${name})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(fuzz_${name} PROPERTIES OUTPUT_NAME ${name}
                                       RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  endif()
endfunction()

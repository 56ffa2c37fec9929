# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCOMPILER=... -P run.cmake
# Installs BUILD under WORK, then configures, builds and runs the project in SOURCE against it.

function(run_step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${status}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run_step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
run_step("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -G Ninja
         "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}")
run_step("${CMAKE_COMMAND}" --build "${WORK}/build")
run_step("${WORK}/build/consumer")
string(STRIP "${said}" said)
if(NOT said STREQUAL "proven")
  message(FATAL_ERROR "the consumer said '${said}', not 'proven'")
endif()
run_step("${WORK}/prefix/bin/sluice" --version)

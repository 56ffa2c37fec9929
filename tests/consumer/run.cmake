# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCOMPILER=... -DPROGRAM=... -DPRINTS=... [-DRANKS=n] -P run.cmake
# Installs BUILD under WORK. Then configures, builds and runs the project in SOURCE against it; with RANKS
# `sluice launch` runs it. The output of PROGRAM must match PRINTS. CMake finds dependencies where BUILD found them.

function(run_step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run_step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
load_cache("${BUILD}" READ_WITH_PREFIX built_ CMAKE_PREFIX_PATH)
set(prefixes "${WORK}/prefix;${built_CMAKE_PREFIX_PATH}")
string(REPLACE ";" "\\;" prefixes "${prefixes}")
run_step("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -G Ninja
         "-DCMAKE_PREFIX_PATH=${prefixes}" "-DCMAKE_CXX_COMPILER=${COMPILER}")
run_step("${CMAKE_COMMAND}" --build "${WORK}/build")
set(command "${WORK}/prefix/bin/sluice")
run_step("${command}" --version)
set(launch "")
if(RANKS)
  set(launch "${command}" launch -n ${RANKS} --deadline 100s --)
endif()
run_step(${launch} "${WORK}/build/${PROGRAM}")
if(NOT output MATCHES "${PRINTS}")
  message(FATAL_ERROR "${PROGRAM} printed '${output}', which does not match '${PRINTS}'")
endif()

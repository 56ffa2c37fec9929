# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCOMPILER=... -DPROGRAM=... -DSAYS=... [-DRANKS=n] -P run.cmake
# Installs BUILD under WORK. Then configures, builds and runs the project in SOURCE against it; with RANKS
# `sluice launch` runs it. The output of PROGRAM must match SAYS. Dependencies are found where BUILD found them.

function(run_step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${status}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
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
if(NOT said MATCHES "${SAYS}")
  message(FATAL_ERROR "${PROGRAM} said '${said}', not '${SAYS}'")
endif()

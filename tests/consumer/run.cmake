# Builds and runs the consumer in WORK_DIR, with COMPONENT of tamis FROM a package (the installed build in BUILD_DIR), fetch or
# subdirectory (our sources). SETTINGS: a CMake script with the cache variables of our build. REFUSED: a regular expression; the
# configuration must fail with such a message.
file(REMOVE_RECURSE ${WORK_DIR})
set(source ${CMAKE_CURRENT_LIST_DIR})
set(build ${WORK_DIR}/build)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${output}")
  endif()
endfunction()

if(FROM STREQUAL "package")
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
endif()
set(configure ${CMAKE_COMMAND} -S ${source} -B ${build} -C ${SETTINGS} -DFROM=${FROM} -DCOMPONENT=${COMPONENT}
    -DTAMIS_SOURCE=${source}/../.. -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
if(REFUSED)
  execute_process(COMMAND ${configure} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " text "${output}")
  if(result EQUAL 0 OR NOT text MATCHES "${REFUSED}")
    message(FATAL_ERROR "expected a message like \"${REFUSED}\", got:\n${output}")
  endif()
  return()
endif()
run(${configure})

# No target of tests, programs or Python comes along.
if(NOT FROM STREQUAL "package")
  run(${CMAKE_COMMAND} --build ${build} --parallel 2)
  file(GLOB_RECURSE programs ${build}/tamis/bin/* ${build}/_deps/*/bin/*)
  if(programs)
    message(FATAL_ERROR "built without being asked for: ${programs}")
  endif()
else()
  run(${CMAKE_COMMAND} --build ${build})
  if(EXISTS ${WORK_DIR}/prefix/bin/tamis)
    run(${WORK_DIR}/prefix/bin/tamis --version)
  endif()
endif()
run(${build}/consumer)

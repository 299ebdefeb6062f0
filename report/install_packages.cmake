# Runs `npm ci` in FOLDER unless what package-lock.json asks for is installed already.
# Usage: cmake -D NPM=npm -D FOLDER=report -P install_packages.cmake
# Several build folders may come here at the same time.
file(LOCK ${FOLDER}/.packages.lock GUARD PROCESS)
set(stamp ${FOLDER}/node_modules/.installed-lock)
file(SHA256 ${FOLDER}/package-lock.json wanted)
if(EXISTS ${stamp})
  file(READ ${stamp} installed)
  if(installed STREQUAL wanted)
    return()
  endif()
endif()

execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
                WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE failure OUTPUT_VARIABLE text
                ERROR_VARIABLE text)
if(failure)
  message(FATAL_ERROR "npm ci failed in ${FOLDER} (it needs the network the first time):\n${text}")
endif()
file(WRITE ${stamp} ${wanted})

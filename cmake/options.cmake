# What to build, and how.
option(WINNOW_PROGRAM "Build the program `winnow` (needs CLI11, fmt and nlohmann-json)" ON)
option(WINNOW_REPORT "Build the command `winnow report` (needs Node.js and npm to build)" OFF)
option(WINNOW_LIBTORCH "Build the LibTorch adapter and the training commands (needs LibTorch)" OFF)
option(WINNOW_PYTHON "Build the Python package (needs pybind11)" OFF)
option(WINNOW_TESTS "Build the tests (needs GoogleTest)" OFF)
option(WINNOW_BENCHMARKS "Build the benchmarks (needs Google Benchmark)" OFF)
option(WINNOW_WERROR "Treat warnings as errors" OFF)
set(WINNOW_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(WINNOW_CCACHE ccache)
if(WINNOW_CCACHE)
  # What ccache asks for before it works with precompiled headers; see also -fpch-preprocess.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${WINNOW_CCACHE})
endif()

# Warnings and sanitizers for our own targets.
function(winnow_compile_options target)
  # No contraction into fused multiply-adds: a plan must not depend on the instruction set.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(WINNOW_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(WINNOW_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WINNOW_SANITIZE} -fno-sanitize-recover=all
                           -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${WINNOW_SANITIZE})
    target_compile_definitions(${target} PRIVATE WINNOW_SANITIZED)
  endif()
endfunction()

# For targets whose own code is not hot: they compile in half the time. Targets that share a
# precompiled header must agree on it.
function(winnow_optimize_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

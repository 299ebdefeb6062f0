# What to build, and how. By default the core alone, which needs a compiler and CMake; CMakePresets.json turns on the rest.
# These two may also be AUTO: if what they need is found.
option(TAMIS_PROGRAM "Build the program `tamis` (needs CLI11, fmt and nlohmann-json)" OFF)
option(TAMIS_REPORT "Build the command `tamis report` (needs TAMIS_PROGRAM, Node.js and npm)" OFF)
option(TAMIS_LIBTORCH "Build tamis::torch, the adapter for LibTorch, and with TAMIS_PROGRAM the training commands" OFF)
option(TAMIS_PYTHON "Build the Python package (needs Python's headers and nanobind)" OFF)
option(TAMIS_TESTS "Build the tests (needs GoogleTest and nlohmann-json)" OFF)
option(TAMIS_BENCHMARKS "Build the benchmarks (needs Google Benchmark)" OFF)
option(TAMIS_INSTALL "Add tamis to what `cmake --install` installs" ${PROJECT_IS_TOP_LEVEL})
option(TAMIS_UNITY "Compile the sources of a folder at once: the whole is faster, a change of one file slower" ON)
option(TAMIS_WERROR "Treat warnings as errors" OFF)
option(TAMIS_FUZZ "Build tests/fuzz as fuzzers (needs Clang)" OFF)
set(TAMIS_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
# An installed program loads the LibTorch that it was built with.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# A project that includes tamis decides these for itself.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  find_program(TAMIS_CCACHE ccache)
  if(TAMIS_CCACHE)
    # What ccache asks for before it works with precompiled headers; see also -fpch-preprocess.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${TAMIS_CCACHE})
  endif()
endif()

# Sources of one folder are read by the compiler as one. So a private name may occur in one file of a folder only.
function(tamis_compile_folders_at_once target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TAMIS_UNITY} UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "sources_${folder}")
  endforeach()
endfunction()

# Warnings and sanitizers for our own targets, and how they are compiled.
function(tamis_compile_options target)
  tamis_compile_folders_at_once(${target})
  # No contraction into fused multiply-adds: a plan must not depend on the instruction set.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(TAMIS_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TAMIS_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(TAMIS_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TAMIS_SANITIZE} -fno-sanitize-recover=all
                           -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${TAMIS_SANITIZE})
    target_compile_definitions(${target} PRIVATE TAMIS_SANITIZED)
  endif()
endfunction()

# For targets whose own code is not hot: they compile in half the time. Targets that share a
# precompiled header must agree on it.
function(tamis_optimize_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Headers that take longer to read than our own code are compiled once, for one target and those that share them:
# tamis_precompile(target HEADER...), tamis_share_precompiled(target first_target).
function(tamis_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  tamis_prepare_sharing(${target})
endfunction()
function(tamis_share_precompiled target first_target)
  target_precompile_headers(${target} REUSE_FROM ${first_target})
  tamis_prepare_sharing(${target})
endfunction()

# Programs (which would get -fPIE) and libraries need the same settings to share.
function(tamis_prepare_sharing target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  tamis_optimize_lightly(${target})
endfunction()

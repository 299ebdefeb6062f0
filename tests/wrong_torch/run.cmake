# Makes a folder that looks like torch of the given KIND in WORK_DIR, and expects the configuration to stop with EXPECTED.
#   missing     an interpreter (PYTHON) without torch
#   no_headers  an empty folder
#   old         version 2.6
#   other_abi   libraries that lack what this compiler asks for
#   no_gloo     libraries of the right ABI without c10d's Gloo
#   good        libraries that have both; EXPECTED is then part of the output of a configuration that works
file(REMOVE_RECURSE ${WORK_DIR})
set(torch ${WORK_DIR}/torch)
file(MAKE_DIRECTORY ${torch}/lib ${torch}/include/torch/headeronly ${torch}/include/torch/csrc/api/include)

if(NOT KIND STREQUAL "no_headers")
  set(minor 15)
  if(KIND STREQUAL "old")
    set(minor 6)
  endif()
  file(WRITE ${torch}/include/torch/headeronly/version.h
       "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR ${minor}\n#define TORCH_VERSION_PATCH 0\n")
endif()

set(code "")
if(KIND MATCHES "^(no_gloo|good)$")
  string(APPEND code "#include <chrono>\n#include <string>\nnamespace c10::detail {\n"
         "void torchCheckFail(const char*, const char*, unsigned, const std::string&) {}\n}\n")
endif()
if(KIND STREQUAL "good")
  string(APPEND code "namespace c10d {\nstruct ProcessGroupGloo { struct Options { explicit Options(std::chrono::milliseconds); }; };\n"
         "ProcessGroupGloo::Options::Options(std::chrono::milliseconds) {}\n}\n")
endif()
file(WRITE ${WORK_DIR}/torch.cpp "${code}")
foreach(name IN ITEMS torch torch_cpu c10)
  execute_process(COMMAND ${COMPILER} -shared -fPIC -o ${torch}/lib/lib${name}${SUFFIX} ${WORK_DIR}/torch.cpp COMMAND_ERROR_IS_FATAL ANY)
endforeach()

set(found -DTAMIS_TORCH_DIR=${torch})
if(KIND STREQUAL "missing")
  execute_process(COMMAND ${PYTHON} -m venv --without-pip ${WORK_DIR}/venv COMMAND_ERROR_IS_FATAL ANY)
  set(found -DTAMIS_PYTHON_EXECUTABLE=${WORK_DIR}/venv/bin/python)
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK_DIR}/build -DTORCH_CMAKE=${TORCH_CMAKE}
          -DCMAKE_CXX_COMPILER=${COMPILER} ${found}
  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " text "${output}")
set(is_as_expected OFF)
if(text MATCHES "${EXPECTED}" AND ((KIND STREQUAL "good" AND failed EQUAL 0) OR (NOT KIND STREQUAL "good" AND NOT failed EQUAL 0)))
  set(is_as_expected ON)
endif()
if(NOT is_as_expected)
  message(FATAL_ERROR "${KIND}: expected \"${EXPECTED}\", got (${failed}):\n${output}")
endif()

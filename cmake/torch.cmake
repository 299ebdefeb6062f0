# Finds the LibTorch to build against and makes it the imported target LibTorch::LibTorch. Used by
# tamis itself and, installed, by find_package(tamis COMPONENTS torch).
#
# Torch's own CMake package demands the CUDA toolkit for a CUDA build; this needs only the headers
# and the libraries, which every wheel from PyPI has. The first of these counts:
#   TAMIS_TORCH_DIR               the folder torch/ of an installed wheel, or an unpacked LibTorch
#   Torch_DIR, CMAKE_PREFIX_PATH  as for torch's own CMake package
#   TAMIS_PYTHON_EXECUTABLE       the torch of this interpreter; default: the one of .venv in the
#                                 sources, then the one that CMake finds
set(TAMIS_TORCH_DIR "" CACHE PATH "Folder of LibTorch; empty: the one of TAMIS_PYTHON_EXECUTABLE")
set(TAMIS_PYTHON_EXECUTABLE "" CACHE FILEPATH
    "Python interpreter to build for; empty: .venv/bin/python, or the one that CMake finds")
set(TAMIS_TORCH_OLDEST 2.7)

# Sets `result` to the interpreter to build for; empty if there is none.
function(tamis_choose_python result)
  set(python "${TAMIS_PYTHON_EXECUTABLE}")
  if(NOT python)
    set(python "${Python_EXECUTABLE}")
  endif()
  if(NOT python AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  endif()
  if(NOT python)
    find_package(Python COMPONENTS Interpreter)
    set(python "${Python_EXECUTABLE}")
  endif()
  set(${result} "${python}" PARENT_SCOPE)
endfunction()

# Sets `folder` to LibTorch's, and `origin` to the words for it. `default` is taken if nothing else
# was chosen; may be empty.
function(tamis_choose_torch default folder origin)
  set(root "")
  find_path(package TorchConfig.cmake PATHS ${Torch_DIR} ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH}
            PATH_SUFFIXES share/cmake/Torch NO_DEFAULT_PATH NO_CACHE)
  if(TAMIS_TORCH_DIR)
    set(root ${TAMIS_TORCH_DIR})
    set(words "TAMIS_TORCH_DIR (${root})")
  elseif(package)
    get_filename_component(root ${package}/../../.. ABSOLUTE)
    set(words "torch's CMake package (${package})")
  elseif(default AND NOT TAMIS_PYTHON_EXECUTABLE AND EXISTS ${default})
    set(root ${default})
    set(words "${default}")
  else()
    tamis_choose_python(python)
    # Not imported: that takes seconds, and fails where the files are all that is needed.
    execute_process(COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch')
print(s.submodule_search_locations[0] if s and s.submodule_search_locations else '')"
      OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(words "the torch of ${python}")
    if(NOT root)
      message(FATAL_ERROR
        "tamis: there is no torch in the Python interpreter \"${python}\"; install it "
        "(${python} -m pip install torch), or set TAMIS_PYTHON_EXECUTABLE to an interpreter that "
        "has it, or TAMIS_TORCH_DIR to an unpacked LibTorch.")
    endif()
  endif()
  set(${folder} ${root} PARENT_SCOPE)
  set(${origin} "${words}" PARENT_SCOPE)
endfunction()

# Stops unless the libraries have this compiler's ABI, and c10d with Gloo.
function(tamis_check_torch_libraries origin)
  set(abi "#include <string>
namespace c10::detail {
void torchCheckFail(const char*, const char*, unsigned, const std::string&);
}
int main(int n, char**) { if (n > 1) c10::detail::torchCheckFail(\"\", \"\", 0, std::string()); }")
  set(gloo "#include <chrono>
namespace c10d {
struct ProcessGroupGloo { struct Options { explicit Options(std::chrono::milliseconds); }; };
}
int main(int n, char**) {
  if (n > 1) c10d::ProcessGroupGloo::Options options(std::chrono::milliseconds(1));
}")
  foreach(what IN ITEMS abi gloo)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/tamis_torch_${what}.cpp)
    file(WRITE ${source} "${${what}}\n")
    try_compile(${what}_works ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/tamis_torch_${what} ${source}
                LINK_LIBRARIES LibTorch::LibTorch OUTPUT_VARIABLE ${what}_output)
  endforeach()
  set(cure "install torch ${TAMIS_TORCH_OLDEST} or newer from PyPI")
  if(NOT abi_works)
    message(FATAL_ERROR
      "tamis: ${origin} does not link with this compiler (${CMAKE_CXX_COMPILER}), because its C++ "
      "ABI is another one or it was built for another system; ${cure}.\n${abi_output}")
  elseif(NOT gloo_works)
    message(FATAL_ERROR
      "tamis: ${origin} was built without torch.distributed (c10d with Gloo); ${cure}.")
  endif()
endfunction()

# Makes LibTorch::LibTorch and sets TAMIS_TORCH_FOLDER and TAMIS_TORCH_VERSION; `default` as above.
function(tamis_find_torch default)
  if(TARGET LibTorch::LibTorch)
    return()
  endif()
  tamis_choose_torch("${default}" folder origin)
  set(version "")
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS ${folder}/include/${header})
      file(STRINGS ${folder}/include/${header} version
           REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      string(REGEX MATCHALL "[0-9]+" version "${version}")
      list(JOIN version "." version)
    endif()
  endforeach()
  if(NOT version OR NOT EXISTS ${folder}/lib/libtorch_cpu${CMAKE_SHARED_LIBRARY_SUFFIX})
    message(FATAL_ERROR "tamis: ${origin} has no C++ headers or libraries in ${folder}; "
                        "install torch ${TAMIS_TORCH_OLDEST} or newer from PyPI.")
  elseif(version VERSION_LESS TAMIS_TORCH_OLDEST)
    message(FATAL_ERROR
      "tamis: torch must be ${TAMIS_TORCH_OLDEST} or newer, got ${version}: ${origin}.")
  endif()
  message(STATUS "tamis: torch ${version} in ${folder}")
  add_library(LibTorch::LibTorch INTERFACE IMPORTED GLOBAL)
  set_target_properties(LibTorch::LibTorch PROPERTIES
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    INTERFACE_INCLUDE_DIRECTORIES "${folder}/include;${folder}/include/torch/csrc/api/include")
  foreach(name IN ITEMS torch torch_cpu c10)
    target_link_libraries(LibTorch::LibTorch INTERFACE
                          ${folder}/lib/lib${name}${CMAKE_SHARED_LIBRARY_SUFFIX})
  endforeach()
  if(NOT folder STREQUAL TAMIS_TORCH_FOLDER)
    tamis_check_torch_libraries("${origin}")
  endif()
  set(TAMIS_TORCH_FOLDER ${folder} CACHE INTERNAL "LibTorch that was found and checked")
  set(TAMIS_TORCH_VERSION ${version} CACHE INTERNAL "")
endfunction()

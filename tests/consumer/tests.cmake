# The ways a C++ project gets tamis, each one built and run.

# What the consumer needs to agree with our build, and no generator of ours: the default one must do.
set(settings ${CMAKE_CURRENT_BINARY_DIR}/consumer-settings.cmake)
set(text "set(CMAKE_CXX_COMPILER \"${CMAKE_CXX_COMPILER}\" CACHE FILEPATH \"\")\n")
string(APPEND text "set(CMAKE_CXX_COMPILER_LAUNCHER \"${CMAKE_CXX_COMPILER_LAUNCHER}\" CACHE STRING \"\")\n")
if(TAMIS_SANITIZE)
  string(APPEND text "set(CMAKE_CXX_FLAGS \"-fsanitize=${TAMIS_SANITIZE}\" CACHE STRING \"\")\n")
endif()
set(torch_text "set(TAMIS_LIBTORCH ON CACHE BOOL \"\")\n")
string(APPEND torch_text "set(TAMIS_TORCH_DIR \"${TAMIS_TORCH_FOLDER}\" CACHE PATH \"\")\n")
file(CONFIGURE OUTPUT ${settings} CONTENT "${text}" @ONLY)
file(CONFIGURE OUTPUT ${settings}.torch CONTENT "${text}${torch_text}" @ONLY)

# add_consumer_test(name COMPONENT FROM [REFUSED])
function(add_consumer_test name component from)
  if(component STREQUAL "torch" AND from STREQUAL "subdirectory")
    string(APPEND settings .torch)
  endif()
  add_test(NAME consumer.${name}
    COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/consumer/${name}
      -DCOMPONENT=${component} -DFROM=${from} -DSETTINGS=${settings} "-DREFUSED=${ARGN}"
      -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.cmake)
  set_tests_properties(consumer.${name} PROPERTIES LABELS install TIMEOUT 1200)
endfunction()

add_consumer_test(core_package core package)
add_consumer_test(unknown_component wood package "has the components core and torch, not .wood.")
# The sources are the same in every build.
if(NOT TAMIS_SANITIZE)
  add_consumer_test(core_fetch core fetch)
  add_consumer_test(core_subdirectory core subdirectory)
  # One after the other: then ccache compiles the core once.
  set_tests_properties(consumer.core_subdirectory PROPERTIES DEPENDS consumer.core_fetch)
endif()
if(TAMIS_LIBTORCH)
  add_consumer_test(torch_package torch package)
  add_consumer_test(torch_subdirectory torch subdirectory)
  set_tests_properties(consumer.torch_subdirectory PROPERTIES DEPENDS consumer.core_subdirectory)
endif()
# Also where this build has torch.
if(NOT TAMIS_SANITIZE)
  add_consumer_test(torch_missing torch core "built without LibTorch; build and install it again with -DTAMIS_LIBTORCH=ON")
  set_tests_properties(consumer.core_subdirectory PROPERTIES FIXTURES_SETUP core_of_a_consumer)
  set_tests_properties(consumer.torch_missing PROPERTIES FIXTURES_REQUIRED core_of_a_consumer)
endif()

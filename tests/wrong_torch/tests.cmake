# A torch that does not do is refused when CMake configures, with a sentence that says why.
tamis_choose_python(tests_python)
function(add_wrong_torch_test kind expected)
  add_test(NAME wrong_torch.${kind}
    COMMAND ${CMAKE_COMMAND} -DKIND=${kind} "-DEXPECTED=${expected}" -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/wrong_torch/${kind}
      -DCOMPILER=${CMAKE_CXX_COMPILER} -DSUFFIX=${CMAKE_SHARED_LIBRARY_SUFFIX} -DPYTHON=${tests_python}
      -DTORCH_CMAKE=${PROJECT_SOURCE_DIR}/cmake/torch.cmake -P ${CMAKE_CURRENT_SOURCE_DIR}/wrong_torch/run.cmake)
  set_tests_properties(wrong_torch.${kind} PROPERTIES LABELS install TIMEOUT 300)
endfunction()

add_wrong_torch_test(missing "there is no torch in the Python interpreter .*; install it")
add_wrong_torch_test(no_headers "has no C\\+\\+ headers or libraries in .*; install torch 2.7 or newer from PyPI")
add_wrong_torch_test(old "torch must be 2.7 or newer, got 2.6.0: TAMIS_TORCH_DIR")
add_wrong_torch_test(other_abi "does not link with this compiler .* because its C\\+\\+ ABI is another one")
add_wrong_torch_test(no_gloo "was built without torch.distributed .c10d with Gloo.; install torch 2.7 or newer from PyPI")
# What the others lack is what matters: with both, the same folder is taken.
add_wrong_torch_test(good "tamis: torch 2.15.0 in ")

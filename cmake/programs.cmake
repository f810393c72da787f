# SPDX-License-Identifier: Apache-2.0
# Training programs over the C interface that end-to-end tests start: build/tests/toy, which needs no other library, and
# build/tests/example_cpp, examples/cpp with libtorch: Debian's, or another one through -DCMAKE_PREFIX_PATH=/path/to/libtorch.
find_package(Torch QUIET)

function(tw_add_training_program name source)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/bind)
  target_link_libraries(${name} PRIVATE tradewind)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

function(tw_add_programs)
  tw_add_training_program(toy tests/toy/toy.c)
  set_target_properties(toy PROPERTIES C_STANDARD 11 C_EXTENSIONS ON)
  if(NOT Torch_FOUND)
    message(STATUS "examples/cpp is left out, and its test skipped: libtorch-dev is missing")
    return()
  endif()
  tw_add_training_program(example_cpp examples/cpp/train.cc)
  target_include_directories(example_cpp SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  # Full debug information makes it compile 10 s longer (28 s instead of 18 s).
  target_compile_options(example_cpp PRIVATE ${TORCH_CXX_FLAGS} -g1)
  target_link_libraries(example_cpp PRIVATE ${TORCH_LIBRARIES})
endfunction()

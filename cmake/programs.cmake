# SPDX-License-Identifier: Apache-2.0
# Training programs over the C interface that end-to-end tests start: build/tests/toy, which needs no other library, and
# build/tests/example_cpp, examples/cpp with Debian's libtorch.
function(tw_add_programs)
  add_executable(toy ${PROJECT_SOURCE_DIR}/tests/toy/toy.c)
  set_target_properties(toy PROPERTIES C_STANDARD 11 C_EXTENSIONS ON)
  add_executable(example_cpp ${PROJECT_SOURCE_DIR}/examples/cpp/train.cc)
  target_link_libraries(example_cpp PRIVATE tw_libtorch)
  foreach(program toy example_cpp)
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/src/bind)
    target_link_libraries(${program} PRIVATE tradewind)
    set_target_properties(${program} PROPERTIES UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endforeach()
endfunction()

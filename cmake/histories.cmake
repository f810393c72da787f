# SPDX-License-Identifier: Apache-2.0
# sim_histories: whether seeds of the simulator have the histories that tests/histories/frozen.txt names.
function(tw_add_histories)
  set(folder ${PROJECT_SOURCE_DIR}/tests/histories)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  add_executable(sim_histories ${sources})
  target_link_libraries(sim_histories PRIVATE tw_sim fmt::fmt CLI11::CLI11 Threads::Threads)
  target_compile_definitions(sim_histories PRIVATE TW_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(sim_histories PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

  # The other entry sees that a history that is not as it was frozen is told.
  add_test(NAME sim_histories COMMAND sim_histories ${folder}/frozen.txt)
  add_test(NAME sim_histories_can_fail COMMAND sim_histories ${folder}/wrong.txt --only kills)
  set_tests_properties(sim_histories sim_histories_can_fail PROPERTIES LABELS unit TIMEOUT 1200)
  set_tests_properties(sim_histories_can_fail PROPERTIES
    PASS_REGULAR_EXPRESSION "kills: 1 seeds have another history\n0 of 1 histories")
endfunction()

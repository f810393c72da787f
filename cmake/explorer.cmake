# SPDX-License-Identifier: Apache-2.0
# explorer_test: the ballots of the swarm through every order of events within bounds (tests/explorer/explorer.h).
# mutation_check runs the same with planted bugs.
function(tw_add_explorer)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/explorer/*.cc)
  tw_add_test(explorer_test "${sources}" tw_swarm)
  target_include_directories(explorer_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)

  # The same of four peers: minutes, and up to 8 GB (make explorer-nightly).
  add_executable(explorer_nightly EXCLUDE_FROM_ALL ${sources})
  target_compile_definitions(explorer_nightly PRIVATE TW_EXPLORER_PEERS=4)
  target_include_directories(explorer_nightly PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  tw_link(explorer_nightly PRIVATE tw_swarm GTest::gmock_main)
  set_target_properties(explorer_nightly PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

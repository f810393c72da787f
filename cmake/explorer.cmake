# SPDX-License-Identifier: Apache-2.0
# explorer_test: the ballots of the swarm through every order of events within bounds (tests/explorer/explorer.h).
# mutation_check runs the same with planted bugs.
function(tw_add_explorer)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/explorer/*.cc)
  tw_add_test(explorer_test "${sources}" tw_swarm)
  target_include_directories(explorer_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endfunction()

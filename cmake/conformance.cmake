# SPDX-License-Identifier: Apache-2.0
# conformance_test: what every implementation of a door must do, over all worlds that have one (tests/conformance).
# The only program beside tw_cli's that links both worlds, which do not see each other.
function(tw_add_conformance)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/conformance/*.cc)
  tw_add_test(conformance_test "${sources}" tw_sim tw_host)
  target_include_directories(conformance_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endfunction()

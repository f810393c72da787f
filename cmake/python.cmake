# SPDX-License-Identifier: Apache-2.0
# build/python holds the package `tradewind` with libtradewind.so inside, for PYTHONPATH. Its tests are one ctest entry.
find_program(TW_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)  # Debian's, which has torch

function(tw_add_python)
  set(package ${PROJECT_BINARY_DIR}/python/tradewind)
  file(GLOB_RECURSE modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/tradewind/*)
  list(FILTER modules EXCLUDE REGEX "/__pycache__/")
  string(MD5 names "${modules}")
  # Only when something changed: a program may be importing it.
  add_custom_command(
    OUTPUT ${package}.stamp
    COMMAND ${CMAKE_COMMAND} -E true ${names}  # another command where a module is gone
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${package}
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/python/tradewind ${package}
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:tradewind> ${package}/
    COMMAND ${CMAKE_COMMAND} -E touch ${package}.stamp
    DEPENDS ${modules} tradewind
    VERBATIM)
  add_custom_target(python ALL DEPENDS ${package}.stamp)
  if(NOT TW_PYTHON)
    return()
  endif()
  add_test(NAME python_package
    COMMAND ${TW_PYTHON} -m pytest -q -m "not integrations and not gpu" tests/python
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(python_package PROPERTIES LABELS python TIMEOUT 2400 COST 1000
    ENVIRONMENT "TRADEWIND_LIBRARY=$<TARGET_FILE:tradewind>;TRADEWIND_PROGRAM=$<TARGET_FILE:tw>")
  add_test(NAME python_types COMMAND ${TW_PYTHON} -m mypy --config-file pyproject.toml
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(python_types PROPERTIES LABELS python TIMEOUT 300)
  # What tw up writes for Kubernetes and SkyPilot, by their own schemas.
  add_test(NAME launch_manifests COMMAND ${TW_PYTHON} -m pytest -q -p no:cacheprovider tests/launch
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(launch_manifests PROPERTIES LABELS python TIMEOUT 120
    ENVIRONMENT "TRADEWIND_PROGRAM=$<TARGET_FILE:tw>")
endfunction()

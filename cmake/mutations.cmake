# SPDX-License-Identifier: Apache-2.0
# mutation_check, a program that is built on demand only: tests/mutations linked with a copy of what a simulation runs, in
# which each bug of tests/mutations/mutations.txt can be switched on (tools/plant_bugs).
function(tw_add_mutation_check)
  set(list ${PROJECT_SOURCE_DIR}/tests/mutations/mutations.txt)
  tw_split_by_bugs(${list} folders libraries)
  set(copy ${PROJECT_BINARY_DIR}/planted)
  set(names "")
  foreach(folder IN LISTS folders)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
      ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc ${PROJECT_SOURCE_DIR}/src/${folder}/*.h)
    list(APPEND names ${files})
  endforeach()
  list(FILTER names EXCLUDE REGEX "_test\\.cc$|/test_[^/]*$")
  # Of monitor/, what a journal is made of: the rest is for people, and may need what is generated.
  set(journal ${names})
  list(FILTER names EXCLUDE REGEX "^monitor/")
  list(FILTER journal INCLUDE REGEX
    "^monitor/(fold/.*|board/board|logs/(event_log_json|event_log_tail|held_history|log_file|log_source)|report/(missing|report)|terminal/terminal_numbers)\\.(cc|h)$")
  list(APPEND names ${journal})
  set(originals ${names})
  list(TRANSFORM originals PREPEND ${PROJECT_SOURCE_DIR}/src/)
  set(copies ${names})
  list(TRANSFORM copies PREPEND ${copy}/)
  add_custom_command(
    OUTPUT ${copy}/planted.stamp
    BYPRODUCTS ${copies} ${copy}/bugs.inc
    COMMAND ${PROJECT_SOURCE_DIR}/tools/plant_bugs ${list} ${PROJECT_SOURCE_DIR}/src ${copy} ${names}
    COMMAND ${CMAKE_COMMAND} -E touch ${copy}/planted.stamp
    DEPENDS ${originals} ${list} ${PROJECT_SOURCE_DIR}/tools/plant_bugs
    COMMENT "Planting bugs in a copy of the sources")

  set(sources ${copies})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  tw_select_kernels(sources)
  tw_group_by_folder(${copy} "${sources}")
  file(GLOB own CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mutations/*.cc ${PROJECT_SOURCE_DIR}/tests/explorer/*.cc)
  list(FILTER own EXCLUDE REGEX "_test\\.cc$")
  tw_tests_of_bugs(${list} tests)
  tw_group_by_folder(${PROJECT_SOURCE_DIR}/src "${tests}")
  tw_group_by_folder(${PROJECT_SOURCE_DIR} "${own}")
  add_executable(mutation_check EXCLUDE_FROM_ALL ${own} ${tests} ${sources} ${copy}/planted.stamp)
  # A bug that leads beyond the end of something shows itself, and what it makes superfluous is no matter. -O1: make test
  # runs few seeds, and compiles all of it.
  target_compile_options(mutation_check PRIVATE -w -g0 -O1 -include ${PROJECT_SOURCE_DIR}/tests/mutations/planted.h)
  target_compile_definitions(mutation_check PRIVATE _GLIBCXX_ASSERTIONS TW_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_include_directories(mutation_check BEFORE PRIVATE ${copy} ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(mutation_check PRIVATE ${libraries} LibArchive::LibArchive PNG::PNG ${TURBOJPEG_LIBRARY} fmt::fmt ${XXHASH_LIBRARY} yaml-cpp nlohmann_json::nlohmann_json
    CLI11::CLI11 Threads::Threads GTest::gmock)
  set_target_properties(mutation_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    UNITY_BUILD_MODE GROUP)

  # The bugs of the sample are found within a few seeds. The other entry sees that a bug that is not found is told.
  add_test(NAME mutation_sample COMMAND mutation_check --clean-seeds 10
    --sample ${PROJECT_SOURCE_DIR}/tests/mutations/sample.txt)
  add_test(NAME mutation_explorer COMMAND mutation_check --scenario explorer
    --sample ${PROJECT_SOURCE_DIR}/tests/mutations/explored.txt)
  add_test(NAME mutation_sample_can_fail COMMAND mutation_check --only update-twice --seeds 0 --clean-seeds 0)
  set_tests_properties(mutation_sample mutation_explorer mutation_sample_can_fail PROPERTIES LABELS mutations TIMEOUT 1200)
  # Two processes each (--jobs).
  set_tests_properties(mutation_sample mutation_explorer PROPERTIES PROCESSORS 2)
  set_tests_properties(mutation_sample_can_fail PROPERTIES WILL_FAIL ON)
endfunction()

# Of the folders that a simulation runs: those that have a bug or may include one that has, and libraries of the others.
function(tw_split_by_bugs list copied libraries)
  file(STRINGS ${list} bugs REGEX "^  in ")
  list(TRANSFORM bugs REPLACE "^  in ([a-z]+)/.*" "\\1")
  set(with "")
  set(without "")
  foreach(folder IN LISTS LAYER_sim ITEMS sim)
    set(clean TRUE)
    foreach(reached IN LISTS LAYER_${folder} ITEMS ${folder})
      if(reached IN_LIST bugs)
        set(clean FALSE)
      endif()
    endforeach()
    if(clean)
      list(APPEND without tw_${folder})
    else()
      list(APPEND with ${folder})
    endif()
  endforeach()
  set(${copied} ${with} PARENT_SCOPE)
  set(${libraries} ${without} PARENT_SCOPE)
endfunction()

# The files of tests that the list names (@unit FILE TEST): compiled with the planted copy.
function(tw_tests_of_bugs list out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} lines REGEX "^[^ ]+ @unit ")
  list(TRANSFORM lines REPLACE "^[^ ]+ @unit ([^ ]+) .*" "${PROJECT_SOURCE_DIR}/src/\\1")
  list(REMOVE_DUPLICATES lines)
  set(${out} ${lines} PARENT_SCOPE)
endfunction()

# The files lie in one target, but names in anonymous namespaces are unique in a folder (below BASE) only, among tests and
# among other files. Nobody waits for one of them, so twice as many as elsewhere are compiled at once.
function(tw_group_by_folder base sources)
  math(EXPR most "2 * ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${base} ${folder})
    string(REPLACE "/" "_" folder ${folder})
    if(source MATCHES "_test\\.cc$")
      string(APPEND folder _test)
    endif()
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR batch "${count_${folder}} / ${most}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
endfunction()

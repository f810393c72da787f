# SPDX-License-Identifier: Apache-2.0
# What `cmake --install build` and `make package` put on a machine: tw, libtradewind.so with its header, the Python package,
# completions for bash and zsh, the pages, the examples. The catalog is part of the program.
include(GNUInstallDirs)

function(tw_add_package)
  set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON PARENT_SCOPE)  # the tests are no part of it
  set(completions ${PROJECT_BINARY_DIR}/completions)
  file(MAKE_DIRECTORY ${completions})
  foreach(shell bash zsh)
    add_custom_command(OUTPUT ${completions}/${shell}
      COMMAND $<TARGET_FILE:tw> completion ${shell} > ${completions}/${shell}
      DEPENDS tw VERBATIM)
  endforeach()
  add_custom_target(completions ALL DEPENDS ${completions}/bash ${completions}/zsh)

  install(TARGETS tw RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${completions}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tw)
  install(FILES ${completions}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _tw)
  install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
  install(DIRECTORY bench/results/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench/results)
  install(DIRECTORY share/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tradewind)
  install(DIRECTORY web/vendor/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/vendor FILES_MATCHING PATTERN LICENSE)
  install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples PATTERN __pycache__ EXCLUDE)
endfunction()

# Debian's python3 looks for packages here, when the prefix is /usr.
set(TW_PYTHON_DESTINATION lib/python3/dist-packages/tradewind)

# The library, for programs in C too; the Python package has a link to it.
function(tw_package_library)
  file(RELATIVE_PATH library /${TW_PYTHON_DESTINATION} /${CMAKE_INSTALL_LIBDIR}/libtradewind.so)
  set(beside ${PROJECT_BINARY_DIR}/installed/libtradewind.so)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/installed)
  file(CREATE_LINK ${library} ${beside} SYMBOLIC)
  install(TARGETS tradewind LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  foreach(header tradewind.h tradewind_data.h tradewind_checkpoint.h)
    install(FILES ${PROJECT_SOURCE_DIR}/src/bind/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endforeach()
  install(DIRECTORY python/tradewind/ DESTINATION ${TW_PYTHON_DESTINATION} PATTERN __pycache__ EXCLUDE)
  install(FILES ${beside} DESTINATION ${TW_PYTHON_DESTINATION})
endfunction()

set(CPACK_PACKAGE_NAME tradewind)
set(CPACK_PACKAGE_CONTACT "the tradewind maintainers <maintainers@tradewind.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-torch")  # for the Python package; several hundred MB
include(CPack)

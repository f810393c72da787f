# SPDX-License-Identifier: Apache-2.0
# How every file of the project is compiled and linked.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# libtradewind.so is made of the same libraries as the program.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Includes read "folder/file.h" everywhere.
include_directories(${PROJECT_SOURCE_DIR}/src)

# Peers must compute bit-identical values, so the compiler may not fuse a multiplication and an addition on some of them.
add_compile_options(-ffp-contract=off)

add_compile_options(-Wall -Wextra -Wshadow "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Woverloaded-virtual;-Wextra-semi>")
# Developers and CI see no warning grow old. A build whose warnings are news, with another compiler or with CMake's own
# flags of a release (GCC 12 has false ones at -O3), is not to fail: those are the builds of users.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" upper_type)
  if(DEFINED ENV{CI} OR (NOT CMAKE_CXX_FLAGS_${upper_type} MATCHES "-O3" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
                         AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\."))
    set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
  endif()
endif()
# Options are structs written with designated initialisers, where a missing field means its default.
add_compile_options(-Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 is wrong about `"text" + string` at -O2 (GCC bug 105651).
  add_compile_options(-Wno-restrict)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    # Instrumented code confuses it about initialisation too; the build without sanitizers still asks.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# Files of a folder are compiled eight at a time, for most of the time goes into headers: a cold build takes a seventh of the
# CPU time. So a name in an anonymous namespace is used once in a folder. -DCMAKE_UNITY_BUILD=OFF compiles file by file.
option(CMAKE_UNITY_BUILD "compile several files at once" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8 CACHE STRING "files of a folder that are compiled at once")
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC takes a source that another one includes for a header, whose types should not hang on an anonymous namespace.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>")
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths count from the sources, so that another clone finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

find_program(MOLD mold)
find_program(LLD ld.lld)
if(MOLD)
  add_link_options(-fuse-ld=mold)
elseif(LLD)
  add_link_options(-fuse-ld=lld)
endif()
# A program loads only the shared libraries that it calls.
add_link_options(-Wl,--as-needed)

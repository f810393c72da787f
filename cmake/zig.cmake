# SPDX-License-Identifier: Apache-2.0
# Toolchain file of the wheel: compiler and static libraries of TW_WHEEL_LIBRARIES, the folder that
# tools/wheel/libraries.sh printed.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TW_WHEEL_LIBRARIES)
get_filename_component(machine ${TW_WHEEL_LIBRARIES} NAME)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${machine})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # linking the C++ library takes zig a minute
set(CMAKE_C_COMPILER ${TW_WHEEL_LIBRARIES}/bin/cc)
set(CMAKE_CXX_COMPILER ${TW_WHEEL_LIBRARIES}/bin/c++)
set(CMAKE_AR ${TW_WHEEL_LIBRARIES}/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${TW_WHEEL_LIBRARIES}/bin/ranlib CACHE FILEPATH "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON)  # its version is pinned
set(MOLD "" CACHE FILEPATH "zig brings a linker of its own")
set(LLD "" CACHE FILEPATH "the same")
# A path of this machine in a program would make it another one elsewhere.
set(CMAKE_CXX_FLAGS_INIT "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,-s")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-s")

set(CMAKE_FIND_ROOT_PATH ${TW_WHEEL_LIBRARIES})
set(CMAKE_PREFIX_PATH ${TW_WHEEL_LIBRARIES})
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(OPENSSL_USE_STATIC_LIBS ON)
set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)  # its compiler would name the system's, which do not link

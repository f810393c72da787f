# SPDX-License-Identifier: Apache-2.0
# The libraries that packages.txt brings. Only tw_add_folder() says which of ours sees which.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(LibArchive REQUIRED)
find_package(PNG REQUIRED)
find_package(GTest CONFIG REQUIRED)

# Debian 12 ships these without a CMake package.
find_library(XXHASH_LIBRARY xxhash REQUIRED)
find_library(TURBOJPEG_LIBRARY turbojpeg REQUIRED)
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
find_path(RESTINIO_INCLUDE_DIR restinio/all.hpp REQUIRED)
find_library(HTTP_PARSER_LIBRARY http_parser REQUIRED)  # of RESTinio

# With what asio calls deprecated: RESTinio uses some of it, and all files must see the same asio.
add_library(tw_asio INTERFACE)
target_include_directories(tw_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
# asio finds aligned allocation only where a header of the standard library came first, and memory that one file
# allocates another one frees.
target_compile_definitions(tw_asio INTERFACE ASIO_STANDALONE ASIO_HAS_STD_ALIGNED_ALLOC=1)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_definitions(tw_asio INTERFACE ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
endif()
target_link_libraries(tw_asio INTERFACE Threads::Threads)

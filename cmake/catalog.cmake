# SPDX-License-Identifier: Apache-2.0
# The dated tables of catalog/ become part of the program, so that it needs no path to find them.

# Sets VARIABLE to a generated source with the files' contents, for src/market/built_in.h.
function(tw_embed_catalog variable)
  file(GLOB tables CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/catalog/*.csv)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tables})
  set(entries "")
  foreach(table IN LISTS tables)
    get_filename_component(name ${table} NAME)
    file(READ ${table} text)
    string(APPEND entries "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
  endforeach()
  list(LENGTH tables count)
  set(output ${PROJECT_BINARY_DIR}/catalog.cc)
  file(CONFIGURE OUTPUT ${output} CONTENT "// Made by cmake/catalog.cmake from catalog/*.csv.
#include \"market/built_in.h\"

namespace tw::market {
namespace {

constexpr BuiltInFile kFiles[] = {
@entries@};

}  // namespace

std::span<const BuiltInFile> built_in_files() { return kFiles; }

}  // namespace tw::market
" @ONLY)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()

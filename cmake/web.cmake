# SPDX-License-Identifier: Apache-2.0
# The page of web/ becomes part of the program as one HTML text, without Node and without network.
#
# An ES module NAME.js becomes a function whose result is its exports: `const page_NAME = (() => {...})();`. Its imports
# are `import { a, b } from "./other.js";` on one line, its exports `export const|let|class|[async ]function`. A
# module stands behind those that it imports. The policy of the page (CSP) holds the digest of each script and style.

# Sets VARIABLE to the base64 form of a digest in hex.
function(tw_base64_of hex variable)
  set(letters "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(LENGTH "${hex}" length)
  set(result "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${hex}00000" ${at} 6 part)  # three bytes are four letters
    math(EXPR value "0x${part}")
    foreach(shift 18 12 6 0)
      math(EXPR index "(${value} >> ${shift}) & 63")
      string(SUBSTRING "${letters}" ${index} 1 letter)
      string(APPEND result ${letter})
    endforeach()
    math(EXPR at "${at} + 6")
  endwhile()
  math(EXPR rest "(${length} / 2) % 3")
  string(LENGTH "${result}" letters_there)
  if(rest EQUAL 1)
    math(EXPR letters_there "${letters_there} - 2")
    string(SUBSTRING "${result}" 0 ${letters_there} result)
    string(APPEND result "==")
  elseif(rest EQUAL 2)
    math(EXPR letters_there "${letters_there} - 1")
    string(SUBSTRING "${result}" 0 ${letters_there} result)
    string(APPEND result "=")
  endif()
  set(${variable} "${result}" PARENT_SCOPE)
endfunction()

# Appends the module and those it imports to tw_web_script, each once.
function(tw_add_web_module name)
  get_property(done GLOBAL PROPERTY tw_web_done)
  if(name IN_LIST done)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY tw_web_done ${name})
  file(READ ${PROJECT_SOURCE_DIR}/web/${name}.js text)
  set(text "\n${text}")
  string(REGEX MATCHALL "\nimport {[^}]*} from \"\\./[a-z_]+\\.js\"" imports "${text}")
  foreach(import IN LISTS imports)
    string(REGEX REPLACE ".*\"\\./([a-z_]+)\\.js\"" "\\1" other "${import}")
    tw_add_web_module(${other})
  endforeach()
  string(REGEX REPLACE "\nimport ({[^}]*}) from \"\\./([a-z_]+)\\.js\"" "\nconst \\1 = page_\\2" text "${text}")
  string(REGEX MATCHALL "\nexport (const|let|class|function|async function) [A-Za-z0-9_]+" exports "${text}")
  string(REGEX REPLACE "\nexport (const|let|class|function|async function) " ", " exports "${exports}")
  string(REPLACE ";" "" exports "${exports}")
  string(REGEX REPLACE "^, " "" exports "${exports}")
  string(REGEX REPLACE "\nexport (const|let|class|function|async function) " "\n\\1 " text "${text}")
  if(text MATCHES "\n(import|export) ([^\n]*)")
    message(FATAL_ERROR "web/${name}.js: `${CMAKE_MATCH_1} ${CMAKE_MATCH_2}` is not a form that cmake/web.cmake joins")
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY tw_web_script
    "const page_${name} = (() => {${text}return { ${exports} };\n})();\n")
endfunction()

# Sets VARIABLE to a generated source with the page, for src/monitor/web/web_page.cc.
function(tw_embed_page variable)
  set(web ${PROJECT_SOURCE_DIR}/web)
  file(GLOB parts CONFIGURE_DEPENDS ${web}/*.js ${web}/*.css ${web}/*.html ${web}/vendor/*/*)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${parts})
  set_property(GLOBAL PROPERTY tw_web_script "\"use strict\";\n")
  set_property(GLOBAL PROPERTY tw_web_done "")
  tw_add_web_module(app)
  get_property(app GLOBAL PROPERTY tw_web_script)
  file(READ ${web}/vendor/uplot/uPlot.iife.min.js uplot)
  file(READ ${web}/vendor/topojson-client/topojson-client.min.js topojson)
  file(READ ${web}/vendor/uplot/uPlot.min.css uplot_style)
  set(style "${uplot_style}\n")
  foreach(name base plan run)
    file(READ ${web}/${name}.css text)
    string(APPEND style "${text}")
  endforeach()
  set(hashes "")
  set(scripts "")
  foreach(script uplot topojson app)
    string(SHA256 digest "${${script}}")
    tw_base64_of(${digest} digest)
    string(APPEND hashes " 'sha256-${digest}'")
    string(APPEND scripts "<script>${${script}}</script>\n")
  endforeach()
  string(SHA256 digest "${style}")
  tw_base64_of(${digest} style_hash)
  set(policy "default-src 'none'; script-src${hashes}; style-src 'sha256-${style_hash}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'")

  file(READ ${web}/index.html page)
  file(READ ${web}/vendor/world-atlas/land-110m.json land)
  foreach(part policy style land scripts)
    string(REPLACE "@${part}@" "${${part}}" page "${page}")
  endforeach()
  # Three pieces, between which title and data go.
  string(REPLACE "@title@" ")page\",\nR\"page(" page "${page}")
  string(REPLACE "@data@" ")page\",\nR\"page(" page "${page}")
  set(output ${PROJECT_BINARY_DIR}/web_page_text.cc)
  file(CONFIGURE OUTPUT ${output} CONTENT "// Made by cmake/web.cmake from web/.
#include \"monitor/web/web_page_text.h\"

namespace tw::monitor {

const std::array<std::string_view, 3> kPagePieces{R\"page(@page@)page\"};

const std::string_view kPagePolicy = \"@policy@\";

}  // namespace tw::monitor
" @ONLY)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()

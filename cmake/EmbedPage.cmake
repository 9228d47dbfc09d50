# SPDX-License-Identifier: Apache-2.0
# Run at build time: writes OUTPUT, a C++ file with the files of FOLDER as bytes. See src/web/page_files.h.
set(types html "text/html" css "text/css" js "text/javascript" svg "image/svg+xml")
file(GLOB files ${FOLDER}/*)
list(SORT files)
set(arrays "")
set(rows "")
set(number 0)
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  list(FIND types ${extension} place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${file}: of files that end with .${extension} it is not known what they are")
  endif()
  math(EXPR place "${place} + 1")
  list(GET types ${place} type)
  set(path /${name})
  if(name STREQUAL page.html)
    set(path /)
  endif()
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char kBytes${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${path}\", \"${type}; charset=utf-8\", {kBytes${number}, sizeof(kBytes${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Made from the files of src/web/page.
#include <array>

#include \"web/page_files.h\"

namespace braid {
namespace {
${arrays}constexpr std::array<PageFile, ${number}> kPageFiles = {{
${rows}}};
}  // namespace

std::span<const PageFile> page_files() { return kPageFiles; }

}  // namespace braid
")

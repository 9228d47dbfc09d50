# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers, and where binaries go.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Line tables are what profiles and backtraces need; full debugging information is what the debug preset is for.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
# Sanitized builds are for the tests alone: half the time to compile.
# All presets but debug join sources to few large ones (CMAKE_UNITY_BUILD), so two files of a target cannot give the
# same name to different things, not even in anonymous namespaces; SKIP_UNITY_BUILD_INCLUSION keeps a file by itself.
# The preset debug keeps includes honest.
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")

# Objects name no folder of the checkout, so what one checkout has compiled serves the next one, and packages too.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -fno-omit-frame-pointer)
if(BRAID_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_UNITY_BUILD)
  # Found where joined sources, or sanitizers, only make it look so; the preset debug looks for them.
  add_compile_options(-Wno-maybe-uninitialized)
endif()
if(BRAID_SANITIZE)
  add_compile_options(-fsanitize=${BRAID_SANITIZE} -fno-sanitize-recover=all)
  # Costly to compile, and what they would find crashes or is found by the address sanitizer.
  add_compile_options(-fno-sanitize=vptr,null,object-size,pointer-overflow)
  add_link_options(-fsanitize=${BRAID_SANITIZE})
endif()

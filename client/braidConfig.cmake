# SPDX-License-Identifier: Apache-2.0
# find_package(braid) gives the target braid::braid. Library and header are looked for from where this file lies,
# LIBDIR/cmake/braid, so that the installed tree may be moved, and LIBDIR be lib or lib/<architecture>.
get_filename_component(_braid_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
find_file(_braid_library libbraid.so.0 PATHS "${_braid_libdir}" NO_DEFAULT_PATH NO_CACHE)
find_path(_braid_include braid.h PATHS "${_braid_libdir}/../include" "${_braid_libdir}/../../include"
  NO_DEFAULT_PATH NO_CACHE)
if(NOT _braid_library OR NOT _braid_include)
  set(braid_FOUND FALSE)
  set(braid_NOT_FOUND_MESSAGE "libbraid.so.0 is not in ${_braid_libdir}, or braid.h not in include beside it")
elseif(NOT TARGET braid::braid)
  add_library(braid::braid SHARED IMPORTED)
  set_target_properties(braid::braid PROPERTIES
    IMPORTED_LOCATION "${_braid_library}"
    IMPORTED_SONAME libbraid.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_braid_include}")
endif()
unset(_braid_libdir)
unset(_braid_library)
unset(_braid_include)

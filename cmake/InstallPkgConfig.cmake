# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install`, whose prefix may be another one than at configure time. Folders that were configured with
# a leading / stand for themselves.
foreach(folder braid_libdir braid_includedir)
  string(REGEX REPLACE "^${CMAKE_INSTALL_PREFIX}/" "" ${folder} "${${folder}}")
endforeach()
set(file ${CMAKE_INSTALL_PREFIX}/${braid_libdir}/pkgconfig/braid.pc)
message(STATUS "Installing: $ENV{DESTDIR}${file}")
configure_file(${braid_source}/client/braid.pc.in "$ENV{DESTDIR}${file}" @ONLY)

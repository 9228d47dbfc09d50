# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install`, whose prefix may be another one than at configure time: the unit names the installed
# braidd, and the configuration goes to where that one looks for it.

set(unit ${CMAKE_INSTALL_PREFIX}/lib/systemd/system/braidd.service)
message(STATUS "Installing: $ENV{DESTDIR}${unit}")
file(READ ${braid_source}/systemd/braidd.service text)
string(REPLACE "/usr/bin/braidd" "${CMAKE_INSTALL_PREFIX}/${braid_bindir}/braidd" text "${text}")
file(WRITE "$ENV{DESTDIR}${unit}" "${text}")

# braidd reads /etc/braid/braidd.yaml; in another tree than the system's the file is there to be given by --config.
if(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
  set(configuration /etc/braid)
else()
  set(configuration ${CMAKE_INSTALL_PREFIX}/etc/braid)
endif()
if(EXISTS "$ENV{DESTDIR}${configuration}/braidd.yaml")
  message(STATUS "Kept as it is: $ENV{DESTDIR}${configuration}/braidd.yaml")
else()
  file(INSTALL ${braid_source}/packaging/braidd.yaml DESTINATION ${configuration})
endif()

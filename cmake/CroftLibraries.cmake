# Which versions of others' code a program is built with, for its --version: `croft_libraries(FILE PACKAGE...)` defines
# CROFT_LIBRARIES in one source file as "openssl 3.0.17-1, …": Debian's source packages behind the -dev packages, in their
# order. Installing another version configures anew. scripts/sbom finds the same by looking at what was linked, and the
# test of it compares.
find_program(CROFT_DPKG_QUERY dpkg-query)
if(EXISTS /var/lib/dpkg/status)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS /var/lib/dpkg/status)
endif()

function(croft_libraries file)
  set(architecture "")
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64" AND CMAKE_CROSSCOMPILING)
    set(architecture ":arm64")
  endif()
  set(found "")
  foreach(package ${ARGN})
    set(text "")
    foreach(name ${package}${architecture} ${package})
      if(CROFT_DPKG_QUERY AND NOT text)
        execute_process(COMMAND ${CROFT_DPKG_QUERY} -W -f "\${source:Package} \${source:Version}\n" ${name}
          OUTPUT_VARIABLE text ERROR_QUIET)
        string(REGEX REPLACE "\n.*" "" text "${text}")
      endif()
    endforeach()
    if(NOT text)
      set(text "${package} unknown")
    endif()
    list(APPEND found "${text}")
  endforeach()
  list(REMOVE_DUPLICATES found)
  list(JOIN found ", " text)
  set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS "CROFT_LIBRARIES=\"${text}\"")
endfunction()

# cmake --install: the programs, and what people and shells read of croft and croftd. Components: plugin, programs,
# documentation. croft-ipam and its sibling go where container runtimes look for it, whatever the prefix; under their own names only, as
# calico-ipam may be somebody else's. So may host-local: it lies apart, for `croftd install` and for people.
include(GNUInstallDirs)
set(CROFT_CNI_BIN_DIR /opt/cni/bin CACHE PATH "where the container runtime looks for CNI plugins")
install(TARGETS croft-ipam croft-ipam-cluster RUNTIME DESTINATION ${CROFT_CNI_BIN_DIR} COMPONENT plugin)
install(TARGETS host-local RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/croft COMPONENT plugin)
install(TARGETS croft croftd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
# The names of UK8S' programs that they answer to: links, as they are.
install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/cnivpctl ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/cni-vpc-ipamd
        DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
# Pages and completions come out of the programs: where those cannot run, of the same programs of another build.
set(CROFT_NATIVE_PROGRAMS "" CACHE PATH "where croft and croftd are that this machine can run, for a cross build's pages")
if(NOT CMAKE_CROSSCOMPILING OR CROFT_NATIVE_PROGRAMS)
  if(CMAKE_CROSSCOMPILING)
    set(croft_program ${CROFT_NATIVE_PROGRAMS}/croft)
    set(croftd_program ${CROFT_NATIVE_PROGRAMS}/croftd)
  else()
    set(croft_program $<TARGET_FILE:croft>)
    set(croftd_program $<TARGET_FILE:croftd>)
  endif()
  install(CODE "
    set(croft_program \"${croft_program}\")
    set(croftd_program \"${croftd_program}\")
    set(pages \"${CMAKE_BINARY_DIR}/made/pages\")
    set(man_directory \"${CMAKE_INSTALL_MANDIR}\")
    set(data_directory \"${CMAKE_INSTALL_DATADIR}\")"
    COMPONENT documentation)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_pages.cmake COMPONENT documentation)
endif()

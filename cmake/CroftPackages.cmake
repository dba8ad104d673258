# cpack, after a build (scripts/package calls it): Debian packages `croft` (programs, pages, completions, units) and `croft-cni`
# (the plugins), and a tarball of all of it. Two packages of one commit have the same bytes where SOURCE_DATE_EPOCH is set.
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/croftd-agent.service ${CMAKE_SOURCE_DIR}/deploy/systemd/croftd-controller.service
  DESTINATION /lib/systemd/system COMPONENT units)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/croft RENAME copyright COMPONENT units)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/croft-cni RENAME copyright COMPONENT plugin_terms EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME croft)
set(CPACK_PACKAGE_VENDOR "Croft")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/deploy/project.env)
foreach(name CROFT_PEOPLE CROFT_MAIL CROFT_HOME)
  file(STRINGS ${CMAKE_SOURCE_DIR}/deploy/project.env ${name} REGEX "^${name}=")
  string(REGEX REPLACE "^${name}=\"(.*)\"$" "\\1" ${name} "${${name}}")
endforeach()
set(CPACK_PACKAGE_CONTACT "${CROFT_PEOPLE} <${CROFT_MAIL}>")
set(CPACK_PACKAGE_HOMEPAGE_URL ${CROFT_HOME})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "IP address management for Kubernetes and CNI")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
# Units and pages go with the programs; each group is a package.
set(CPACK_COMPONENTS_ALL programs documentation units plugin plugin_terms)
if(CMAKE_CROSSCOMPILING AND NOT CROFT_NATIVE_PROGRAMS)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL documentation)
endif()
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENT_PROGRAMS_GROUP croft)
set(CPACK_COMPONENT_DOCUMENTATION_GROUP croft)
set(CPACK_COMPONENT_UNITS_GROUP croft)
set(CPACK_COMPONENT_PLUGIN_GROUP croft-cni)
set(CPACK_COMPONENT_PLUGIN_TERMS_GROUP croft-cni)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_CROFT_PACKAGE_NAME croft)
set(CPACK_DEBIAN_CROFT_PACKAGE_RECOMMENDS croft-cni)
set(CPACK_DEBIAN_CROFT-CNI_PACKAGE_NAME croft-cni)
set(CPACK_COMPONENT_CROFT_DESCRIPTION
  "IP address management for Kubernetes and CNI: croft and croftd\n The operator's command line, the daemons of nodes and clusters, their units\n (not enabled), manual pages and completions.")
set(CPACK_COMPONENT_CROFT-CNI_DESCRIPTION
  "IP address management for Kubernetes and CNI: the plugins\n croft-ipam and croft-ipam-cluster where container runtimes look for plugins; host-local, which may be\n somebody else's there, in /usr/libexec/croft. Static files.")
# What a package with units owes systemd: that it is told, and that nothing runs on of programs that are gone.
set(CPACK_DEBIAN_CROFT_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/deploy/debian/postinst ${CMAKE_SOURCE_DIR}/deploy/debian/prerm
  ${CMAKE_SOURCE_DIR}/deploy/debian/postrm)
# What the programs are linked with, as dpkg-shlibdeps sees it; the plugin is linked with nothing.
set(CPACK_DEBIAN_CROFT_PACKAGE_SHLIBDEPS ON)
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
include(CPack)

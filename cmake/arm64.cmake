# Cross build for arm64 with Debian's cross compiler; libraries are Debian's own arm64 packages (scripts/setup --arm64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

# The arm64 package with which programs are linked to Prometheus can't stand beside that of this machine; the library
# itself can. What that package would add is a name without a version; headers are the same everywhere.
set(croft_arm64_libraries "${CMAKE_BINARY_DIR}/arm64-libraries")
file(GLOB croft_versions "/usr/lib/aarch64-linux-gnu/libprometheus-cpp-core.so.*")
if(croft_versions)
  list(GET croft_versions 0 croft_version)
  file(MAKE_DIRECTORY "${croft_arm64_libraries}")
  file(CREATE_LINK "${croft_version}" "${croft_arm64_libraries}/libprometheus-cpp-core.so" SYMBOLIC)
endif()
list(APPEND CMAKE_LIBRARY_PATH "${croft_arm64_libraries}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${croft_arm64_libraries}")

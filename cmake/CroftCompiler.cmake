# One language level, one set of warnings, the same hardening everywhere.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CROFT_CCACHE ccache)
if(CROFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # By the compiler's own list of headers: no file goes through the preprocessor twice. A precompiled header's defines are compared as its bytes.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CROFT_CCACHE})
endif()

add_library(croft_flags INTERFACE)
target_compile_options(croft_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wcast-align -Wformat=2 -Werror
  -fstack-protector-strong -fdata-sections -ffunction-sections
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in every `"text" + std::string` (GCC bug 105651, fixed in 13).
  target_compile_options(croft_flags INTERFACE -Wno-restrict)
endif()
if(CROFT_TOGETHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A class with private parts of its own file is what g++ takes for one of a header when files are put together.
  target_compile_options(croft_flags INTERFACE -Wno-subobject-linkage)
  # Files put together make garbage of which little can be freed: g++ looks for it from half a gigabyte on, and not from an eighth.
  target_compile_options(croft_flags INTERFACE "SHELL:--param ggc-min-heapsize=524288")
endif()
target_include_directories(croft_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(CROFT_PLANTED_BUGS)
  target_compile_definitions(croft_flags INTERFACE CROFT_PLANTED_BUGS)
endif()
target_compile_definitions(croft_flags INTERFACE CROFT_VERSION="${PROJECT_VERSION}")
target_link_libraries(croft_flags INTERFACE croft_formatting)
target_link_options(croft_flags INTERFACE -Wl,--gc-sections)
# Assertions of the C++ library stay on, also in release builds.
target_compile_definitions(croft_flags INTERFACE _GLIBCXX_ASSERTIONS)
# What a release has besides; scripts/check-elf reads the programs for it. The code that protoc makes has it too.
include(CheckCXXCompilerFlag)
set(CROFT_HARDENING "")
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CROFT_SANITIZE)
  set(CROFT_HARDENING -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fPIE -fstack-protector-strong)
  foreach(flag -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "CROFT_HAS${flag}" has)
    check_cxx_compiler_flag(${flag} ${has})
    if(${has})
      list(APPEND CROFT_HARDENING ${flag})
    endif()
  endforeach()
  target_compile_options(croft_flags INTERFACE ${CROFT_HARDENING})
  target_link_options(croft_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code)
endif()
if(CROFT_SANITIZE)
  target_compile_options(croft_flags INTERFACE -fsanitize=${CROFT_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(croft_flags INTERFACE -fsanitize=${CROFT_SANITIZE})
endif()

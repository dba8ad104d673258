# Headers of others that nearly every file reads, parsed once for code that is made fast, once for code that is made small, once for tests.
# None of Croft's is among them: a change compiles only what reads it.
# With CROFT_TOGETHER, as both are for a build from nothing.
set(CROFT_COMMON_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <cstring> <deque> <filesystem> <fstream>
  <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map> <utility> <variant>
  <vector> <fmt/format.h>)

# croft_precompiled(TARGET KIND): KIND is `product`, `small` or `tests`.
function(croft_precompiled target kind)
  if(CROFT_TOGETHER)
    target_precompile_headers(${target} REUSE_FROM croft_precompiled_${kind})
  endif()
endfunction()

# croft_precompiled_kind(KIND [OPTIONS ...] [HEADERS ...] [DEPS ...])
function(croft_precompiled_kind kind)
  if(NOT CROFT_TOGETHER)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS;DEPS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/${kind}.cc CONTENT "// Nothing but its headers.\n")
  add_library(croft_precompiled_${kind} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${kind}.cc)
  target_link_libraries(croft_precompiled_${kind} PRIVATE croft_flags ${ARG_DEPS})
  target_compile_options(croft_precompiled_${kind} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(croft_precompiled_${kind} PRIVATE ${CROFT_COMMON_HEADERS} ${ARG_HEADERS})
endfunction()

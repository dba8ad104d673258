# croft_library(NAME [SMALL] SOURCES... [DEPS ...]): one static library. SMALL: code that runs once a call, for
# which a small plugin is worth more than speed.
function(croft_library name)
  cmake_parse_arguments(ARG "SMALL" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC croft_flags ${ARG_DEPS})
    if(ARG_SMALL)
      target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Os>)
      croft_precompiled(${name} small)
    else()
      croft_precompiled(${name} product)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE croft_flags ${ARG_DEPS})
  endif()
endfunction()

# croft_static_twin(PROGRAM "SOURCES" "PARTS"): the target PROGRAM-static, not made by default: the same program as one file
# that needs nothing of its machine, in static-programs. Debian has no static archive of prometheus-cpp:
# scripts/static-libraries makes it in CROFT_STATIC_LIBRARIES. The linker warns of the modules of nsswitch.conf, which
# os/look_up.cc keeps glibc's resolver from loading.
set(CROFT_STATIC_LIBRARIES ${CMAKE_BINARY_DIR}/static-libraries CACHE PATH "where scripts/static-libraries has made its archive")
function(croft_static_twin program sources parts)
  add_executable(${program}-static EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${program}-static PRIVATE ${parts})
  target_link_options(${program}-static PRIVATE -static-pie -L${CROFT_STATIC_LIBRARIES} $<$<CONFIG:Release>:-s>)
  set_target_properties(${program}-static PROPERTIES OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static-programs)
endfunction()

# croft_apart(file.cc...): compiled alone also with CROFT_TOGETHER. For dialects of one format, in which the same private
# name means the same thing of another, and where what is inlined must not hang on the file's neighbours.
function(croft_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# croft_test(NAME SOURCES... [DEPS ...] [LABELS ...] [TIMEOUT s]): one gtest program, one ctest entry; with BY_OTHERS
# none, since an end-to-end test runs it.
# Tests that only `./test --full` runs carry the label `full`.
function(croft_test name)
  if(NOT CROFT_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "BY_OTHERS" "TIMEOUT" "SOURCES;DEPS;LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(CROFT_SANITIZE)
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE croft_flags ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  # A third less to compile; what they test is optimised.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  croft_precompiled(${name} tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_BY_OTHERS)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if(CROFT_SANITIZE STREQUAL "thread")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
  endif()
endfunction()

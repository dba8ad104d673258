# The commit of the tree, for --version. As a module: a target that looks at each build and writes made/commit.cc
# (src/cli/build_commit.h) when it is another one, so that no other file is compiled anew. As a script (cmake -P): does that.
# A tree that is not git's own has no name, and neither has one that git does not want to read; -DCROFT_COMMIT=NAME
# says what to tell then.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(CROFT_COMMIT "" CACHE STRING "the commit to name in --version where git can't tell it")
  find_program(CROFT_GIT git)
  add_custom_target(croft_commit_name
    COMMAND ${CMAKE_COMMAND} -DGIT=${CROFT_GIT} -DSOURCE=${CMAKE_SOURCE_DIR} -DGIVEN=${CROFT_COMMIT}
      -DMADE=${CMAKE_BINARY_DIR}/made/commit.cc -P ${CMAKE_CURRENT_LIST_FILE}
    BYPRODUCTS ${CMAKE_BINARY_DIR}/made/commit.cc VERBATIM)
  return()
endif()

set(name "${GIVEN}")
set(ENV{GIT_OPTIONAL_LOCKS} 0)  # stand in nobody's way who works with git meanwhile
if(NOT name AND GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${SOURCE}" source)
  if(top STREQUAL source)
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --abbrev=12 --exclude=* --dirty=+changes
      OUTPUT_VARIABLE name OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(name)
  set(name " (commit ${name})")
endif()
string(CONCAT text "#include \"cli/build_commit.h\"\n\nnamespace croft::app {\n\n"
  "std::string commit_text() { return \"${name}\"; }\n\n}  // namespace croft::app\n")
set(before "")
if(EXISTS ${MADE})
  file(READ ${MADE} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${MADE} "${text}")
endif()

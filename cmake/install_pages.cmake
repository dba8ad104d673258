# Runs at installation: lets the programs write their manual pages and completions, and installs those.
file(REMOVE_RECURSE ${pages})
file(MAKE_DIRECTORY ${pages})

# install_pages(NAME PROGRAM SECTION)
function(install_pages name program section)
  execute_process(COMMAND ${program} man ${pages}/man${section} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  foreach(shell bash zsh fish)
    execute_process(COMMAND ${program} completion ${shell} OUTPUT_FILE ${pages}/${name}.${shell} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  set(share ${CMAKE_INSTALL_PREFIX}/${data_directory})
  file(INSTALL ${pages}/man${section} DESTINATION ${CMAKE_INSTALL_PREFIX}/${man_directory})
  file(INSTALL ${pages}/${name}.bash DESTINATION ${share}/bash-completion/completions RENAME ${name})
  file(INSTALL ${pages}/${name}.zsh DESTINATION ${share}/zsh/site-functions RENAME _${name})
  file(INSTALL ${pages}/${name}.fish DESTINATION ${share}/fish/vendor_completions.d)
endfunction()

install_pages(croft ${croft_program} 1)
install_pages(croftd ${croftd_program} 8)

# The language server through a real client, and the VS Code grammar: node scripts over npm packages
# that `./dev test` installs. Without them the tests are told as skipped (exit 77), never as passed.
find_program(NODE_PROGRAM node)
set(LSP_TESTS ${CMAKE_CURRENT_SOURCE_DIR}/tests/lsp)
foreach(script lsp grammar)
  if(NODE_PROGRAM)
    add_test(NAME ${script}_client_test COMMAND ${NODE_PROGRAM} ${LSP_TESTS}/${script}_test.js
      $<TARGET_FILE:reflex> ${CMAKE_CURRENT_SOURCE_DIR})
  else()
    add_test(NAME ${script}_client_test COMMAND sh -c "echo 'SKIPPED: there is no node'; exit 77")
  endif()
  set_tests_properties(${script}_client_test PROPERTIES LABELS cli TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()

# The console in a real Chromium. Needs Debian's chromium, and node with npm (playwright-core, axe-core).
add_executable(console_fake ${CMAKE_CURRENT_SOURCE_DIR}/tests/console/console_fake.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/tests/unit/serve_http/fake_daemon.cpp)
target_link_libraries(console_fake PRIVATE reflex_flags reflex_serve_http reflex_driver GTest::gtest)
add_test(NAME console_test COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/tests/console/console_test.sh
  $<TARGET_FILE:console_fake> ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/console_npm)
set_tests_properties(console_test PROPERTIES LABELS browser TIMEOUT 400 SKIP_RETURN_CODE 77)

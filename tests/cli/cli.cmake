# Tests of the finished binary: command line and bundled trace.
if(TARGET reflex)
  add_test(NAME cli_test COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/tests/cli/cli_test.sh
    $<TARGET_FILE:reflex> ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(cli_test PROPERTIES LABELS cli TIMEOUT 600)
  if(NOT REFLEX_SANITIZE)
    # Why: half of what two copies of the 200 MB line would need beside libLLVM's own mappings.
    set_tests_properties(cli_test PROPERTIES ENVIRONMENT REFLEX_CLI_MEMORY_KB=700000)
  endif()

  add_test(NAME learn_cli_test COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/tests/cli/learn_test.sh
    $<TARGET_FILE:reflex> ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(learn_cli_test PROPERTIES LABELS cli TIMEOUT 300)

  add_test(NAME site_cli_test COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/tests/cli/site_test.sh
    $<TARGET_FILE:reflex> ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(site_cli_test PROPERTIES LABELS cli TIMEOUT 300)

  # A site's overlay of the policy table: the worked example of rules/README.md.
  add_test(NAME site_policy_test COMMAND $<TARGET_FILE:reflex> test rules/std hwprofiles
    tests/data/site/policy.rfx -run "site policy" WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(site_policy_test PROPERTIES LABELS packs TIMEOUT 60)

  add_test(NAME flood_test COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/tests/cli/flood_test.sh
    $<TARGET_FILE:reflex> ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(flood_test PROPERTIES LABELS cli TIMEOUT 300)

  # Webhooks that fail, a real Alertmanager where there is one, journald; what the package ships.
  add_test(NAME outside_test COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/tests/serve/outside_test.py
    $<TARGET_FILE:reflex>)
  set_tests_properties(outside_test PROPERTIES LABELS serve TIMEOUT 300)
  add_test(NAME packaging_test COMMAND python3
    ${CMAKE_CURRENT_SOURCE_DIR}/tests/serve/packaging_test.py ${CMAKE_CURRENT_BINARY_DIR}
    ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(packaging_test PROPERTIES LABELS serve TIMEOUT 300)

  # kill -9 of a live daemon, also while rules change; the long form is ./dev soak.
  add_test(NAME crash_test COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/tests/serve/crash_test.py
    $<TARGET_FILE:reflex> --kills 12 --bodies 300)
  add_test(NAME crash_edits_test COMMAND python3
    ${CMAKE_CURRENT_SOURCE_DIR}/tests/serve/crash_test.py $<TARGET_FILE:reflex> --kills 20 --bodies 400
    --edits 30)
  set_tests_properties(crash_test crash_edits_test PROPERTIES LABELS cli TIMEOUT 300)

  add_executable(demo_test ${CMAKE_CURRENT_SOURCE_DIR}/tests/cli/demo/demo_test.cpp)
  target_link_libraries(demo_test PRIVATE reflex_flags GTest::gtest GTest::gtest_main
    nlohmann_json::nlohmann_json)
  target_compile_definitions(demo_test PRIVATE
    REFLEX_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}" REFLEX_BINARY="$<TARGET_FILE:reflex>")
  add_dependencies(demo_test reflex)
  add_test(NAME demo_test COMMAND demo_test)
  set_tests_properties(demo_test PROPERTIES LABELS cli TIMEOUT 300)

  # ON once `reflex fmt -w rules hwprofiles` has been run and committed.
  option(REFLEX_CHECK_LAYOUT "the bundled packs are laid out as `reflex fmt` does it" ON)
  if(REFLEX_CHECK_LAYOUT)
    add_test(NAME pack_layout_test COMMAND reflex fmt --check rules hwprofiles
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_tests_properties(pack_layout_test PROPERTIES LABELS packs TIMEOUT 60)
  endif()
endif()

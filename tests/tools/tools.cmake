# The page of all signals (rules/SIGNALS.md): made from the packs, checked for freshness and gaps.
add_executable(list_signals tests/tools/list_signals.cpp tests/tools/signal_page.cpp
  tests/tools/code_table.cpp)
target_link_libraries(list_signals PRIVATE reflex_flags reflex_parse)
add_test(NAME signal_page_test COMMAND list_signals check ${CMAKE_CURRENT_SOURCE_DIR})
set_tests_properties(signal_page_test PROPERTIES LABELS packs TIMEOUT 60)

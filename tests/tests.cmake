# reflex_test(NAME LABEL FOLDER libraries...): one GoogleTest binary of all *_test.cpp in FOLDER.
include(GoogleTest)
function(reflex_test name label folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(sources)
    add_executable(${name} ${sources})
    target_link_libraries(${name} PRIVATE reflex_flags GTest::gtest GTest::gmock GTest::gtest_main ${ARGN})
    target_compile_definitions(${name} PRIVATE REFLEX_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 600)
  endif()
endfunction()

reflex_test(base_test unit unit/base reflex_abi)
reflex_test(diag_test unit unit/diag reflex_driver)
reflex_test(golden_test golden golden reflex_driver)
reflex_test(parse_test unit unit/parse reflex_parse)
reflex_test(format_test unit unit/format reflex_format)
reflex_test(lsp_test unit unit/lsp reflex_lsp)
reflex_test(migrate_test unit unit/migrate reflex_driver reflex_eval)
reflex_test(sema_test unit unit/sema reflex_driver reflex_eval)
reflex_test(driver_test unit unit/driver reflex_driver)
reflex_test(backend_test unit unit/backend reflex_interp reflex_jit rapidcheck)
reflex_test(stream_test unit unit/stream reflex_stream rapidcheck)
reflex_test(topology_test unit unit/topology reflex_topology)
reflex_test(eval_test unit unit/eval reflex_eval rapidcheck)
reflex_test(attribution_test unit unit/attribution reflex_attribution reflex_explain rapidcheck)
reflex_test(explain_test unit unit/explain reflex_explain reflex_attribution reflex_interp)
target_sources(explain_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/tests/unit/attribution/world.cpp)
reflex_test(policy_test unit unit/policy reflex_policy reflex_driver)
reflex_test(anonymize_test unit unit/anonymize reflex_anonymize)
reflex_test(learn_test unit unit/learn reflex_learn rapidcheck)
reflex_test(backtest_test unit unit/backtest reflex_backtest)
reflex_test(adapt_test unit unit/adapt reflex_adapt rapidcheck)
reflex_test(engine_test unit unit/engine reflex_engine)
reflex_test(determinism_test property property reflex_engine reflex_cluster reflex_explain reflex_driver)
reflex_test(serve_test unit unit/serve reflex_serve reflex_driver rapidcheck)
reflex_test(serve_slow_test slow serve/slow reflex_serve reflex_driver)
target_sources(serve_slow_test PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR}/tests/unit/serve/daemon_world.cpp)
reflex_test(store_test unit unit/store reflex_store)
reflex_test(serve_http_test unit unit/serve_http reflex_serve_http reflex_driver ZLIB::ZLIB PkgConfig::ZSTD)

# It waits, for seconds each time a member joins a group of mock brokers, and hardly works: in five
# processes (an odd number, as every other test is one of the slow ones), and first, beside all others.
file(GLOB broker_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/unit/broker/*.cpp)
add_executable(broker_test ${broker_tests})
target_link_libraries(broker_test PRIVATE reflex_flags GTest::gtest GTest::gmock GTest::gtest_main
  reflex_broker)
add_test(NAME broker_test COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/in_shards.sh 5
  $<TARGET_FILE:broker_test>)
set_tests_properties(broker_test PROPERTIES LABELS unit TIMEOUT 600 COST 1000)

# Layout rules over the sources themselves.
reflex_test(tidy_test tidy tidy)

# A million events against exact reference counts; runs alone (label slow).
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/engine/pipeline.cpp)
  include(tests/bench/workload.cmake)
  reflex_test(oracle_test slow bench_oracle bench_measure)
  target_compile_definitions(oracle_test PRIVATE REFLEX_BENCH_GEN="$<TARGET_FILE:bench_gen>")
  add_dependencies(oracle_test bench_gen)
  set_tests_properties(oracle_test PROPERTIES RUN_SERIAL ON)
endif()

# Authors' tools on mutated packs; `author_fuzz 60` by hand, some seconds in every run.
add_executable(author_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/author_fuzz.cpp)
target_link_libraries(author_fuzz PRIVATE reflex_flags reflex_driver reflex_format)
target_compile_definitions(author_fuzz PRIVATE REFLEX_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
add_test(NAME author_fuzz COMMAND author_fuzz 5)
set_tests_properties(author_fuzz PROPERTIES LABELS fuzz TIMEOUT 120)

include(tests/cli/cli.cmake)
if(TARGET reflex)
  include(tests/lsp/lsp.cmake)
endif()

include(tests/tools/tools.cmake)

# Workers over a real NATS JetStream server, and over Kafka (mock brokers of librdkafka).
add_executable(kafka_mock ${CMAKE_CURRENT_SOURCE_DIR}/tests/cluster/kafka_mock.cpp)
target_link_libraries(kafka_mock PRIVATE reflex_flags PkgConfig::RDKAFKA)
foreach(broker nats kafka)
  add_test(NAME ${broker}_cluster_test COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/cluster/cluster_test.sh
    ${broker} $<TARGET_FILE:reflex> ${CMAKE_CURRENT_SOURCE_DIR} $<TARGET_FILE:kafka_mock>)
  add_test(NAME ${broker}_crash_test COMMAND python3
    ${CMAKE_CURRENT_SOURCE_DIR}/tests/serve/broker_crash_test.py ${broker} $<TARGET_FILE:reflex>
    $<TARGET_FILE:kafka_mock>)
  set_tests_properties(${broker}_cluster_test ${broker}_crash_test PROPERTIES LABELS cluster
    TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
include(tests/console/console.cmake)

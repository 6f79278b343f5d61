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
reflex_test(parse_test unit unit/parse reflex_parse)
reflex_test(sema_test unit unit/sema reflex_driver reflex_eval)
reflex_test(backend_test unit unit/backend reflex_interp reflex_jit rapidcheck)
reflex_test(stream_test unit unit/stream reflex_stream rapidcheck)
reflex_test(topology_test unit unit/topology reflex_topology)
reflex_test(eval_test unit unit/eval reflex_eval rapidcheck)
reflex_test(attribution_test unit unit/attribution reflex_attribution rapidcheck)
reflex_test(engine_test unit unit/engine reflex_engine)
reflex_test(determinism_test property property reflex_engine reflex_driver)

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

include(tests/cli/cli.cmake)

# Benchmarks: built by ./dev bench (REFLEX_BENCH=ON) into build/bench.
include(${CMAKE_SOURCE_DIR}/tests/bench/workload.cmake)

set(BENCH_BASELINE ${CMAKE_SOURCE_DIR}/tests/bench/baseline)
set(BENCH_BIN ${CMAKE_BINARY_DIR}/bench_bin)

# The hand-written engines, as their author builds them (-O3, this machine's instructions).
function(baseline_engine name source)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${BENCH_BASELINE})
  target_compile_options(${name} PRIVATE -O3 -march=native -w)
  target_link_libraries(${name} PRIVATE simdjson::simdjson)
  set_target_properties(${name} PROPERTIES CXX_STANDARD 17 RUNTIME_OUTPUT_DIRECTORY ${BENCH_BIN})
endfunction()

baseline_engine(table ${BENCH_BASELINE}/table.cpp)
set(hard_engines "")
foreach(count 10 100 1000)
  set(source ${CMAKE_BINARY_DIR}/generated/hard_${count}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
    COMMAND write_rules cpp ${count} ${source}
    DEPENDS write_rules VERBATIM)
  baseline_engine(hard_${count} ${source})
  list(APPEND hard_engines hard_${count})
endforeach()
set_target_properties(bench_gen PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${BENCH_BIN})

execute_process(COMMAND git rev-parse --short HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
  OUTPUT_VARIABLE bench_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT bench_commit)
  set(bench_commit unknown)
endif()

add_executable(replay_bench ${CMAKE_SOURCE_DIR}/tests/bench/replay_bench.cpp
  ${CMAKE_SOURCE_DIR}/tests/bench/child_process.cpp)
target_link_libraries(replay_bench PRIVATE bench_measure fmt::fmt)
target_compile_definitions(replay_bench PRIVATE REFLEX_BENCH_BIN="${BENCH_BIN}"
  REFLEX_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  REFLEX_BENCH_DATA="${CMAKE_BINARY_DIR}/bench_data" REFLEX_BENCH_COMMIT="${bench_commit}")
add_executable(micro_bench ${CMAKE_SOURCE_DIR}/tests/bench/micro_bench.cpp)
target_link_libraries(micro_bench PRIVATE bench_measure benchmark::benchmark)

add_executable(lsp_bench ${CMAKE_SOURCE_DIR}/tests/bench/lsp_bench.cpp)
target_link_libraries(lsp_bench PRIVATE reflex_lsp fmt::fmt)

add_custom_target(bench_all DEPENDS replay_bench micro_bench lsp_bench bench_gen table ${hard_engines})

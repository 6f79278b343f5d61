# The throughput workload: rule sets as a library, the event generator as a program.
# Included by the oracle test and by the benchmarks.
if(NOT TARGET bench_workload)
  add_library(bench_workload STATIC
    ${CMAKE_SOURCE_DIR}/tests/bench/workload_rules.cpp
    ${CMAKE_SOURCE_DIR}/tests/bench/workload_cpp.cpp)
  target_link_libraries(bench_workload PUBLIC reflex_flags)
  add_executable(write_rules ${CMAKE_SOURCE_DIR}/tests/bench/write_rules.cpp)
  target_link_libraries(write_rules PRIVATE bench_workload)

  add_executable(bench_gen ${CMAKE_SOURCE_DIR}/tests/bench/baseline/gen.cpp)
  target_compile_options(bench_gen PRIVATE -O2 -w)

  # The measurements need the whole product.
  if(EXISTS ${CMAKE_SOURCE_DIR}/runtime/engine/pipeline.cpp)
    add_library(bench_measure STATIC
      ${CMAKE_SOURCE_DIR}/tests/bench/replay_measure.cpp
      ${CMAKE_SOURCE_DIR}/tests/bench/measure_diagnosis.cpp
      ${CMAKE_SOURCE_DIR}/tests/bench/measure_log.cpp
      ${CMAKE_SOURCE_DIR}/tests/bench/measure_storm.cpp)
    target_link_libraries(bench_measure PUBLIC bench_workload reflex_engine reflex_driver)
  endif()
endif()

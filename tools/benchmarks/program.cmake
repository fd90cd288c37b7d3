# What `guardbit bench` starts to measure. A program of its own: only here is Google Benchmark needed, also at run time.
find_package(benchmark QUIET)
if(benchmark_FOUND AND TARGET guardbit_experiments)
  file(GLOB benchmark_sources CONFIGURE_DEPENDS tools/benchmarks/*.cpp)
  add_executable(guardbit_benchmark ${benchmark_sources}
    tools/bench_options.cpp tools/interruption.cpp tools/terminal.cpp)
  target_compile_definitions(guardbit_benchmark PRIVATE GUARDBIT_VERSION="${PROJECT_VERSION}")
  target_compile_options(guardbit_benchmark PRIVATE $<$<CONFIG:Debug>:-O0>)
  target_link_libraries(guardbit_benchmark PRIVATE
    guardbit_experiments guardbit_emulator benchmark::benchmark CLI11::CLI11 nlohmann_json::nlohmann_json)
  install(TARGETS guardbit_benchmark)
  include(tools/benchmarks/native.cmake)
endif()

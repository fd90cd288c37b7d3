# What `guardbit bench` starts to measure. A program of its own: only here is Google Benchmark needed, also at run time.
# It is built only where it is named: `cmake --build DIR --target guardbit_benchmark`.
find_package(benchmark QUIET)
if(NOT benchmark_FOUND)
  return()
endif()
add_executable(guardbit_benchmark EXCLUDE_FROM_ALL
  benchmarks/bench_options.cpp benchmarks/benchmark_cases.cpp benchmarks/benchmark_instructions.cpp
  benchmarks/benchmark_main.cpp benchmarks/benchmark_operands.cpp benchmarks/benchmark_results.cpp
  benchmarks/benchmarks.cpp benchmarks/benchmarks_of_functions.cpp benchmarks/benchmarks_of_memory.cpp
  benchmarks/benchmarks_of_operators.cpp benchmarks/benchmarks_of_products.cpp
  benchmarks/benchmarks_of_replays.cpp benchmarks/benchmarks_of_traces.cpp benchmarks/native_cpu.cpp
  benchmarks/peers.cpp benchmarks/timing.cpp benchmarks/yardsticks.cpp
  console/columns.cpp console/interruption.cpp console/sign_of_life.cpp console/terminal.cpp)
set_target_properties(guardbit_benchmark PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(guardbit_benchmark PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(guardbit_benchmark PRIVATE $<$<CONFIG:Debug>:-O0>)
target_link_libraries(guardbit_benchmark PRIVATE
  guardbit_experiments guardbit_emulator benchmark::benchmark CLI11::CLI11 nlohmann_json::nlohmann_json)
# Eigen's functions and packets, for each instruction set as its products are.
function(guardbit_eigen_functions variant)
  add_library(guardbit_eigen_functions_${variant} OBJECT EXCLUDE_FROM_ALL
    benchmarks/eigen_functions.cpp benchmarks/multiply_adds.cpp)
  target_include_directories(guardbit_eigen_functions_${variant} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(guardbit_eigen_functions_${variant} SYSTEM PRIVATE ${eigen_includes})
  target_compile_definitions(guardbit_eigen_functions_${variant} PRIVATE
    NDEBUG Eigen=Eigen_functions_${variant} GUARDBIT_EIGEN=functions_${variant})
  target_compile_options(guardbit_eigen_functions_${variant} PRIVATE -O3 -fno-sanitize=all -w ${no_mmx} ${ARGN})
  target_sources(guardbit_benchmark PRIVATE $<TARGET_OBJECTS:guardbit_eigen_functions_${variant}>)
endfunction()
guardbit_eigen_functions(baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  guardbit_eigen_functions(avx2 -mavx2 -mfma)
  guardbit_eigen_functions(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma)
endif()
install(TARGETS guardbit_benchmark OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/native.cmake)

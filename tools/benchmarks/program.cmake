# What `guardbit bench` starts to measure. A program of its own: only here are Google Benchmark and Eigen needed, also at
# run time. Eigen is compiled once for each instruction set, under a name of its own (eigen_product.cpp says why).
find_package(benchmark QUIET)
find_package(Eigen3 3.4 QUIET NO_MODULE)
if(benchmark_FOUND AND Eigen3_FOUND AND TARGET guardbit_emulator)
  file(GLOB benchmark_sources CONFIGURE_DEPENDS tools/benchmarks/*.cpp)
  list(FILTER benchmark_sources EXCLUDE REGEX "/eigen_product.cpp$")
  add_executable(guardbit_benchmark ${benchmark_sources}
    tools/bench_options.cpp tools/interruption.cpp tools/terminal.cpp)
  target_compile_definitions(guardbit_benchmark PRIVATE GUARDBIT_VERSION="${PROJECT_VERSION}")
  target_compile_options(guardbit_benchmark PRIVATE $<$<CONFIG:Debug>:-O0>)
  target_link_libraries(guardbit_benchmark PRIVATE
    guardbit_experiments guardbit_emulator benchmark::benchmark CLI11::CLI11 nlohmann_json::nlohmann_json)
  set(eigen_variants baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND eigen_variants avx2 avx512)
    set(eigen_options_avx2 -mavx2 -mfma)
    set(eigen_options_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
  endif()
  foreach(variant IN LISTS eigen_variants)
    add_library(guardbit_eigen_${variant} OBJECT tools/benchmarks/eigen_product.cpp)
    target_include_directories(guardbit_eigen_${variant} PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(guardbit_eigen_${variant} SYSTEM PRIVATE
      $<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>)
    target_compile_definitions(guardbit_eigen_${variant} PRIVATE
      NDEBUG EIGEN_DONT_PARALLELIZE Eigen=Eigen_${variant} GUARDBIT_EIGEN=eigen_${variant})
    # Also in builds that do not optimise: a yardstick is of use at its full length only.
    target_compile_options(guardbit_eigen_${variant} PRIVATE -O3 -fno-sanitize=all ${eigen_options_${variant}})
    target_sources(guardbit_benchmark PRIVATE $<TARGET_OBJECTS:guardbit_eigen_${variant}>)
  endforeach()
  install(TARGETS guardbit_benchmark)
endif()

# Products by Eigen are a yardstick, so they get what the CPU has: Eigen is compiled once for each instruction set, under
# a name of its own (eigen_product.cpp says why).
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
set(eigen_includes $<TARGET_PROPERTY:Eigen3::Eigen,INTERFACE_INCLUDE_DIRECTORIES>)
target_include_directories(guardbit_experiments SYSTEM PUBLIC $<BUILD_INTERFACE:${eigen_includes}>)
set(eigen_variants baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND eigen_variants avx2 avx512)
  set(eigen_options_avx2 -mavx2 -mfma)
  set(eigen_options_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
endif()
foreach(variant IN LISTS eigen_variants)
  add_library(guardbit_eigen_${variant} OBJECT experiments/training/eigen_product.cpp)
  target_include_directories(guardbit_eigen_${variant} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(guardbit_eigen_${variant} SYSTEM PRIVATE ${eigen_includes})
  target_compile_definitions(guardbit_eigen_${variant} PRIVATE
    NDEBUG EIGEN_DONT_PARALLELIZE Eigen=Eigen_${variant} GUARDBIT_EIGEN=eigen_${variant})
  # Also in builds that do not optimise: a yardstick is of use at its full length only.
  target_compile_options(guardbit_eigen_${variant} PRIVATE -O3 -fno-sanitize=all ${eigen_options_${variant}})
  target_sources(guardbit_experiments PRIVATE $<TARGET_OBJECTS:guardbit_eigen_${variant}>)
endforeach()

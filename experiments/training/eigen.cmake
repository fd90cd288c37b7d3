# Products by Eigen are a yardstick, so they get what the CPU has: Eigen is compiled once for each instruction set, under
# a name of its own (eigen_product.cpp says why).
target_include_directories(guardbit_experiments SYSTEM PUBLIC $<BUILD_INTERFACE:${eigen_includes}>)
# Eigen for the target USER, compiled with the options that follow.
function(guardbit_eigen variant user)
  add_library(guardbit_eigen_${variant} OBJECT ${PROJECT_SOURCE_DIR}/experiments/training/eigen_product.cpp)
  target_include_directories(guardbit_eigen_${variant} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(guardbit_eigen_${variant} SYSTEM PRIVATE ${eigen_includes})
  target_compile_definitions(guardbit_eigen_${variant} PRIVATE
    NDEBUG EIGEN_DONT_PARALLELIZE Eigen=Eigen_${variant} GUARDBIT_EIGEN=eigen_${variant})
  # Also in builds that do not optimise: a yardstick is of use at its full length only.
  target_compile_options(guardbit_eigen_${variant} PRIVATE -O3 -fno-sanitize=all ${no_mmx} ${ARGN})
  target_sources(${user} PRIVATE $<TARGET_OBJECTS:guardbit_eigen_${variant}>)
  set_property(GLOBAL APPEND PROPERTY guardbit_eigen_variants ${variant})
endfunction()
guardbit_eigen(baseline guardbit_experiments)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  guardbit_eigen(avx2 guardbit_experiments -mavx2 -mfma)
  guardbit_eigen(avx512 guardbit_experiments -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
endif()

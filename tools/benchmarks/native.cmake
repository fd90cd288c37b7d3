# What people compile for the machine at hand: Eigen with -march=native, and the libraries whose conversions ours are
# measured beside, where their sources are had. The instruction sets that the compiler may then use are handed on by the
# names of its macros (__AVX2__: AVX2), for the program to ask the CPU for them where it runs.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" OR CMAKE_CROSSCOMPILING)
  return()
endif()
function(guardbit_macros result)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${ARGN} -dM -E -x c++ /dev/null
    OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
  string(REGEX MATCHALL "__[A-Z0-9_]+__ 1" names "${text}")
  list(TRANSFORM names REPLACE "__(.+)__ 1" "\\1")
  set(${result} ${names} PARENT_SCOPE)
  set(failed ${failed} PARENT_SCOPE)
endfunction()
guardbit_macros(native_macros -march=native)
if(NOT failed EQUAL 0)
  return()
endif()
guardbit_macros(baseline_macros)
list(REMOVE_ITEM native_macros ${baseline_macros})
list(JOIN native_macros " " native_macros)
guardbit_eigen(native guardbit_benchmark -march=native)
target_compile_definitions(guardbit_benchmark PRIVATE GUARDBIT_NATIVE="${native_macros}")

# The extension module guardbit._core, which `pip install .` builds (pyproject.toml).
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

# STABLE_ABI counts from CPython 3.12 on; earlier ones get a module of their own.
nanobind_add_module(guardbit_python STABLE_ABI NB_STATIC NOMINSIZE
  python/array_view.cpp python/bindings_files.cpp python/bindings_formats.cpp python/bindings_functions.cpp
  python/bindings_instructions.cpp python/bindings_operators.cpp python/bindings_probe.cpp python/bindings_products.cpp
  python/bindings_reports.cpp python/bindings_traces.cpp python/interruptible.cpp python/module.cpp python/product_arrays.cpp python/report.cpp)
set_target_properties(guardbit_python PROPERTIES OUTPUT_NAME _core)
target_link_libraries(guardbit_python PRIVATE guardbit_commands)
# nanobind's own sources and headers are not held to our warnings. Its library has another name for the stable ABI.
foreach(library nanobind-static nanobind-static-abi3)
  if(TARGET ${library})
    target_compile_options(${library} PRIVATE -w)
    get_target_property(nanobind_includes ${library} INTERFACE_INCLUDE_DIRECTORIES)
    target_include_directories(guardbit_python SYSTEM PRIVATE ${nanobind_includes})
  endif()
endforeach()

# Stands in for the driver where guardbit.torch runs PyTorch's CUDA build without one.
add_library(guardbit_no_driver MODULE python/no_driver.cpp)
set_target_properties(guardbit_no_driver PROPERTIES OUTPUT_NAME _no_driver PREFIX "" SUFFIX ".so" NO_SONAME ON)
target_compile_options(guardbit_no_driver PRIVATE ${no_mmx})
target_link_options(guardbit_no_driver PRIVATE "LINKER:-soname,libcuda.so.1")
add_dependencies(guardbit_python guardbit_no_driver)

# The wheel: the package; in it, where the command looks for them, the recordings that experiments ask; beside the interpreter a
# script that calls the command, which is in the module: a program of its own would double the size.
install(TARGETS guardbit_python guardbit_no_driver LIBRARY DESTINATION guardbit COMPONENT python)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/python/guardbit DESTINATION . COMPONENT python
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
if(SKBUILD_SCRIPTS_DIR)
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/python/command_script.py DESTINATION ${SKBUILD_SCRIPTS_DIR} RENAME guardbit COMPONENT python)
endif()
foreach(folder IN LISTS recordings_of_experiments)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/golden/${folder} DESTINATION guardbit/share/guardbit/golden
    COMPONENT python FILES_MATCHING PATTERN "*.safetensors" PATTERN "*.npz")
endforeach()

# guardbit_device_training: the training loop's second implementation, for `guardbit gpu train`.
set(folder ${CMAKE_CURRENT_LIST_DIR})
file(GLOB device_training_sources CONFIGURE_DEPENDS
  ${folder}/*.cpp ${folder}/*.hpp ${folder}/*.cu ${folder}/*.cuh)
add_library(guardbit_device_training STATIC ${device_training_sources})
set_target_properties(guardbit_device_training PROPERTIES
  CUDA_STANDARD 20 CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}" CUDA_RUNTIME_LIBRARY Static)
target_link_libraries(guardbit_device_training PUBLIC guardbit_experiments guardbit_gpu_cuda)
add_dependencies(guardbit_cuda guardbit_device_training)

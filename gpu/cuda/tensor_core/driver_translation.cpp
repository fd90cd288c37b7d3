#include "gpu/cuda/tensor_core/driver_translation.hpp"

#include <array>
#include <cstdint>
#include <string>

#include "formats/support/error.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/tensor_core/tensor_core.hpp"
#include "gpu/operands/ptx_kernel.hpp"

namespace guardbit::gpu {

namespace {

/// A module the driver has compiled.
class Library {
 public:
  Library(const std::string& ptx, std::string_view where) {
    std::array<char, 4096> log{};
    std::array options = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
    std::array<void*, 2> values = {log.data(),
                                   reinterpret_cast<void*>(std::uintptr_t{log.size() - 1})};
    const cudaError_t status = cudaLibraryLoadData(
        &library_, ptx.c_str(), options.data(), values.data(), options.size(), nullptr, nullptr, 0);
    if (status == cudaSuccess) return;
    const std::string said(log.data());
    throw formats::Error(std::string(where),
                         std::string("the driver does not compile its PTX: ") +
                             cudaGetErrorString(status) +
                             (said.empty() ? "" : ", " + said.substr(0, said.find('\n'))));
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { cudaLibraryUnload(library_); }

  const void* kernel(std::string_view where) const {
    cudaKernel_t found{};
    check_cuda(cudaLibraryGetKernel(&found, library_, ptx_kernel_entry), where);
    return found;
  }

 private:
  cudaLibrary_t library_{};
};

}  // namespace

void run_translated_by_driver(const TensorCoreInstruction& instruction, Batch& batch) {
  const Library library(ptx_kernel(instruction), instruction.name);
  const void* const kernel = library.kernel(instruction.name);
  run_images(instruction, batch, [&](const DeviceImages& images) {
    DeviceImages x = images;
    std::array<void*, 5> arguments = {&x.a, &x.b, &x.c, &x.e, &x.d};
    check_cuda(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(images.images)), dim3(32),
                                arguments.data(), 0, nullptr),
               instruction.name);
  });
}

}  // namespace guardbit::gpu

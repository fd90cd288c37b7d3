#include "gpu/tensor_core.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <fstream>
#include <vector>

#include "formats/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/packing.hpp"

namespace guardbit::gpu {

namespace {

using formats::Error;

void check(cudaError_t status, std::string_view where) {
  if (status != cudaSuccess) throw Error(std::string(where), cudaGetErrorString(status));
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// "NVRM version: NVIDIA UNIX … Kernel Module  580.159.04  …": the first word made of digits and
/// dots.
std::string kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  }
  return {};
}

/// Memory of the device, freed at the end of the scope.
class DeviceBuffer {
 public:
  DeviceBuffer(std::size_t size, std::string_view where) : where_(where), size_(size) {
    check(cudaMalloc(&address_, size + 256), where_);
  }
  DeviceBuffer(const std::vector<std::byte>& bytes, std::string_view where)
      : DeviceBuffer(bytes.size(), where) {
    check(cudaMemcpy(address_, bytes.data(), size_, cudaMemcpyHostToDevice), where_);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(address_); }

  void* address() const { return address_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(size_);
    check(cudaMemcpy(bytes.data(), address_, size_, cudaMemcpyDeviceToHost), where_);
    return bytes;
  }

 private:
  void* address_ = nullptr;
  std::string_view where_;
  std::size_t size_;
};

}  // namespace

Device require_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int supported = 0;
    cudaDriverGetVersion(&supported);
    throw Error("CUDA", supported == 0
                            ? "no NVIDIA driver is loaded"
                            : "the driver supports CUDA " + version_text(supported) +
                                  ", this program needs " + version_text(CUDART_VERSION));
  }
  if (status != cudaSuccess || count == 0)
    throw Error("CUDA", std::string("no device: ") +
                            cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "CUDA");
  if (properties.major != 9 || properties.minor != 0) {
    throw Error("CUDA", std::string("device '") + properties.name + "' is sm_" +
                            std::to_string(properties.major * 10 + properties.minor) +
                            "; the wrappers are compiled for sm_90a (H100, H200)");
  }
  return {
      .name = properties.name, .driver = kernel_driver(), .toolkit = version_text(CUDART_VERSION)};
}

void run_on_tensor_core(const TensorCoreInstruction& row, Batch& batch) {
  const ImageLayout layout = layout_images(row);
  const PackedOperands packed = pack(row, layout, batch);
  const DeviceBuffer a(packed.a, row.name), b(packed.b, row.name), c(packed.c, row.name),
      e(packed.e, row.name);
  const DeviceBuffer d(
      static_cast<std::size_t>(layout.d_bytes) * static_cast<std::size_t>(packed.images), row.name);
  kernel_of(row)({.a = a.address(),
                  .b = b.address(),
                  .c = c.address(),
                  .e = row.sparse ? e.address() : nullptr,
                  .d = d.address(),
                  .images = packed.images,
                  .a_bytes = layout.a_bytes,
                  .b_bytes = layout.b_bytes,
                  .c_bytes = layout.c_bytes,
                  .d_bytes = layout.d_bytes});
  check(cudaGetLastError(), row.name);
  check(cudaDeviceSynchronize(), row.name);
  unpack_results(row, layout, d.read(), batch);
}

}  // namespace guardbit::gpu

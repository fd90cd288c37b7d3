#include "gpu/cuda/device/device.hpp"

#include <fstream>
#include <utility>

#include "formats/support/error.hpp"
#include "gpu/operands/tensor_core_instruction.hpp"

namespace guardbit::gpu {

namespace {

using formats::Error;

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

std::string mebibytes(std::size_t bytes) { return std::to_string((bytes + 1048575) / 1048576); }

}  // namespace

void check_cuda(cudaError_t status, std::string_view where) {
  if (status != cudaSuccess) throw Error(std::string(where), cudaGetErrorString(status));
}

Device find_device() {
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
  check_cuda(cudaGetDeviceProperties(&properties, 0), "CUDA");
  int kilohertz = 0;
  check_cuda(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0), "CUDA");
  return {.name = properties.name,
          .driver = kernel_driver(),
          .toolkit = version_text(CUDART_VERSION),
          .capability = properties.major * 10 + properties.minor,
          .processors = properties.multiProcessorCount,
          .clock_ghz = kilohertz * 1e-6,
          .memory_bytes = properties.totalGlobalMem};
}

bool runs_compiled_code(const Device& device) {
  const std::string_view compiled = compiled_architecture();
  const std::size_t end = compiled.find_first_not_of("0123456789", 3);
  return compiled.substr(3, end - 3) == std::to_string(device.capability);
}

Device require_device() {
  Device device = find_device();
  if (!runs_compiled_code(device)) {
    throw Error("CUDA", "device '" + device.name + "' is sm_" + std::to_string(device.capability) +
                            "; this program was compiled for " +
                            std::string(compiled_architecture()) +
                            " (configure with -DCMAKE_CUDA_ARCHITECTURES=" +
                            std::to_string(device.capability) + ")");
  }
  return device;
}

DeviceBuffer::DeviceBuffer(std::size_t bytes, std::string_view where)
    : where_(where), size_(bytes) {
  const cudaError_t status = cudaMalloc(&address_, bytes + 256);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    throw Error(where_, "needs " + mebibytes(bytes) + " MiB of device memory; " +
                            mebibytes(available) + " MiB of " + mebibytes(total) + " are free");
  }
  check_cuda(status, where_);
}

DeviceBuffer::DeviceBuffer(std::span<const std::byte> content, std::string_view where)
    : DeviceBuffer(content.size(), where) {
  write(content);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      where_(std::move(other.where_)),
      size_(other.size_) {}

DeviceBuffer::~DeviceBuffer() { cudaFree(address_); }

void DeviceBuffer::write(std::span<const std::byte> content) const {
  check_cuda(cudaMemcpy(address_, content.data(), content.size(), cudaMemcpyHostToDevice), where_);
}

void DeviceBuffer::read(std::span<std::byte> content) const {
  check_cuda(cudaMemcpy(content.data(), address_, content.size(), cudaMemcpyDeviceToHost), where_);
}

std::vector<std::byte> DeviceBuffer::read() const {
  std::vector<std::byte> content(size_);
  read(content);
  return content;
}

void DeviceBuffer::clear() const { check_cuda(cudaMemset(address_, 0, size_), where_); }

DeviceTimer::DeviceTimer() {
  check_cuda(cudaEventCreate(&begin_), "CUDA");
  check_cuda(cudaEventCreate(&end_), "CUDA");
}

DeviceTimer::~DeviceTimer() {
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
}

void DeviceTimer::start() { check_cuda(cudaEventRecord(begin_), "CUDA"); }

double DeviceTimer::stop() {
  check_cuda(cudaEventRecord(end_), "CUDA");
  check_cuda(cudaEventSynchronize(end_), "CUDA");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "CUDA");
  return milliseconds * 1e-3;
}

}  // namespace guardbit::gpu

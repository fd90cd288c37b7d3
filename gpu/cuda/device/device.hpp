#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The CUDA device: what it is, its memory and its clock.
namespace guardbit::gpu {

/// The current CUDA device and the toolkit this was built with, as a capture names them.
struct Device {
  /// "NVIDIA H200"
  std::string name;
  /// kernel driver, "580.159.04"; empty where the system does not say
  std::string driver;
  /// "13.0"
  std::string toolkit;
  /// major * 10 + minor: 90 for Hopper
  int capability = 0;
  /// streaming multiprocessors
  int processors = 0;
  double clock_ghz = 0;
  std::size_t memory_bytes = 0;
};

/// The first device. formats::Error, one line, when there is none or its driver is too old.
Device find_device();

/// The first device, which must run the code this program holds (see compiled_architecture).
/// formats::Error when it cannot.
Device require_device();

/// Does the device run the code this program holds?
bool runs_compiled_code(const Device& device);

/// formats::Error that names `where` and says what CUDA said.
void check_cuda(cudaError_t status, std::string_view where);

/// Memory of the device, freed at the end of the scope. formats::Error when there is not enough.
class DeviceBuffer {
 public:
  DeviceBuffer(std::size_t bytes, std::string_view where);
  DeviceBuffer(std::span<const std::byte> content, std::string_view where);
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer();

  template <class T = void>
  T* as() const {
    return static_cast<T*>(address_);
  }
  std::size_t size() const { return size_; }
  void write(std::span<const std::byte> content) const;
  void read(std::span<std::byte> content) const;
  std::vector<std::byte> read() const;
  /// all bytes zero
  void clear() const;

 private:
  void* address_ = nullptr;
  std::string where_;
  std::size_t size_;
};

/// Seconds that the device spends between start() and stop().
class DeviceTimer {
 public:
  DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;
  ~DeviceTimer();
  void start();
  /// waits for the device
  double stop();

 private:
  cudaEvent_t begin_{}, end_{};
};

}  // namespace guardbit::gpu

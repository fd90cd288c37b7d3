#include <cstdint>

// In the place of the NVIDIA driver for PyTorch's CUDA build on a computer without one. Loaded
// before PyTorch, it answers the two questions that autograd asks of a device: how many there are,
// and whether one has a context. PyTorch's own answer to the first would end the program; the
// second goes to the driver's library, whose name this library has. It also answers a question of
// MKL, which computes exp, sin and others of the CPU's tensors.

namespace {

std::int8_t devices = 0;

}  // namespace

namespace c10::cuda {

/// In the place of PyTorch's function of that name.
__attribute__((visibility("default"))) std::int8_t device_count() noexcept { return devices; }

}  // namespace c10::cuda

extern "C" {

__attribute__((visibility("default"))) void guardbit_set_device_count(int count) {
  devices = static_cast<std::int8_t>(count);
}

/// As in the driver: 0 is success. No device has a context, so nothing is asked of one.
// NOLINTNEXTLINE(readability-identifier-naming): the driver's name
__attribute__((visibility("default"))) int cuDevicePrimaryCtxGetState(int /*device*/,
                                                                      unsigned* flags,
                                                                      int* is_active) {
  *flags = 0;
  *is_active = 0;
  return 0;
}

/// Whether the CPU is Intel's: MKL has other code for other makers' CPUs, with other bits. The
/// H200's host was an Intel Xeon, so the program's CPU is taken for one.
// NOLINTNEXTLINE(readability-identifier-naming): MKL's name
__attribute__((visibility("default"))) int mkl_serv_intel_cpu_true() { return 1; }
}

#pragma once

#include <string>
#include <string_view>

namespace guardbit::emulator::atlas {

/// For what the atlas holds.
struct Scope {
  std::string_view library = "cublas-13", arch = "sm_90", framework = "PyTorch 2.11.0, CUDA 13.0",
                   driver = "580.159.04", device = "H200";
  int multiprocessors = 132;
};
inline constexpr Scope scope = {};
/// In words, besides library and arch.
std::string describe(const Scope& of);

}  // namespace guardbit::emulator::atlas

#pragma once

// What kernels ask of the GPU that they run on.
namespace guardbit::emulator::operators {

struct Machine {
  int multiprocessors = 132;
  int threads_per_multiprocessor = 2048;
};

}  // namespace guardbit::emulator::operators

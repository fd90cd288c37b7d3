#pragma once

#include <string>

#include "emulator/operators/attention/attention.hpp"
#include "emulator/operators/attention/backward.hpp"
#include "emulator/operators/attention/forward.hpp"
#include "emulator/operators/machine.hpp"

// Which attention kernel each library takes, by the problem, as PyTorch 2.11 does on sm_90.
namespace guardbit::emulator::attention {

struct ForwardKernel {
  ForwardForm form;
  /// of the keys, over rows of thread blocks
  int splits = 1;
  /// "tiles of 128 x 64 keys, last first"
  std::string description() const;
};

struct BackwardKernel {
  BackwardForm form;
  std::string description() const;
};

ForwardKernel flash_forward(const Problem& problem, const operators::Machine& machine);
BackwardKernel flash_backward(const Problem& problem, const operators::Machine& machine,
                              bool is_deterministic);
ForwardKernel efficient_forward(const Problem& problem);
BackwardKernel efficient_backward(const Problem& problem, bool is_deterministic);
/// Inference of one query, without logsumexp, has kernels of its own.
ForwardKernel cudnn_forward(const Problem& problem, bool gives_log_sums);
BackwardKernel cudnn_backward(const Problem& problem);

ForwardResult compute(const ForwardKernel& kernel, const Problem& problem);

}  // namespace guardbit::emulator::attention

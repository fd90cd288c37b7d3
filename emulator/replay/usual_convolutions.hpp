#pragma once

#include <optional>
#include <string_view>

#include "emulator/gemm/atlas/convolutions/convolution_leaf.hpp"
#include "emulator/replay/convolution_captures.hpp"
#include "emulator/replay/handler.hpp"
#include "emulator/replay/product_verdict.hpp"

// What cuDNN does for a convolution of which neither a result nor a book tells the plan.
namespace guardbit::emulator::replay {

/// What the atlas says of a call; nothing where it holds none of the kind: groups, dilation, other
/// than square filters, one dimension, or kernels that were chosen by time.
std::optional<atlas::ConvolutionLeaf> leaf_of(const ConvolutionCall& x, atlas::ConvolutionPass pass,
                                              const Context& context);

/// Of a gradient of weights in 16 bits that TF32's unit computes of FP32 numbers.
inline constexpr std::string_view widened_order = "widened to tf32";

/// The plan of a convolution, and of its gradient of data or weights. `maps`: what was convolved
/// to. Nothing where no plan is known.
std::optional<UsualPlan> usual_forward(const ConvolutionCall& x, const Tensor& output,
                                       const Context& context);
std::optional<UsualPlan> usual_data(const ConvolutionCall& x, const Tensor& maps,
                                    const Tensor& data, const Context& context);
std::optional<UsualPlan> usual_weights(const ConvolutionCall& x, const Tensor& maps,
                                       const Tensor& gradient, const Context& context);

/// Where the usual plan is one chain but for the elements of D that the last wave of thread blocks
/// computes: the plan of those. Nothing elsewhere.
struct LastWave {
  UsualPlan plan;
  atlas::Wave wave;
};

std::optional<LastWave> last_wave_of_forward(const ConvolutionCall& x, const Tensor& output,
                                             const Context& context);
std::optional<LastWave> last_wave_of_data(const ConvolutionCall& x, const Tensor& maps,
                                          const Tensor& data, const Context& context);

}  // namespace guardbit::emulator::replay

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "emulator/capture/product_capture.hpp"
#include "emulator/replay/call.hpp"

// Convolutions and their gradients as products whose K walks filters, channels or pixels.
namespace guardbit::emulator::replay {

/// What a convolution call says, with 1D ones as 2D ones of height 1.
struct ConvolutionCall {
  Tensor input, weight;
  std::optional<Tensor> bias;
  std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  bool is_transposed = false;
  std::int64_t groups = 1;
};

/// The same with a height of 1 where it has three dimensions. UnknownArguments for others.
Tensor as_2d(const Tensor& tensor);
/// `first` is the position of the stride among the arguments. UnknownArguments for numbers that
/// no convolution has.
void read_shape(const Call& call, std::size_t first, bool is_1d, ConvolutionCall& x);
/// What decides the kernel, in words. `other`: the result.
std::string shape_of(const std::string& kind, const ConvolutionCall& x, const Tensor& other);

/// Kernels take their channels in such groups for the unit's blocks, the last one with zeros.
constexpr std::int64_t padded_channels = 16;
/// Of orders of K that go over the whole filter with some channels, then with the next ones: how
/// many. Such orders and "channels innermost, padded to 16" have zeros after the channels, of
/// "whole blocks" as many as fill the last block; others are "channels outermost" and "channels
/// innermost". "descending" is of the filter's places.
std::optional<std::int64_t> channels_of_block(const std::string& order);

/// A convolution as captures have it, which plans lower. UnknownArguments where shapes do not
/// fit.
GemmCapture forward_capture(const ConvolutionCall& x, const Tensor& output, bool tf32);
/// A convolution as a product whose K is in that order: rows are pixels of the output.
GemmCapture gathered_capture(const ConvolutionCall& x, const Tensor& output,
                             const std::string& order, bool tf32);
/// What a transposed convolution gives, or a data gradient: rows are pixels of the image, K walks
/// output channels and filter places, columns are the image's channels. `maps` is what was
/// convolved to, `image` what comes out.
GemmCapture scattered_capture(const ConvolutionCall& x, const Tensor& maps, const Tensor& image,
                              const std::string& order, bool tf32);
/// A weight gradient: rows are output channels, columns channel and filter place, K walks images
/// and pixels.
GemmCapture weight_gradient_capture(const ConvolutionCall& x, const Tensor& maps,
                                    const Tensor& gradient, bool tf32);

}  // namespace guardbit::emulator::replay

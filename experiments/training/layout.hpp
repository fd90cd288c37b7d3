#pragma once

// Where the elements of tensors lie, for CPU and CUDA alike. Tensors are dense and row-major, the
// last dimension innermost: images [image, row, column, channel], filters [output channel, row,
// column, input channel], matrices of linear layers [output, input].

#include <cstdint>

namespace guardbit::experiments::training {

/// The windows of a convolution with stride 1 over images with `padding` zeros on every side. As a
/// matrix, a row for each output position (image, row, column), in a row the window's elements
/// (row, column, channel): the K of the layer's products.
struct Windows {
  /// of the input
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
  std::int64_t window_height = 0, window_width = 0, padding = 0;

  constexpr std::int64_t out_height() const { return height + 2 * padding - window_height + 1; }
  constexpr std::int64_t out_width() const { return width + 2 * padding - window_width + 1; }
  constexpr std::int64_t rows() const { return images * out_height() * out_width(); }
  constexpr std::int64_t columns() const { return window_height * window_width * channels; }

  /// The input element at (row, column) of the matrix; -1 for a zero of the padding.
  constexpr std::int64_t source(std::int64_t row, std::int64_t column) const {
    const std::int64_t q = row % out_width(), p = row / out_width() % out_height();
    const std::int64_t image = row / (out_width() * out_height());
    const std::int64_t c = column % channels, s = column / channels % window_width;
    const std::int64_t r = column / (channels * window_width);
    const std::int64_t y = p + r - padding, x = q + s - padding;
    if (y < 0 || y >= height || x < 0 || x >= width) return -1;
    return ((image * height + y) * width + x) * channels + c;
  }
};

/// Filters [o, r, s, c] as the gradient by the input needs them: the convolution of the output's
/// gradient, padded by the window less 1, with the filters turned by 180 degrees. Element (c, k) of
/// a matrix [c, r s o], where k is (row, column, output channel).
struct TurnedFilters {
  std::int64_t outputs = 0, window_height = 0, window_width = 0, channels = 0;

  constexpr std::int64_t columns() const { return window_height * window_width * outputs; }
  constexpr std::int64_t source(std::int64_t channel, std::int64_t column) const {
    const std::int64_t o = column % outputs, s = column / outputs % window_width;
    const std::int64_t r = column / (outputs * window_width);
    return ((o * window_height + (window_height - 1 - r)) * window_width + (window_width - 1 - s)) *
               channels +
           channel;
  }
};

/// Maxima over squares of `size` that do not overlap; rows and columns left over are dropped. Of
/// equal elements the first, in rows and then columns, is the one that the gradient goes to.
struct Pooling {
  std::int64_t images = 0, height = 0, width = 0, channels = 0, size = 2;

  constexpr std::int64_t out_height() const { return height / size; }
  constexpr std::int64_t out_width() const { return width / size; }
  constexpr std::int64_t outputs() const { return images * out_height() * out_width() * channels; }

  /// The input element (y, x) of the square that belongs to an output.
  constexpr std::int64_t source(std::int64_t output, std::int64_t y, std::int64_t x) const {
    const std::int64_t c = output % channels, q = output / channels % out_width();
    const std::int64_t p = output / (channels * out_width()) % out_height();
    const std::int64_t image = output / (channels * out_width() * out_height());
    return ((image * height + p * size + y) * width + q * size + x) * channels + c;
  }
};

}  // namespace guardbit::experiments::training

#include "emulator/operators/images/pooling.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "emulator/operators/images/atomic_sums.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {
namespace {

std::int64_t pooled_length(std::int64_t input, std::int64_t size, std::int64_t stride,
                           std::int64_t padding, std::int64_t dilation, bool rounds_up) {
  const std::int64_t room =
      input + 2 * padding - dilation * (size - 1) - 1 + (rounds_up ? stride - 1 : 0);
  if (room < 0) throw UnknownShape{"a window that is larger than the image"};
  std::int64_t count = room / stride + 1;
  if (rounds_up && (count - 1) * stride >= input + padding) --count;
  return count;
}
Space pooled_size(const Space& in, const PoolingWindow& w) {
  const auto length = [&](std::int64_t Space::*of) {
    return pooled_length(in.*of, w.size.*of, w.stride.*of, w.padding.*of, w.dilation.*of,
                         w.rounds_up);
  };
  return {w.dimensions > 2 ? length(&Space::depth) : 1, length(&Space::rows),
          length(&Space::columns)};
}

/// The part of an averaging window that lies inside the image along one dimension, and its length
/// with padding.
struct Extent {
  std::int64_t begin, end, padded;
  std::int64_t length() const { return end - begin; }
};
Extent extent_of(std::int64_t place, std::int64_t size, std::int64_t stride, std::int64_t padding,
                 std::int64_t input) {
  const std::int64_t begin = place * stride - padding;
  const std::int64_t end = std::min(begin + size, input + padding);
  return {std::max<std::int64_t>(begin, 0), std::min(end, input), end - begin};
}
struct Box {
  Extent depth, rows, columns;
  bool is_empty() const {
    return depth.length() <= 0 || rows.length() <= 0 || columns.length() <= 0;
  }
  std::int64_t divisor(const AverageRule& rule) const {
    if (rule.divisor) return *rule.divisor;
    if (rule.counts_padding) return depth.padded * rows.padded * columns.padded;
    return depth.length() * rows.length() * columns.length();
  }
};
Box box_of(const Space& at, const PoolingWindow& w, const Space& in) {
  const auto extent = [&](std::int64_t Space::*of) {
    return extent_of(at.*of, w.size.*of, w.stride.*of, w.padding.*of, in.*of);
  };
  return {extent(&Space::depth), extent(&Space::rows), extent(&Space::columns)};
}

/// The first window that an element may be in, and the one after the last.
struct Windows {
  std::int64_t begin, end;
};
Windows windows_of(std::int64_t place, std::int64_t reach, std::int64_t stride,
                   std::int64_t windows) {
  return {place < reach ? 0 : (place - reach) / stride + 1, std::min(place / stride + 1, windows)};
}

template <class Function>
void for_each_place(const Space& size, const Function& function) {
  for (std::int64_t d = 0; d < size.depth; ++d) {
    for (std::int64_t r = 0; r < size.rows; ++r) {
      for (std::int64_t c = 0; c < size.columns; ++c) function(Space{d, r, c});
    }
  }
}

}  // namespace

MaxPooled max_pool(const Tensor& input, const PoolingWindow& w) {
  const Images in(input.shape, w.dimensions);
  const Space size = pooled_size(in.size, w);
  const Dimensions shape = resized(input.shape, size, w.dimensions);
  const bool has_channels_together = says_channels_last(input);
  const auto inside = [](std::int64_t place, std::int64_t length) {
    return place >= 0 && place < length;
  };
  return in_numbers_of(input, [&]<class Number>(Number) -> MaxPooled {
    const ViewOf<Number> numbers(input);
    std::vector<std::int64_t> greatest, places;
    for (std::int64_t n = 0; n < in.count; ++n) {
      for_each_place(size, [&](const Space& at) {
        Number best = -std::numeric_limits<Number>::infinity();
        std::int64_t place = has_channels_together ? 0 : -1, source = -1;
        for_each_place({1, w.size.rows, w.size.columns}, [&](const Space& k) {
          const std::int64_t row =
              at.rows * w.stride.rows - w.padding.rows + k.rows * w.dilation.rows;
          const std::int64_t column =
              at.columns * w.stride.columns - w.padding.columns + k.columns * w.dilation.columns;
          if (!inside(row, in.size.rows) || !inside(column, in.size.columns)) return;
          const std::int64_t own = in.size.place(0, row, column);
          const Number number = numbers[index(in.begin(n) + own)];
          if (place < 0) place = own;
          if (source < 0) source = own;
          if (number > best || number != number) {
            best = number;
            place = source = own;
          }
        });
        if (source < 0) throw UnknownShape{"a window outside of its image"};
        greatest.push_back(in.begin(n) + source);
        places.push_back(place);
      });
    }
    return {copies(input, shape, stride_like(input, shape), greatest),
            tensor_of_integers(formats::int64, shape, places)};
  });
}

Tensor max_pool_gradient(const Tensor& gradient, const Tensor& input, const Tensor& indices,
                         const PoolingWindow& w) {
  const Images in(input.shape, 2), out(gradient.shape, 2);
  const std::vector<std::int64_t> places = places_of(indices, in.size.count(), -1);
  if (indices.count() != gradient.count() || out.count != in.count)
    throw UnknownShape{"indices or gradients for another number of windows"};
  const bool copies_single = says_channels_last(input);
  const auto is_in_one = [&](std::int64_t place, std::int64_t Space::*of) {
    const Windows windows = windows_of(
        place + w.padding.*of, (w.size.*of - 1) * (w.dilation.*of) + 1, w.stride.*of, out.size.*of);
    return windows.begin + 1 == windows.end;
  };
  return in_numbers_of(input, [&]<class Number>(Number) {
    const ViewOf<Number> gradients(gradient);
    std::vector<Number> results(index(input.count()));
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) continue;
      const std::int64_t image = static_cast<std::int64_t>(i) / out.size.count();
      Number& result = results[index(in.begin(image) + places[i])];
      const bool is_copy = copies_single && is_in_one(places[i] / in.size.columns, &Space::rows) &&
                           is_in_one(places[i] % in.size.columns, &Space::columns);
      result = is_copy ? gradients[i] : result + gradients[i];
    }
    return tensor_of(input.type, input.shape, stride_like(input, input.shape), results);
  });
}

Tensor average_pool(const Tensor& input, const PoolingWindow& w, const AverageRule& rule) {
  const Images in(input.shape, w.dimensions);
  const Space size = pooled_size(in.size, w);
  const Dimensions shape = resized(input.shape, size, w.dimensions);
  return in_numbers_of(input, [&]<class Number>(Number) {
    const ViewOf<Number> numbers(input);
    std::vector<Number> results;
    for (std::int64_t n = 0; n < in.count; ++n) {
      for_each_place(size, [&](const Space& at) {
        const Box box = box_of(at, w, in.size);
        Number sum = 0;
        for (std::int64_t z = box.depth.begin; z < box.depth.end; ++z) {
          for (std::int64_t y = box.rows.begin; y < box.rows.end; ++y) {
            for (std::int64_t x = box.columns.begin; x < box.columns.end; ++x)
              sum += numbers[index(in.begin(n) + in.size.place(z, y, x))];
          }
        }
        results.push_back(box.is_empty() ? 0 : sum / static_cast<Number>(box.divisor(rule)));
      });
    }
    return tensor_of(input.type, shape,
                     w.dimensions == 2 ? stride_like(input, shape) : contiguous_stride(shape),
                     results);
  });
}

namespace {

template <class Number>
Tensor gradient_of_images(const Tensor& gradient, const Tensor& input, const PoolingWindow& w,
                          const AverageRule& rule) {
  const Images in(input.shape, 2), out(gradient.shape, 2);
  const ViewOf<Number> gradients(gradient);
  // Where channels lie together PyTorch 2.11 looks for an element's windows as if there were no
  // padding.
  const Space shift = says_channels_last(input) ? Space{0, 0, 0} : w.padding;
  std::vector<Number> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for_each_place(in.size, [&](const Space& at) {
      const Windows rows =
          windows_of(at.rows + shift.rows, w.size.rows, w.stride.rows, out.size.rows);
      const Windows columns = windows_of(at.columns + shift.columns, w.size.columns,
                                         w.stride.columns, out.size.columns);
      Number sum = 0;
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        for (std::int64_t c = columns.begin; c < columns.end; ++c) {
          const Box box = box_of({0, r, c}, w, in.size);
          if (box.is_empty()) continue;
          // Divisor and quotient are of the tensor's type.
          const Number divisor = rounded(input.type, static_cast<Number>(box.divisor(rule)));
          sum += rounded(input.type,
                         gradients[index(out.begin(n) + out.size.place(0, r, c))] / divisor);
        }
      }
      results.push_back(sum);
    });
  }
  return tensor_of(input.type, input.shape, stride_like(input, input.shape), results);
}

/// Windows that move by one element without padding: gradients are added, row by row, and the sum
/// is multiplied by the divisor's reciprocal.
template <class Number>
Tensor gradient_of_dense_volumes(const Tensor& gradient, const Tensor& input,
                                 const PoolingWindow& w, const AverageRule& rule) {
  const Images in(input.shape, 3), out(gradient.shape, 3);
  const ViewOf<Number> gradients(gradient);
  const Number factor = Number{1} / static_cast<Number>(rule.divisor.value_or(w.size.count()));
  std::vector<Number> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for_each_place(in.size, [&](const Space& at) {
      const auto along = [&](std::int64_t Space::*of) {
        return windows_of(at.*of, w.size.*of, 1, out.size.*of);
      };
      const Windows depth = along(&Space::depth), rows = along(&Space::rows),
                    columns = along(&Space::columns);
      Number sum = 0;
      for (std::int64_t d = depth.begin; d < depth.end; ++d) {
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          for (std::int64_t c = columns.begin; c < columns.end; ++c)
            sum += gradients[index(out.begin(n) + out.size.place(d, r, c))];
        }
      }
      results.push_back(sum * factor);
    });
  }
  return tensor_of(input.type, input.shape, contiguous_stride(input.shape), results);
}

template <class Number>
std::optional<Tensor> gradient_of_volumes(const Tensor& gradient, const Tensor& input,
                                          const PoolingWindow& w, const AverageRule& rule) {
  const Images in(input.shape, 3), out(gradient.shape, 3);
  const ViewOf<Number> gradients(gradient);
  const bool overlap = w.stride.depth < w.size.depth || w.stride.rows < w.size.rows ||
                       w.stride.columns < w.size.columns;
  AtomicSums<Number> sums(input.type, index(input.count()));
  bool is_known = true;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for_each_place(out.size, [&](const Space& at) {
      const Box box = box_of(at, w, in.size);
      if (box.is_empty()) return;
      const Number own =
          gradients[index(out.begin(n) + out.size.place(at.depth, at.rows, at.columns))];
      const Number share = rounded(input.type, own / static_cast<Number>(box.divisor(rule)));
      for (std::int64_t z = box.depth.begin; z < box.depth.end; ++z) {
        for (std::int64_t y = box.rows.begin; y < box.rows.end; ++y) {
          for (std::int64_t x = box.columns.begin; x < box.columns.end; ++x) {
            const std::size_t to = index(in.begin(n) + in.size.place(z, y, x));
            if (overlap)
              is_known = sums.add(to, share) && is_known;
            else
              sums.store(to, share);
          }
        }
      }
    });
  }
  if (!is_known) return std::nullopt;
  return tensor_of(input.type, input.shape, contiguous_stride(input.shape), sums.numbers());
}

}  // namespace

std::optional<Tensor> average_pool_gradient(const Tensor& gradient, const Tensor& input,
                                            const PoolingWindow& w, const AverageRule& rule) {
  const Images in(input.shape, w.dimensions), out(gradient.shape, w.dimensions);
  if (in.count != out.count || out.size != pooled_size(in.size, w))
    throw UnknownShape{"gradients for another number of windows"};
  const bool is_dense = w.stride == Space{} && w.padding == Space{0, 0, 0};
  return in_numbers_of(input, [&]<class Number>(Number) -> std::optional<Tensor> {
    if (w.dimensions == 2) return gradient_of_images<Number>(gradient, input, w, rule);
    if (is_dense) return gradient_of_dense_volumes<Number>(gradient, input, w, rule);
    return gradient_of_volumes<Number>(gradient, input, w, rule);
  });
}

Tensor fold_windows(const Tensor& columns, const Space& size, const PoolingWindow& w) {
  const Space windows = pooled_size(size, w);
  const std::int64_t each = w.size.rows * w.size.columns;
  if (columns.rank() < 2 || columns.shape.back() != windows.count() ||
      columns.shape[columns.shape.size() - 2] % each != 0)
    throw UnknownShape{"columns that are no windows of such images"};
  Dimensions shape = columns.shape;
  shape[shape.size() - 2] /= each;
  shape.back() = size.rows;
  shape.push_back(size.columns);
  const std::int64_t images = columns.count() / (each * windows.count());
  return in_numbers_of(columns, [&]<class Number>(Number) {
    const ViewOf<Number> numbers(columns);
    std::vector<Number> results;
    for (std::int64_t n = 0; n < images; ++n) {
      for_each_place(size, [&](const Space& at) {
        const auto along = [&](std::int64_t Space::*of) {
          return windows_of(at.*of + w.padding.*of, (w.size.*of - 1) * (w.dilation.*of) + 1,
                            w.stride.*of, windows.*of);
        };
        const Windows rows = along(&Space::rows), places = along(&Space::columns);
        Number sum = 0;
        for (std::int64_t r = rows.begin; r < rows.end; ++r) {
          for (std::int64_t c = places.begin; c < places.end; ++c) {
            const std::int64_t y = at.rows + w.padding.rows - r * w.stride.rows;
            const std::int64_t x = at.columns + w.padding.columns - c * w.stride.columns;
            if (y % w.dilation.rows != 0 || x % w.dilation.columns != 0) continue;
            const std::int64_t own = y / w.dilation.rows * w.size.columns + x / w.dilation.columns;
            sum += numbers[index((n * each + own) * windows.count() + windows.place(0, r, c))];
          }
        }
        results.push_back(sum);
      });
    }
    return tensor_of(columns.type, shape, contiguous_stride(shape), results);
  });
}

}  // namespace guardbit::emulator::operators

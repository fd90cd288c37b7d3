#include "emulator/operators/images/adaptive_pooling.hpp"

#include <cmath>
#include <vector>

#include "emulator/operators/images/atomic_sums.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {
namespace {

/// The elements that a result is of, along one dimension.
struct Share {
  std::int64_t begin, end;
  std::int64_t length() const { return end - begin; }
};
Share share_of(std::int64_t place, std::int64_t outputs, std::int64_t inputs) {
  return {place * inputs / outputs, ((place + 1) * inputs + outputs - 1) / outputs};
}
struct Shares {
  Share depth, rows, columns;
  std::int64_t count() const { return depth.length() * rows.length() * columns.length(); }
};
Shares shares_of(const Space& at, const Space& outputs, const Space& inputs) {
  return {share_of(at.depth, outputs.depth, inputs.depth),
          share_of(at.rows, outputs.rows, inputs.rows),
          share_of(at.columns, outputs.columns, inputs.columns)};
}
template <class Function>
void for_each_element(const Shares& shares, const Function& function) {
  for (std::int64_t z = shares.depth.begin; z < shares.depth.end; ++z) {
    for (std::int64_t y = shares.rows.begin; y < shares.rows.end; ++y) {
      for (std::int64_t x = shares.columns.begin; x < shares.columns.end; ++x) function(z, y, x);
    }
  }
}
/// Every place of that many.
Shares all_of(const Space& size) { return {{0, size.depth}, {0, size.rows}, {0, size.columns}}; }

/// A number of elements and its reciprocal, both of the tensor's type.
template <class Number>
Number reciprocal(const formats::Format& type, std::int64_t count) {
  return rounded(type, Number{1} / rounded(type, static_cast<Number>(count)));
}

bool divides(const Space& outputs, const Space& inputs) {
  return inputs.depth % outputs.depth == 0 && inputs.rows % outputs.rows == 0 &&
         inputs.columns % outputs.columns == 0;
}

/// Of images whose channels lie together: an element's gradients are added in the tensor's type,
/// row by row.
template <class Number>
Tensor gradient_of_channels_together(const Tensor& gradient, const Tensor& input) {
  const Images in(input.shape, 2), out(gradient.shape, 2);
  const ViewOf<Number> gradients(gradient);
  const formats::Format& type = input.type;
  std::vector<Number> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for_each_element(all_of(in.size), [&](std::int64_t, std::int64_t y, std::int64_t x) {
      Number sum = 0;
      for_each_element(shares_of({0, y, x}, in.size, out.size), [&](std::int64_t, std::int64_t r,
                                                                    std::int64_t c) {
        const Shares shares = shares_of({0, r, c}, out.size, in.size);
        const Number factor = rounded(type, reciprocal<Number>(type, shares.columns.length()) *
                                                reciprocal<Number>(type, shares.rows.length()));
        const Number own = gradients[index(out.begin(n) + out.size.place(0, r, c))];
        sum = is_working_type(type) && type != formats::fp32
                  ? rounded(type, sum + rounded(type, own * factor))
                  : std::fma(factor, own, sum);
      });
      results.push_back(sum);
    });
  }
  return tensor_of(type, input.shape, channels_last_stride(input.shape), results);
}

/// A volume's shares side by side: one division.
template <class Number>
Tensor gradient_of_even_volumes(const Tensor& gradient, const Tensor& input) {
  const Images in(input.shape, 3), out(gradient.shape, 3);
  const ViewOf<Number> gradients(gradient);
  std::vector<Number> results(index(input.count()));
  for (std::int64_t n = 0; n < out.count; ++n) {
    for_each_element(all_of(out.size), [&](std::int64_t d, std::int64_t r, std::int64_t c) {
      const Shares shares = shares_of({d, r, c}, out.size, in.size);
      const Number own = gradients[index(out.begin(n) + out.size.place(d, r, c))] /
                         static_cast<Number>(shares.count());
      for_each_element(shares, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
        results[index(in.begin(n) + in.size.place(z, y, x))] += own;
      });
    });
  }
  return tensor_of(input.type, input.shape, contiguous_stride(input.shape), results);
}

/// Divided in the tensor's type, dimension by dimension, and added by atomics.
template <class Number>
std::optional<Tensor> gradient_by_atomics(const Tensor& gradient, const Tensor& input,
                                          int dimensions) {
  const Images in(input.shape, dimensions), out(gradient.shape, dimensions);
  const ViewOf<Number> gradients(gradient);
  const formats::Format& type = input.type;
  AtomicSums<Number> sums(type, index(input.count()));
  bool is_known = true;
  for (std::int64_t n = 0; n < out.count; ++n) {
    for_each_element(all_of(out.size), [&](std::int64_t d, std::int64_t r, std::int64_t c) {
      const Shares shares = shares_of({d, r, c}, out.size, in.size);
      Number own = gradients[index(out.begin(n) + out.size.place(d, r, c))];
      const auto divide = [&](std::int64_t count) {
        own = rounded(type, own / rounded(type, static_cast<Number>(count)));
      };
      if (dimensions > 2) {
        divide(shares.depth.length());
        divide(shares.rows.length());
        divide(shares.columns.length());
      } else {
        divide(shares.columns.length());
        divide(shares.rows.length());
      }
      for_each_element(shares, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
        is_known = sums.add(index(in.begin(n) + in.size.place(z, y, x)), own) && is_known;
      });
    });
  }
  if (!is_known) return std::nullopt;
  return tensor_of(type, input.shape, contiguous_stride(input.shape), sums.numbers());
}

std::optional<Tensor> placed(const Tensor& gradient, const Tensor& input, const Tensor& indices,
                             int dimensions, bool by_atomics) {
  const Images in(input.shape, dimensions), out(gradient.shape, dimensions);
  if (indices.shape != gradient.shape || in.count != out.count)
    throw UnknownShape{"indices of another shape"};
  const std::vector<std::int64_t> places = places_of(indices, in.size.count(), -1);
  return in_numbers_of(input, [&]<class Number>(Number) -> std::optional<Tensor> {
    const ViewOf<Number> gradients(gradient);
    AtomicSums<Number> sums(input.type, index(input.count()));
    bool is_known = true;
    for (std::int64_t i = 0; i < gradient.count(); ++i) {
      if (places[index(i)] < 0) continue;
      const std::size_t to = index(in.begin(i / out.size.count()) + places[index(i)]);
      if (by_atomics)
        is_known = sums.add(to, gradients[index(i)]) && is_known;
      else
        sums.store(to, sums.numbers()[to] + gradients[index(i)]);
    }
    if (!is_known) return std::nullopt;
    return tensor_of(input.type, input.shape, contiguous_stride(input.shape), sums.numbers());
  });
}

}  // namespace

Tensor adaptive_average_pool(const Tensor& input, const Space& size, int dimensions) {
  const Images in(input.shape, dimensions);
  const Dimensions shape = resized(input.shape, size, dimensions);
  const bool has_channels_together = dimensions == 2 && says_channels_last(input);
  return in_numbers_of(input, [&]<class Number>(Number) {
    const ViewOf<Number> numbers(input);
    std::vector<Number> results;
    for (std::int64_t n = 0; n < in.count; ++n) {
      for_each_element(all_of(size), [&](std::int64_t d, std::int64_t r, std::int64_t c) {
        const Shares shares = shares_of({d, r, c}, size, in.size);
        Number sum = 0;
        for_each_element(shares, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
          sum += numbers[index(in.begin(n) + in.size.place(z, y, x))];
        });
        if (has_channels_together)
          results.push_back(sum * reciprocal<Number>(input.type, shares.count()));
        else if (dimensions > 2)
          results.push_back(sum / static_cast<Number>(shares.count()));
        else
          results.push_back(sum / static_cast<Number>(shares.rows.length()) /
                            static_cast<Number>(shares.columns.length()));
      });
    }
    return tensor_of(input.type, shape,
                     has_channels_together ? channels_last_stride(shape) : contiguous_stride(shape),
                     results);
  });
}

std::optional<Tensor> adaptive_average_pool_gradient(const Tensor& gradient, const Tensor& input,
                                                     int dimensions) {
  const Images in(input.shape, dimensions), out(gradient.shape, dimensions);
  if (in.count != out.count) throw UnknownShape{"gradients of another number of images"};
  return in_numbers_of(input, [&]<class Number>(Number) -> std::optional<Tensor> {
    if (dimensions == 2 && says_channels_last(input))
      return gradient_of_channels_together<Number>(gradient, input);
    if (dimensions == 3 && divides(out.size, in.size))
      return gradient_of_even_volumes<Number>(gradient, input);
    return gradient_by_atomics<Number>(gradient, input, dimensions);
  });
}

std::optional<Tensor> adaptive_max_pool_gradient(const Tensor& gradient, const Tensor& input,
                                                 const Tensor& indices, int dimensions) {
  const Images in(input.shape, dimensions), out(gradient.shape, dimensions);
  return placed(gradient, input, indices, dimensions, !divides(out.size, in.size));
}

std::optional<Tensor> max_pool_volumes_gradient(const Tensor& gradient, const Tensor& input,
                                                const Tensor& indices) {
  return placed(gradient, input, indices, 3, true);
}

}  // namespace guardbit::emulator::operators

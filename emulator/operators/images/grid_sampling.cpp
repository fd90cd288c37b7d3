#include "emulator/operators/images/grid_sampling.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "emulator/operators/images/interpolation.hpp"
#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {
namespace {

/// A place in elements from the first one.
template <class Number>
Number place_of(Number coordinate, std::int64_t length, bool aligns_corners) {
  const Number from_start = coordinate + 1;
  if (aligns_corners) return from_start / 2 * static_cast<Number>(length - 1);
  return std::fma(from_start, static_cast<Number>(length), Number{-1}) / 2;
}

/// Places inside an image: each step rounds to `type`, as that of cubic neighbours does.
template <class Number>
class Bounds {
 public:
  Bounds(const GridRule& rule, const formats::Format& type) : rule_(rule), type_(type) {}

  Number inside(Number place, std::int64_t length) const {
    if (rule_.outside == Outside::reflection) place = reflected(place, length);
    if (rule_.outside != Outside::zeros) {
      const auto last = rounded(type_, static_cast<Number>(length - 1));
      place = std::fmin(last, std::fmax(place, Number{0}));
    }
    // Those that no integer holds are outside, wherever that is.
    constexpr double most = std::numeric_limits<std::int32_t>::max();
    const bool is_integer = std::isfinite(place) && static_cast<double>(place) <= most - 1 &&
                            static_cast<double>(place) >= -most - 1;
    return is_integer ? place : Number{-100};
  }

 private:
  Number reflected(Number place, std::int64_t length) const {
    const std::int64_t twice_low = rule_.aligns_corners ? 0 : -1;
    const std::int64_t twice_high = rule_.aligns_corners ? 2 * (length - 1) : 2 * length - 1;
    if (twice_low == twice_high) return 0;
    const auto half_of = [&](std::int64_t twice) {
      return rounded(type_, rounded(type_, static_cast<Number>(twice)) / 2);
    };
    const Number low = half_of(twice_low), span = half_of(twice_high - twice_low);
    place = std::abs(rounded(type_, place - low));
    const Number extra = std::fmod(place, span);
    const Number flips = std::floor(rounded(type_, place / span));
    const bool is_even = std::fmod(flips, Number{2}) == 0;
    return rounded(type_, (is_even ? extra : rounded(type_, span - extra)) + low);
  }

  GridRule rule_;
  formats::Format type_;
};

template <class Number>
struct Neighbour {
  Space at;
  Number weight;
  bool is_inside(const Space& size) const {
    const auto lies = [](std::int64_t place, std::int64_t length) {
      return place >= 0 && place < length;
    };
    return lies(at.depth, size.depth) && lies(at.rows, size.rows) && lies(at.columns, size.columns);
  }
};

/// Corners in order: the first row of the first depth, left before right.
template <class Number>
std::vector<Neighbour<Number>> corners(const std::array<Number, 3>& place, int dimensions) {
  std::array<std::int64_t, 3> whole{};
  std::array<std::array<Number, 2>, 3> weights{};
  for (std::size_t d = 0; d < index(dimensions); ++d) {
    whole[d] = static_cast<std::int64_t>(std::floor(place[d]));
    weights[d] = {static_cast<Number>(whole[d] + 1) - place[d],
                  place[d] - static_cast<Number>(whole[d])};
  }
  std::vector<Neighbour<Number>> all;
  for (std::int64_t z = 0; z < (dimensions > 2 ? 2 : 1); ++z) {
    for (std::int64_t y = 0; y < 2; ++y) {
      for (std::int64_t x = 0; x < 2; ++x) {
        const Number of_image = weights[0][index(x)] * weights[1][index(y)];
        all.push_back({{whole[2] + z, whole[1] + y, whole[0] + x},
                       dimensions > 2 ? of_image * weights[2][index(z)] : of_image});
      }
    }
  }
  return all;
}

}  // namespace

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridRule& rule, int dimensions) {
  const Images in(input.shape, dimensions);
  if (input.rank() != dimensions + 2 || grid.rank() != dimensions + 2 ||
      grid.shape.back() != dimensions || grid.shape[0] != input.shape[0])
    throw UnknownShape{"a grid for other images"};
  const std::int64_t batches = input.shape[0], channels = input.shape[1];
  const std::int64_t places = grid.count() / std::max<std::int64_t>(batches * dimensions, 1);
  Dimensions shape = {batches, channels};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  const std::array lengths = {in.size.columns, in.size.rows, in.size.depth};
  return in_numbers_of(input, [&]<class Number>(Number) {
    const ViewOf<Number> numbers(input), coordinates(grid);
    const formats::Format& computed = input.type == formats::fp64 ? formats::fp64 : formats::fp32;
    const Bounds<Number> bounds(rule, computed), of_neighbours(rule, input.type);
    std::vector<Number> results(index(batches * channels * places));
    // One place in all channels of its image.
    const auto each_channel = [&](std::int64_t batch, std::int64_t place, const auto& number) {
      for (std::int64_t c = 0; c < channels; ++c)
        results[index((batch * channels + c) * places + place)] =
            number(in.begin(batch * channels + c));
    };
    for (std::int64_t i = 0; i < batches * places; ++i) {
      const std::int64_t batch = i / places, at = i % places;
      std::array<Number, 3> own{};
      for (std::int64_t d = 0; d < dimensions; ++d) {
        own[index(d)] = place_of(coordinates[index(i * dimensions + d)], lengths[index(d)],
                                 rule.aligns_corners);
        if (rule.sampling != Sampling::cubic)
          own[index(d)] = bounds.inside(own[index(d)], lengths[index(d)]);
      }
      if (rule.sampling == Sampling::nearest) {
        const auto nearest = [&](std::size_t d) {
          return static_cast<std::int64_t>(std::nearbyint(own[d]));
        };
        const Neighbour<Number> one{{nearest(2), nearest(1), nearest(0)}, 1};
        const bool is_inside = one.is_inside(in.size);
        const std::int64_t to = in.size.place(one.at.depth, one.at.rows, one.at.columns);
        each_channel(batch, at, [&](std::int64_t begin) {
          return is_inside ? numbers[index(begin + to)] : Number{0};
        });
      } else if (rule.sampling == Sampling::linear) {
        const auto all = corners(own, dimensions);
        each_channel(batch, at, [&](std::int64_t begin) {
          Number sum = 0;
          for (const Neighbour<Number>& one : all) {
            if (!one.is_inside(in.size)) continue;
            sum = std::fma(
                numbers[index(begin + in.size.place(one.at.depth, one.at.rows, one.at.columns))],
                one.weight, sum);
          }
          return sum;
        });
      } else {
        const std::array<Number, 2> whole = {std::floor(own[0]), std::floor(own[1])};
        const auto of_columns = cubic_weights(own[0] - whole[0]);
        const auto of_rows = cubic_weights(own[1] - whole[1]);
        std::array<std::array<std::int64_t, 4>, 2> neighbours{};
        for (std::size_t d = 0; d < 2; ++d) {
          for (std::size_t k = 0; k < 4; ++k) {
            const Number place = rounded(input.type, whole[d] - 1 + static_cast<Number>(k));
            neighbours[d][k] = static_cast<std::int64_t>(of_neighbours.inside(place, lengths[d]));
          }
        }
        each_channel(batch, at, [&](std::int64_t begin) {
          std::array<Number, 4> rows{}, four{};
          for (std::size_t k = 0; k < 4; ++k) {
            for (std::size_t j = 0; j < 4; ++j) {
              const Neighbour<Number> one{{0, neighbours[1][k], neighbours[0][j]}, 1};
              four[j] = one.is_inside(in.size)
                            ? numbers[index(begin + in.size.place(0, one.at.rows, one.at.columns))]
                            : Number{0};
            }
            rows[k] = weighted(four, of_columns);
          }
          return weighted(rows, of_rows);
        });
      }
    }
    return tensor_of(input.type, shape, contiguous_stride(shape), results);
  });
}

}  // namespace guardbit::emulator::operators

#include "emulator/operators/orders.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/operators/rows.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::int64_t bitonic_size = 32;
constexpr std::uint64_t nan_key = ~std::uint64_t{0};

/// Numbers as integers of the same order.
struct Keys {
  /// zeros of both signs are equal
  std::vector<std::uint64_t> by_value;
  /// -0 is below +0
  std::vector<std::uint64_t> by_code;
};

Keys keys_of(const Tensor& input) {
  const auto count = static_cast<std::size_t>(input.count());
  Keys keys{.by_value = std::vector<std::uint64_t>(count), .by_code = {}};
  if (formats::is_integer(input.type) || input.type == formats::b1) {
    const std::vector<std::int64_t> numbers = integers_of(input);
    for (std::size_t i = 0; i < count; ++i)
      keys.by_value[i] = static_cast<std::uint64_t>(numbers[i]) ^ (std::uint64_t{1} << 63);
    keys.by_code = keys.by_value;
    return keys;
  }
  const std::vector<double> numbers = doubles_of(input);
  keys.by_code.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto key = [](double x) {
      const auto code = std::bit_cast<std::uint64_t>(x);
      return code >> 63 != 0 ? ~code : code | std::uint64_t{1} << 63;
    };
    const double x = numbers[i];
    keys.by_code[i] = x != x ? nan_key : key(x);
    keys.by_value[i] = x != x ? nan_key : key(x == 0 ? 0.0 : x);
  }
  return keys;
}

/// PyTorch's network of compare-and-exchange for 32 places; places beyond the row go to the end. It
/// exchanges two equal numbers wherever the direction says so.
void sort_bitonically(std::vector<std::int64_t>& order, const std::vector<std::uint64_t>& keys,
                      bool is_descending) {
  std::array<std::int64_t, bitonic_size> at{};
  at.fill(-1);
  std::ranges::copy(order, at.begin());
  const auto exchange = [&](std::size_t a, std::size_t b, bool direction) {
    bool is_in_order = at[b] < 0;
    if (at[a] >= 0 && at[b] >= 0) {
      const std::uint64_t first = keys[static_cast<std::size_t>(at[a])];
      const std::uint64_t second = keys[static_cast<std::size_t>(at[b])];
      is_in_order = is_descending ? first > second : first < second;
    }
    if (is_in_order == direction) std::swap(at[a], at[b]);
  };
  const auto pass = [&](std::size_t stride, std::size_t turned) {
    for (std::size_t t = 0; t < bitonic_size / 2; ++t) {
      const std::size_t a = 2 * t - (t & (stride - 1));
      exchange(a, a + stride, (t & turned) != 0);
    }
  };
  for (std::size_t size = 2; size < bitonic_size; size *= 2)
    for (std::size_t stride = size / 2; stride > 0; stride /= 2) pass(stride, size / 2);
  for (std::size_t stride = bitonic_size / 2; stride > 0; stride /= 2) pass(stride, 0);
  std::copy_n(at.begin(), order.size(), order.begin());
}

/// `order` names elements of `keys`, in the order in which the sort meets them.
void sort_order(std::vector<std::int64_t>& order, const std::vector<std::uint64_t>& keys,
                bool is_descending, bool is_stable) {
  if (order.size() < 2) return;
  if (!is_stable && order.size() <= bitonic_size) {
    sort_bitonically(order, keys, is_descending);
    return;
  }
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
    const std::uint64_t first = keys[static_cast<std::size_t>(a)];
    const std::uint64_t second = keys[static_cast<std::size_t>(b)];
    return is_descending ? first > second : first < second;
  });
}

/// Elements that each row of a result has, by their places in the input's rows.
class Picked {
 public:
  Picked(const Tensor& input, const Rows& rows, std::int64_t length)
      : input_(input),
        rows_(rows),
        length_(length),
        width_(static_cast<std::size_t>(input.element_bytes())) {
    const auto count = static_cast<std::size_t>(rows.count * length);
    bytes_.resize(count * width_);
    indices_.resize(count);
  }
  void pick(std::int64_t row, std::int64_t to, std::int64_t from) {
    const std::size_t place = rows_.at(row, to, length_);
    indices_[place] = from;
    std::memcpy(bytes_.data() + place * width_, input_.bytes.data() + rows_.at(row, from) * width_,
                width_);
  }
  /// Tells another place than the one that the number is from.
  void place(std::int64_t row, std::int64_t told) { indices_[rows_.at(row, 0, length_)] = told; }
  Ordered result(const Dimensions& shape, const Dimensions& stride, std::string plan) {
    return {.numbers = tensor_of_bytes(input_.type, shape, stride, std::move(bytes_)),
            .indices = tensor_of_integers(formats::int64, shape, indices_),
            .plan = std::move(plan)};
  }

 private:
  const Tensor& input_;
  Rows rows_;
  std::int64_t length_;
  std::size_t width_;
  std::vector<std::byte> bytes_;
  std::vector<std::int64_t> indices_;
};

std::vector<std::uint64_t> row_of(const std::vector<std::uint64_t>& keys, const Rows& rows,
                                  std::int64_t row) {
  std::vector<std::uint64_t> own(static_cast<std::size_t>(rows.size));
  for (std::int64_t i = 0; i < rows.size; ++i)
    own[static_cast<std::size_t>(i)] = keys[rows.at(row, i)];
  return own;
}

std::vector<std::int64_t> counted(std::int64_t size) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// The place of a median that its threads leave, each of which writes that of the first equal
/// number it meets: of a warp the lowest lane of the second half, where that has one. Nothing where
/// several warps or passes write.
std::optional<std::int64_t> told_place(const std::vector<std::uint64_t>& values,
                                       std::uint64_t value) {
  constexpr std::int64_t warp = 32, half = 16;
  const auto first = std::ranges::find(values, value) - values.begin();
  std::int64_t told = first;
  for (std::int64_t i = first; i < std::ssize(values); ++i) {
    if (values[static_cast<std::size_t>(i)] != value) continue;
    if (i / warp != first / warp) return {};
    if (i / half != told / half) told = i;
  }
  return told;
}

}  // namespace

Ordered sorted(const Tensor& input, std::int64_t dimension, bool is_descending, bool is_stable) {
  const Rows rows = rows_along(input, dimension_of(input, dimension));
  const Keys keys = keys_of(input);
  Picked picked(input, rows, rows.size);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    std::vector<std::int64_t> order = counted(rows.size);
    sort_order(order, row_of(keys.by_value, rows, r), is_descending, is_stable);
    for (std::int64_t i = 0; i < rows.size; ++i)
      picked.pick(r, i, order[static_cast<std::size_t>(i)]);
  }
  const bool is_network = !is_stable && rows.size <= bitonic_size;
  return picked.result(input.shape, contiguous_stride(input.shape),
                       is_network ? "a bitonic network" : "a stable sort");
}

Ordered chosen(const Tensor& input, std::int64_t count, std::int64_t dimension, bool is_greatest,
               bool is_sorted) {
  const auto d = dimension_of(input, dimension);
  const Rows rows = rows_along(input, d);
  if (count < 0 || count > rows.size) throw UnknownShape{"more elements than there are"};
  const Keys keys = keys_of(input);
  Picked picked(input, rows, count);
  for (std::int64_t r = 0; count > 0 && r < rows.count; ++r) {
    const std::vector<std::uint64_t> own = row_of(keys.by_code, rows, r);
    std::vector<std::uint64_t> all = own;
    const auto nth = all.begin() + (is_greatest ? rows.size - count : count - 1);
    std::ranges::nth_element(all, nth);
    const std::uint64_t last = *nth;
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < rows.size; ++i) {
      const std::uint64_t key = own[static_cast<std::size_t>(i)];
      if (is_greatest ? key > last : key < last) order.push_back(i);
    }
    for (std::int64_t i = 0; std::ssize(order) < count; ++i)
      if (own[static_cast<std::size_t>(i)] == last) order.push_back(i);
    if (is_sorted) sort_order(order, row_of(keys.by_value, rows, r), is_greatest, false);
    for (std::int64_t i = 0; i < count; ++i) picked.pick(r, i, order[static_cast<std::size_t>(i)]);
  }
  Dimensions shape = input.shape;
  if (input.rank() > 0) shape[d] = count;
  return picked.result(shape, contiguous_stride(shape), "chosen by radix, then sorted");
}

Ordered at_place(const Tensor& input, std::int64_t dimension, bool keeps_dimension, Place place,
                 std::int64_t k) {
  const auto d = dimension_of(input, dimension);
  const Rows rows = rows_along(input, d);
  const Keys keys = keys_of(input);
  Picked picked(input, rows, 1);
  bool is_told = true;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::vector<std::uint64_t> own = row_of(keys.by_code, rows, r);
    const std::vector<std::uint64_t> values = row_of(keys.by_value, rows, r);
    std::vector<std::int64_t> order = counted(rows.size);
    sort_order(order, own, false, true);
    const auto nans = std::ranges::count(own, nan_key);
    std::int64_t at = k - 1;
    if (place != Place::given)
      at = place == Place::median && nans > 0 ? rows.size - 1 : (rows.size - nans - 1) / 2;
    if (at < 0 || at >= rows.size) throw UnknownShape{"a place that is not there"};
    const std::int64_t found = order[static_cast<std::size_t>(at)];
    const std::uint64_t value = values[static_cast<std::size_t>(found)];
    if (value == nan_key && !formats::is_integer(input.type))
      throw UnknownShape{"which NaN it takes"};
    // The number is the one found by sign, the place that of one that equals it.
    picked.pick(r, 0, found);
    const std::optional<std::int64_t> told = place == Place::given
                                                 ? std::ranges::find(values, value) - values.begin()
                                                 : told_place(values, value);
    is_told = is_told && told;
    picked.place(r, told.value_or(0));
  }
  Dimensions shape = input.shape;
  if (input.rank() > 0 && keeps_dimension) shape[d] = 1;
  if (input.rank() > 0 && !keeps_dimension)
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d));
  Ordered all = picked.result(shape, contiguous_stride(shape), "chosen by radix");
  if (!is_told) all.indices.reset();
  return all;
}

Tensor median_of_all(const Tensor& input, bool leaves_out_nans) {
  Tensor flat = input;
  flat.shape = {input.count()};
  flat.stride = {1};
  if (input.count() == 0) throw UnknownShape{"no elements"};
  const Ordered all = sorted(flat, 0, false, false);
  const Keys keys = keys_of(all.numbers);
  const std::int64_t nans =
      formats::is_integer(input.type) ? 0 : std::ranges::count(keys.by_code, nan_key);
  std::int64_t at = (input.count() - 1 - (leaves_out_nans ? nans : 0)) / 2;
  if (!leaves_out_nans && nans > 0) at = input.count() - 1;
  const auto width = static_cast<std::size_t>(input.element_bytes());
  const auto from = all.numbers.bytes.subspan(static_cast<std::size_t>(at) * width, width);
  return tensor_of_bytes(input.type, {}, {}, {from.begin(), from.end()});
}

}  // namespace guardbit::emulator::operators

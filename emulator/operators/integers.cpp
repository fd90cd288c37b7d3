#include "emulator/operators/integers.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "emulator/operators/broadcast.hpp"

namespace guardbit::emulator::operators {
namespace {

using Integer = std::int64_t;

/// Sums and products wrap around.
Integer wrapped(std::uint64_t x) { return static_cast<Integer>(x); }
std::uint64_t word(Integer x) { return static_cast<std::uint64_t>(x); }

Integer floor_quotient(Integer x, Integer y) {
  if (y == 0) return 0;
  if (y == -1) return wrapped(0 - word(x));
  return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
}

constexpr std::array table = {
    IntegerOperator{"abs", 1,
                    [](Integer x, Integer, Integer) { return x < 0 ? wrapped(0 - word(x)) : x; }},
    IntegerOperator{"neg", 1, [](Integer x, Integer, Integer) { return wrapped(0 - word(x)); }},
    IntegerOperator{"sign", 1,
                    [](Integer x, Integer, Integer) { return Integer{x > 0} - Integer{x < 0}; }},
    IntegerOperator{"bitwise_not", 1, [](Integer x, Integer, Integer) { return ~x; }},
    IntegerOperator{"logical_not", 1, [](Integer x, Integer, Integer) { return Integer{x == 0}; },
                    true},
    IntegerOperator{
        "add", 3,
        [](Integer x, Integer y, Integer z) { return wrapped(word(x) + word(y) * word(z)); }},
    IntegerOperator{
        "sub", 3,
        [](Integer x, Integer y, Integer z) { return wrapped(word(x) - word(y) * word(z)); }},
    IntegerOperator{"mul", 2,
                    [](Integer x, Integer y, Integer) { return wrapped(word(x) * word(y)); }},
    IntegerOperator{"div_floor", 2,
                    [](Integer x, Integer y, Integer) { return floor_quotient(x, y); }},
    IntegerOperator{"remainder", 2,
                    [](Integer x, Integer y, Integer) {
                      return wrapped(word(x) - word(floor_quotient(x, y)) * word(y));
                    }},
    IntegerOperator{"maximum", 2, [](Integer x, Integer y, Integer) { return std::max(x, y); }},
    IntegerOperator{"minimum", 2, [](Integer x, Integer y, Integer) { return std::min(x, y); }},
    IntegerOperator{"clamp", 3,
                    [](Integer x, Integer y, Integer z) { return std::min(std::max(x, y), z); }},
    IntegerOperator{"bitwise_and", 2, [](Integer x, Integer y, Integer) { return x & y; }},
    IntegerOperator{"bitwise_or", 2, [](Integer x, Integer y, Integer) { return x | y; }},
    IntegerOperator{"bitwise_xor", 2, [](Integer x, Integer y, Integer) { return x ^ y; }},
    IntegerOperator{"where", 3, [](Integer x, Integer y, Integer z) { return x != 0 ? y : z; }},
    IntegerOperator{"masked_fill", 3,
                    [](Integer x, Integer y, Integer z) { return y != 0 ? z : x; }},
    IntegerOperator{"eq", 2, [](Integer x, Integer y, Integer) { return Integer{x == y}; }, true},
    IntegerOperator{"ne", 2, [](Integer x, Integer y, Integer) { return Integer{x != y}; }, true},
    IntegerOperator{"lt", 2, [](Integer x, Integer y, Integer) { return Integer{x < y}; }, true},
    IntegerOperator{"le", 2, [](Integer x, Integer y, Integer) { return Integer{x <= y}; }, true},
    IntegerOperator{"gt", 2, [](Integer x, Integer y, Integer) { return Integer{x > y}; }, true},
    IntegerOperator{"ge", 2, [](Integer x, Integer y, Integer) { return Integer{x >= y}; }, true},
    IntegerOperator{"logical_and", 2,
                    [](Integer x, Integer y, Integer) { return Integer{x != 0 && y != 0}; }, true},
    IntegerOperator{"logical_or", 2,
                    [](Integer x, Integer y, Integer) { return Integer{x != 0 || y != 0}; }, true},
    IntegerOperator{"logical_xor", 2,
                    [](Integer x, Integer y, Integer) { return Integer{(x != 0) != (y != 0)}; },
                    true},
};

}  // namespace

const IntegerOperator* find_integer_operator(std::string_view name) {
  const auto found = std::ranges::find(table, name, &IntegerOperator::name);
  return found == table.end() ? nullptr : &*found;
}

Tensor run_integers(const IntegerOperator& op, std::span<const Tensor* const> operands,
                    const formats::Format& type) {
  const auto shape = broadcast_shape(operands);
  assert(shape && operands.size() == static_cast<std::size_t>(op.operands));
  std::array<std::vector<Integer>, 3> numbers;
  std::vector<BroadcastPlaces> places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    numbers[i] = integers_of(*operands[i]);
    places.emplace_back(operands[i]->shape, *shape);
  }
  Integer count = 1;
  for (const Integer size : *shape) count *= size;
  std::vector<Integer> results(static_cast<std::size_t>(count));
  for (Integer& result : results) {
    std::array<Integer, 3> x{};
    for (std::size_t i = 0; i < operands.size(); ++i)
      x[i] = numbers[i][static_cast<std::size_t>(places[i].next())];
    result = op.run(x[0], x[1], x[2]);
  }
  return tensor_of_integers(type, *shape, results);
}

}  // namespace guardbit::emulator::operators

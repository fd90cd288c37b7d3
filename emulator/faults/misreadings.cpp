#include "emulator/faults/misreadings.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace guardbit::emulator {

namespace {

using Operand = Misreading::Operand;
using Place = Misreading::Place;
using Map = Misreading::Map;
using Reading = Misreading::Reading;

Place at(std::int64_t index, const MatrixShape& shape) {
  if (index < 0 || index >= shape.rows * shape.columns) return {-1, -1};
  return {index / shape.columns, index % shape.columns};
}

/// Tiles of `down` x `across` elements whose elements lie as those of the transposed tile do.
Map transposed_tiles(std::int64_t down, std::int64_t across) {
  return [=](auto i, auto j) {
    const std::int64_t index = j % across * down + i % down;
    return Place(i / down * down + index / across, j / across * across + index % across);
  };
}

Place itself(std::int64_t i, std::int64_t j) { return {i, j}; }
Place turned(std::int64_t i, std::int64_t j) { return {j, i}; }

/// One operand's elements of K some places from the other's: a pipeline that is off by a stage.
void add_shifts_of_k(const WholeProduct& x, std::vector<Misreading>& list) {
  for (const Operand operand : {Operand::a, Operand::b}) {
    const bool is_a = operand == Operand::a;
    const char* const name = is_a ? "A" : "B";
    const char* const lines = is_a ? "column" : "row";
    for (const std::int64_t by :
         {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64, 128, -128}) {
      const std::int64_t count = std::abs(by), k = x.k;
      if (2 * count > k) continue;
      const std::string text = std::string(name) + ": each " + lines + " is the one " +
                               std::to_string(count) +
                               (by > 0 ? " further on, the last " : " before, the first ") +
                               (count == 1 ? "one is " : std::to_string(count) + " are ");
      const auto add = [&](FaultKind kind, const std::string& edge, auto place, bool zeros) {
        const Map map = [=](auto i, auto j) {
          return is_a ? Place(i, place(j)) : Place(place(i), j);
        };
        list.push_back(
            {.kind = kind, .text = text + edge, .reading = {operand, map}, .reads_zeros = zeros});
      };
      add(
          FaultKind::permuted_k,
          std::string("the ") + (by > 0 ? "first" : "last") + (count == 1 ? " one" : " ones"),
          [=](std::int64_t l) { return (l + by + k) % k; }, false);
      add(
          FaultKind::stale_k, "zero", [=](std::int64_t l) { return l + by; }, true);
      add(
          FaultKind::stale_k, "right",
          [=](std::int64_t l) { return l + by < 0 || l + by >= k ? l : l + by; }, false);
    }
  }
}

/// By what the units of a line of shared memory are exchanged if one side swizzles otherwise than
/// the other.
struct Swizzle {
  std::string text;
  std::function<std::int64_t(std::int64_t)> turns;
};
std::vector<Swizzle> swizzles(const std::string& line_name) {
  std::vector<Swizzle> list;
  const auto turned_by = [&](std::int64_t lines, std::int64_t count) {
    return line_name + (lines == 1 ? "" : " / " + std::to_string(lines)) + " mod " +
           std::to_string(count);
  };
  for (const std::int64_t count : {8, 4, 2})
    for (const std::int64_t lines : {1, 2, 4, 8})
      list.push_back({"(" + turned_by(lines, count) + "), as a swizzle that one side does not undo",
                      [=](std::int64_t line) { return line / lines % count; }});
  // Copies and descriptors of Hopper know swizzles of 128, 64 and 32 bytes.
  struct Mode {
    std::int64_t bytes, lines, count;
  };
  constexpr Mode modes[] = {{128, 1, 8}, {64, 2, 4}, {32, 4, 2}};
  for (const auto& [one, other] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    const Mode p = modes[one], q = modes[other];
    list.push_back({"((" + turned_by(p.lines, p.count) + ") xor (" + turned_by(q.lines, q.count) +
                        ")), as where one side swizzles " + std::to_string(p.bytes) +
                        " bytes and the other " + std::to_string(q.bytes),
                    [=](std::int64_t line) {
                      return (line / p.lines % p.count) ^ (line / q.lines % q.count);
                    }});
  }
  return list;
}

/// One operand's elements of K in an order that registers or shared memory give them.
void add_orders_of_k(const WholeProduct& x, std::vector<Misreading>& list) {
  for (const Operand operand : {Operand::a, Operand::b}) {
    const bool is_a = operand == Operand::a;
    const std::string of_operand = is_a ? "A: " : "B: ";
    const std::int64_t k = x.k;
    // `place` knows k and the row of A or the column of B.
    const auto add = [&](FaultKind kind, const std::string& text, auto place) {
      const Map map = [=](auto i, auto j) {
        const std::int64_t l = is_a ? j : i, from = place(l, is_a ? i : j);
        const std::int64_t used = from < k ? from : l;
        return is_a ? Place(i, used) : Place(used, j);
      };
      list.push_back({.kind = kind, .text = of_operand + text, .reading = {operand, map}});
    };
    for (const std::int64_t mask : {1, 2, 4, 8, 16, 32})
      add(FaultKind::permuted_k, "halves of each " + std::to_string(2 * mask) + " k are exchanged",
          [=](std::int64_t l, std::int64_t) { return l ^ mask; });
    for (const std::int64_t group : {4, 8, 16, 32}) {
      const std::string of_group = "each " + std::to_string(group) + " k are ";
      add(FaultKind::permuted_k, of_group + "in the opposite order",
          [=](std::int64_t l, std::int64_t) { return l ^ (group - 1); });
      for (std::int64_t step = 2; step < group; step *= 2)
        add(FaultKind::permuted_k,
            of_group + "taken in steps of " + std::to_string(step) + ": the second is " +
                std::to_string(step),
            [=](std::int64_t l, std::int64_t) {
              const std::int64_t in = l % group, count = group / step;
              return l - in + in % count * step + in / count;
            });
    }
    for (const Swizzle& swizzle : swizzles(is_a ? "row" : "column")) {
      for (const std::int64_t wide : {1, 2, 4, 8, 16}) {
        const std::string text =
            "k is taken from k xor " + (wide == 1 ? "" : std::to_string(wide) + " ") + swizzle.text;
        const auto place = [=, turns = swizzle.turns](std::int64_t l, std::int64_t line) {
          return l ^ (turns(line) * wide);
        };
        add(FaultKind::permuted_k, text, place);
        if (k % (8 * wide) == 0) continue;
        // Behind the end of K loads fill shared memory with zeros.
        const Map map = [=](auto i, auto j) {
          const std::int64_t from = is_a ? place(j, i) : place(i, j);
          if (from >= k) return Place(-1, -1);
          return is_a ? Place(i, from) : Place(from, j);
        };
        list.push_back({.kind = FaultKind::permuted_k,
                        .text = of_operand + text + "; zeros lie behind the end of K",
                        .reading = {operand, map},
                        .reads_zeros = true});
      }
    }
    const Map exchanged = [shape = shape_of(x, operand)](auto i, auto j) {
      const bool is_beside = ((i ^ j) & 8) != 0;
      const Place other(i ^ 8, j ^ 8);
      return is_beside && other.first < shape.rows && other.second < shape.columns ? other
                                                                                   : Place(i, j);
    };
    list.push_back(
        {.kind = FaultKind::transposed,
         .text =
             of_operand + "of each 16 x 16, the blocks of 8 x 8 beside the diagonal are exchanged",
         .reading = {operand, exchanged}});
  }
}

/// Square operands in each other's place.
void add_exchanges(const WholeProduct& x, std::vector<Misreading>& list) {
  if (x.m != x.k || x.n != x.k) return;
  list.push_back({.kind = FaultKind::wrong_operand,
                  .text = "A and B are exchanged: D is B * A",
                  .reading = {Operand::a, itself, Operand::b},
                  .second = Reading{Operand::b, itself, Operand::a}});
  list.push_back({.kind = FaultKind::transposed,
                  .text = "A and B are both transposed: D is the transposed B * A",
                  .reading = {Operand::a, turned},
                  .second = Reading{Operand::b, turned}});
}

/// A or B read without signs, or from the other one's place.
void add_operand_mistakes(const WholeProduct& x, std::vector<Misreading>& list) {
  for (const Operand operand : {Operand::a, Operand::b}) {
    const bool is_a = operand == Operand::a;
    const std::string name = is_a ? "A" : "B", other = is_a ? "B" : "A";
    const Operand source = is_a ? Operand::b : Operand::a;
    const MatrixShape shape = shape_of(x, operand), of_source = shape_of(x, source);
    std::string lost = "elements of ";
    lost.append(name).append(" have lost their sign: all are positive");
    list.push_back({.kind = FaultKind::wrong_sign,
                    .text = std::move(lost),
                    .reading = {operand, itself},
                    .is_positive = true});
    const auto add = [&](std::string what, Map map) {
      what.append(" stands in the place of ").append(name);
      list.push_back({.kind = FaultKind::wrong_operand,
                      .text = std::move(what),
                      .reading = {operand, std::move(map), source}});
    };
    if (of_source.rows >= shape.rows && of_source.columns >= shape.columns) add(other, itself);
    if (of_source.columns >= shape.rows && of_source.rows >= shape.columns)
      add("the transposed " + other, turned);
    if (of_source.columns != shape.columns)
      add("what lies in memory at " + other + "'s place",
          [=](auto i, auto j) { return at(i * shape.columns + j, of_source); });
  }
}

}  // namespace

MatrixShape shape_of(const WholeProduct& x, Misreading::Operand operand) {
  switch (operand) {
    case Operand::a: return {x.m, x.k};
    case Operand::b: return {x.k, x.n};
    case Operand::bias: return {1, x.n};
    case Operand::c:
    case Operand::d: break;
  }
  return {x.m, x.n};
}

std::vector<Misreading> misreadings(const WholeProduct& x) {
  std::vector<Misreading> list;
  add_shifts_of_k(x, list);
  add_orders_of_k(x, list);
  add_exchanges(x, list);
  if (x.bias)
    list.push_back({.kind = FaultKind::misplaced_c,
                    .text = "the bias is added by the number of the row, not of the column",
                    .reading = {Operand::bias, [](auto i, auto) { return Place(0, i); }}});
  for (const Operand operand : {Operand::a, Operand::b, Operand::c, Operand::d}) {
    if (operand == Operand::c && (!x.c || x.beta == 0)) continue;
    const MatrixShape shape = shape_of(x, operand);
    const std::string name(1, "ABCD"[static_cast<std::size_t>(operand)]);
    const auto add = [&](FaultKind kind, const std::string& text, Map map,
                         bool reads_zeros = false) {
      list.push_back({.kind = kind,
                      .text = name + text,
                      .reading = {operand, std::move(map)},
                      .reads_zeros = reads_zeros});
    };
    if (shape.rows == shape.columns)
      add(FaultKind::transposed, " is transposed", turned);
    else if (shape.rows > 1 && shape.columns > 1)
      add(FaultKind::transposed, " is read as if it were stored the other way round",
          [=](auto i, auto j) { return at(j * shape.rows + i, shape); });
    if (operand == Operand::d && shape.rows > 1 && shape.columns > 1)
      add(FaultKind::transposed, " is stored column by column", [=](auto i, auto j) {
        const std::int64_t index = i * shape.columns + j;
        return Place(index % shape.rows, index / shape.rows);
      });
    std::vector<std::int64_t> strides = {x.m, x.n, x.k};
    for (std::int64_t by = 1; by <= 32; by *= 2)
      strides.push_back(shape.columns - by), strides.push_back(shape.columns + by);
    for (const std::int64_t to : {8, 16, 32, 64, 128})
      for (const std::int64_t more : {to - 1, to})
        strides.push_back((shape.columns + more) / to * to);
    std::sort(strides.begin(), strides.end());
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    for (const std::int64_t stride : strides) {
      if (stride <= 0 || stride == shape.columns) continue;
      const std::string text = " has the leading dimension " + std::to_string(stride) + ", not " +
                               std::to_string(shape.columns);
      if (stride > shape.columns && (operand == Operand::a || operand == Operand::b)) {
        add(
            FaultKind::wrong_stride, text + ", and what lies behind it is zero",
            [=](auto i, auto j) { return at(i * stride + j, shape); }, true);
        add(
            FaultKind::wrong_stride,
            " lies in memory with the leading dimension " + std::to_string(stride) +
                ", zeros between its rows, and is read with " + std::to_string(shape.columns),
            [=](auto i, auto j) {
              const std::int64_t index = i * shape.columns + j;
              return Place(index / stride, index % stride);
            },
            true);
      }
      add(FaultKind::wrong_stride, text, [=, writes = operand == Operand::d](auto i, auto j) {
        const std::int64_t index = i * shape.columns + j;
        return writes ? Place(index / stride, index % stride) : at(i * stride + j, shape);
      });
    }
    for (const std::int64_t by : {1, -1, 2, -2, 3, -3, 4, -4, 8, -8, 16, -16})
      add(FaultKind::wrong_stride,
          " begins " + std::to_string(std::abs(by)) + " elements " +
              (by > 0 ? "too late" : "too early"),
          [=](auto i, auto j) { return at(i * shape.columns + j + by, shape); });
    for (const std::int64_t by : {1, -1, 8, -8, 16, -16, 32, -32, 64, -64}) {
      const std::string where = std::to_string(std::abs(by)) + (by > 0 ? " further on" : " before");
      add(operand == Operand::c ? FaultKind::misplaced_c : FaultKind::wrong_stride,
          ": each row is the one " + where, [=](auto i, auto j) { return Place(i + by, j); });
      add(operand == Operand::c ? FaultKind::misplaced_c : FaultKind::wrong_stride,
          ": each column is the one " + where, [=](auto i, auto j) { return Place(i, j + by); });
    }
    for (const std::int64_t down : {8, 16, 32, 4})
      for (const std::int64_t across : {8, 16, 32, 4})
        if (shape.rows >= down && shape.columns >= across)
          add(FaultKind::transposed,
              " is transposed within each tile of " + std::to_string(down) + " x " +
                  std::to_string(across),
              transposed_tiles(down, across));
    if (operand == Operand::b || shape.rows < 2) continue;
    add(operand == Operand::c ? FaultKind::misplaced_c : FaultKind::permuted_rows,
        ": rows are in the opposite order",
        [=](auto i, auto j) { return Place(shape.rows - 1 - i, j); });
  }
  add_operand_mistakes(x, list);
  return list;
}

}  // namespace guardbit::emulator

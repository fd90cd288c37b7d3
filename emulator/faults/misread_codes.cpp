#include "emulator/faults/misread_codes.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/support/stop.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

namespace {

/// Rows and columns of which a few outputs are looked at, then more.
constexpr std::int64_t sides[] = {2, 6, 40};

/// Entry g of D agrees with this problem, on a few outputs and then on more, and not by chance.
bool is_product_of(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g) {
  constexpr std::ptrdiff_t fewest = 16;
  for (const std::int64_t side : sides) {
    formats::check_stop();
    const ProductNumbers x =
        numbers_of(capture, problem, g, spread(problem.m(), side), spread(problem.n(), side));
    const Expected asked = x.asked();
    std::ptrdiff_t told = 0;
    for (std::size_t i = 0; i < x.d.values.size(); ++i)
      told += std::isfinite(asked.result.values[i]) && x.d.values[i] != 0 ? 1 : 0;
    const bool is_telling = side < 40 || told >= std::min(fewest, std::ssize(x.d.values));
    if (!is_telling || !agrees(x, asked)) return false;
  }
  return true;
}

/// One entry of all operands, in the place of all.
GemmProblem entry_of(const GemmProblem& problem, std::int64_t g) {
  return part(problem, {.g = g, .batch = 1, .rows = problem.m(), .columns = problem.n()});
}

/// Entry g of D is its own product and, of another entry, the product or all that D holds.
bool holds_besides(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                   std::int64_t other, bool all_of_it) {
  if (capture.activation != Activation::none) return false;
  for (const std::int64_t side : sides) {
    const std::vector<std::int64_t> rows = spread(problem.m(), side),
                                    columns = spread(problem.n(), side);
    const ProductNumbers x = numbers_of(capture, problem, g, rows, columns),
                         y = numbers_of(capture, problem, other, rows, columns);
    const Expected before = y.product_alone(), addend = y.asked() - before;
    Expected expected = x.asked();
    RealMatrix extra(x.m(), x.n());
    for (std::size_t i = 0; i < x.d.values.size(); ++i) {
      const double more =
          all_of_it ? y.d.values[i] - addend.result.values[i] : before.result.values[i];
      expected.result.values[i] += more;
      expected.magnitude.values[i] += std::abs(more) + before.magnitude.values[i];
      extra.values[i] = 2 * x.rounding_of_d(more);
    }
    if (!agrees(x, expected, &extra)) return false;
  }
  return true;
}

/// Entries that a kernel may take for g: its neighbours and some of all.
std::vector<std::int64_t> other_entries(std::int64_t batch, std::int64_t g) {
  constexpr std::int64_t most = 48;
  std::vector<std::int64_t> others = {g - 1, g + 1};
  for (const std::int64_t other : spread(batch, most)) others.push_back(other);
  std::erase_if(others,
                [&](std::int64_t other) { return other < 0 || other >= batch || other == g; });
  return others;
}

/// The matrix with the bytes of each element in the other order.
CodeMatrix with_swapped_bytes(const CodeMatrix& matrix) {
  CodeMatrix result = make_matrix(matrix.format, matrix.batch, matrix.rows, matrix.columns);
  const int bytes = formats::bits(matrix.format) / 8;
  for (std::int64_t at = 0; at < matrix.size(); ++at) {
    std::uint64_t code = matrix[at], swapped = 0;
    for (int byte = 0; byte < bytes; ++byte, code >>= 8) swapped = swapped << 8 | (code & 0xff);
    result.set(at, swapped);
  }
  return result;
}

/// The same codes in the other format of their width that kernels mistake for it.
std::optional<formats::Format> look_alike(const formats::Format& format) {
  for (const auto& [one, other] : {std::pair{formats::fp16, formats::bf16},
                                   {formats::e4m3, formats::e5m2},
                                   {formats::int8, formats::uint8}}) {
    if (format == one) return other;
    if (format == other) return one;
  }
  return {};
}

struct Misread {
  std::string how;
  CodeMatrix a, b;
};

}  // namespace

Faults find_misread_codes(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g) {
  if (problem.sparse_a || capture.convolution) return {};
  std::vector<Misread> misread;
  if (const auto other = look_alike(problem.a.format);
      other && problem.a.format == problem.b.format) {
    Misread x = {"were read as " + formats::name_of(*other) + ", not as " +
                     formats::name_of(problem.a.format),
                 problem.a, problem.b};
    x.a.format = x.b.format = *other;
    misread.push_back(std::move(x));
  }
  const int width = formats::bits(problem.a.format);
  if ((width == 16 || width == 32) && problem.a.format != formats::tf32 &&
      problem.a.format == problem.b.format)
    misread.push_back({"were read with their bytes in the other order",
                       with_swapped_bytes(problem.a), with_swapped_bytes(problem.b)});
  for (const Misread& x : misread) {
    for (const auto& [operand, name, of_a, of_b] : {std::tuple{"a", "elements of A ", true, false},
                                                    {"b", "elements of B ", false, true},
                                                    {"both", "elements of A and B ", true, true}}) {
      GemmProblem y = problem;
      if (of_a) y.a = x.a;
      if (of_b) y.b = x.b;
      if (is_product_of(capture, y, g))
        return {{.kind = FaultKind::misread_format, .operand = operand, .text = name + x.how}};
    }
  }
  return {};
}

Faults find_other_entry(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g) {
  const std::int64_t batch = capture.d.batch;
  if (batch < 2 || capture.convolution) return {};
  const std::vector<std::int64_t> others = other_entries(batch, g);
  for (const std::int64_t other : others)
    if (is_product_of(capture, entry_of(problem, other), g))
      return {{.kind = FaultKind::moved_tile,
               .operand = "d",
               .text = "D holds the product of entry " + std::to_string(other)}};
  for (const std::int64_t other : others) {
    const bool is_all = !holds_besides(capture, problem, g, other, false);
    if (is_all && !holds_besides(capture, problem, g, other, true)) continue;
    return {{.kind = FaultKind::stale_accumulator,
             .operand = "d",
             .text = "D holds, besides its own product, " +
                     std::string(is_all ? "all that entry " : "that of entry ") +
                     std::to_string(other) + (is_all ? " holds" : "") +
                     ": sums are not set to zero between entries"}};
  }
  for (const bool of_a : {false, true}) {
    const CodeMatrix& operand = of_a ? problem.a : problem.b;
    if (operand.batch == 1) continue;
    for (const std::int64_t other : others) {
      GemmProblem y = problem;
      // One entry of it, in the place of all.
      (of_a ? y.a : y.b) = operand.entries(other, 1);
      if (!is_product_of(capture, y, g)) continue;
      const std::string name = of_a ? "A" : "B";
      return {{.kind = FaultKind::wrong_operand,
               .operand = of_a ? "a" : "b",
               .text = name + " of entry " + std::to_string(other) +
                       " stands in the place of its own"}};
    }
  }
  return {};
}

}  // namespace guardbit::emulator

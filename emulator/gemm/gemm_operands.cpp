#include "emulator/gemm/gemm_operands.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/continuation.hpp"
#include "emulator/gemm/few_dots.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/arithmetic.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/support/error.hpp"

// What becomes of A and B before a plan's unit takes them: rounded, cut into pieces, permuted,
// compressed.
namespace guardbit::emulator {

namespace {

using formats::Error;

/// Numbers of that format that lie where the CPU reads them as its own: rows of neighbours at
/// addresses that their size divides.
bool are_native(const CodeMatrix& matrix, const Format& format) {
  const auto width = static_cast<std::uintptr_t>(formats::container_bits(format) / 8);
  return matrix.format == format && matrix.all_strides().column == 1 &&
         std::bit_cast<std::uintptr_t>(matrix.bytes.data()) % width == 0;
}

/// The matrix rounded to a format once.
CodeMatrix converted(const CodeMatrix& matrix, const Format& format, Rounding rounding) {
  constexpr std::int64_t few = 256;
  if (matrix.format == format) return matrix;
  CodeMatrix result = make_matrix(format, matrix.batch, matrix.rows, matrix.columns);
  if (result.size() < few) {
    for (std::int64_t i = 0; i < result.size(); ++i)
      result.set(i, formats::convert(matrix.format, matrix[i], format, rounding));
    return result;
  }
  constexpr auto packing = formats::Packing::container;
  formats::ConversionOptions options;
  options.rounding = rounding;
  const CodeMatrix from = matrix.contiguous();
  const auto count = static_cast<std::size_t>(result.size());
  formats::convert_array(
      matrix.format, packing,
      std::span<const std::byte>(from.bytes)
          .first(count * static_cast<std::size_t>(formats::container_bits(matrix.format)) / 8),
      format, packing, {result.bytes.writable(), result.bytes.size()}, count, options);
  return result;
}

/// As `converted`, where a CUDA core's multiply-adds take it.
CodeMatrix native(const CodeMatrix& matrix, const Format& format, Rounding rounding) {
  if (are_native(matrix, format)) return matrix;
  if (matrix.format != format) return converted(matrix, format, rounding);
  CodeMatrix copy = make_matrix(format, matrix.batch, matrix.rows, matrix.columns);
  copy_matrix(matrix, copy, 0, 0, 0);
  return copy;
}

/// The pieces of every element, the leading one first: each the rest rounded, scaled by 2^shift
/// once more.
std::vector<CodeMatrix> pieces_of(const CodeMatrix& matrix, const Format& format,
                                  const InputConversion& input) {
  std::vector<CodeMatrix> pieces(static_cast<std::size_t>(input.pieces),
                                 make_matrix(format, matrix.batch, matrix.rows, matrix.columns));
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    formats::Value rest = formats::decode(matrix.format, matrix[i]);
    for (CodeMatrix& piece : pieces) {
      const bool is_last = input.pieces > 1 && &piece == &pieces.back();
      const Rounding rounding = is_last ? input.last.value_or(input.rounding) : input.rounding;
      const std::uint64_t code = formats::encode(format, rest, rounding);
      piece.set(i, code);
      if (&piece == &pieces.back()) break;
      // Numbers of a few dozen bits each: FP64 holds the difference exactly.
      const formats::Unrounded difference = formats::subtract(
          formats::exactly(rest), formats::exactly(formats::decode(format, code)));
      rest = formats::decode(formats::fp64, formats::encode(formats::fp64, difference));
      if (rest.kind == formats::Kind::finite) rest.exponent += input.shift;
    }
  }
  return pieces;
}

/// Integers of which  sum 2^(exponent - bits (s + 1)) * slice s  is nearly the line, whose numbers
/// are below 2^exponent.
struct IntegerSlices {
  std::vector<CodeMatrix> matrices;
  std::vector<int> exponents;
};

/// Integer slices of the rows of a matrix (of A), or of its columns.
IntegerSlices integer_slices_of(const CodeMatrix& matrix, const Format& format, int count,
                                bool of_rows) {
  IntegerSlices slices;
  slices.matrices.assign(static_cast<std::size_t>(count),
                         make_matrix(format, matrix.batch, matrix.rows, matrix.columns));
  const int slice_bits = formats::bits(format) - 1;
  const std::int64_t lines = of_rows ? matrix.rows : matrix.columns;
  const std::int64_t length = of_rows ? matrix.columns : matrix.rows;
  for (std::int64_t line = 0; line < matrix.batch * lines; ++line) {
    const auto at = [&](std::int64_t k) {
      return of_rows ? matrix.index(line / lines, line % lines, k)
                     : matrix.index(line / lines, k, line % lines);
    };
    double largest = 0;
    for (std::int64_t k = 0; k < length; ++k) {
      const double x = std::fabs(scalar::decoded(matrix.format, matrix[at(k)]));
      largest = std::isfinite(x) ? std::max(largest, x) : INFINITY;
      if (!std::isfinite(x)) break;
    }
    int exponent = 0;
    std::frexp(std::isfinite(largest) ? largest : 0, &exponent);
    slices.exponents.push_back(std::isfinite(largest) ? exponent : no_exponent);
    for (std::int64_t k = 0; k < length && std::isfinite(largest); ++k) {
      // Truncating keeps every rest exact and below one unit of the slice.
      double rest = std::ldexp(scalar::decoded(matrix.format, matrix[at(k)]), -exponent);
      for (CodeMatrix& slice : slices.matrices) {
        rest = std::ldexp(rest, slice_bits);
        const double integer = std::trunc(rest);
        rest -= integer;
        slice.set(at(k), scalar::encoded(format, integer));
      }
    }
  }
  return slices;
}

/// Ranks of the pieces of A and B that are multiplied, smaller products first.
std::vector<std::pair<int, int>> piece_products(const InputConversion& input) {
  std::vector<std::pair<int, int>> products;
  for (int total = std::min(2 * input.pieces - 2, input.ranks - 1); total >= 0; --total) {
    for (int a = input.pieces - 1; a >= 0; --a) {
      const int b = total - a;
      if (b < 0 || b >= input.pieces) continue;
      products.emplace_back(input.b_first ? std::pair(b, a) : std::pair(a, b));
    }
  }
  return products;
}

/// The matrix with `run` elements of K of each product in turn, K along the columns (of A) or
/// along the rows (of B); each run is filled up with zeros to `places`.
CodeMatrix expanded(const std::vector<CodeMatrix>& pieces, const std::vector<int>& ranks,
                    std::int64_t run, std::int64_t places, bool along_columns) {
  const CodeMatrix& first = pieces.front();
  const std::int64_t k = along_columns ? first.columns : first.rows;
  const std::int64_t steps = (k + run - 1) / run;
  const auto terms = static_cast<std::int64_t>(ranks.size());
  const std::int64_t all = steps * terms * places;
  CodeMatrix result = along_columns ? make_matrix(first.format, first.batch, first.rows, all)
                                    : make_matrix(first.format, first.batch, all, first.columns);
  const std::int64_t others = along_columns ? first.rows : first.columns;
  for (std::int64_t g = 0; g < first.batch; ++g) {
    for (std::int64_t x = 0; x < all; ++x) {
      const std::int64_t source = x / (places * terms) * run + x % places;
      if (x % places >= run || source >= k) continue;
      const auto rank =
          static_cast<std::size_t>(ranks[static_cast<std::size_t>(x / places % terms)]);
      for (std::int64_t i = 0; i < others; ++i)
        result.set(along_columns ? result.index(g, i, x) : result.index(g, x, i),
                   along_columns ? pieces[rank](g, i, source) : pieces[rank](g, source, i));
    }
  }
  return result;
}

/// The k that stands at each place once loads have permuted K; -1 past the last.
std::vector<std::int64_t> load_order(const LoadOrder& loads, std::int64_t k) {
  const std::int64_t tile = std::int64_t{loads.lanes} * loads.run;
  std::vector<std::int64_t> order;
  for (std::int64_t first = 0; first < k; first += tile)
    for (int step = 0; step < loads.run; step += loads.take)
      for (int lane = 0; lane < loads.lanes; ++lane)
        for (int i = 0; i < loads.take; ++i) {
          const std::int64_t source = first + std::int64_t{lane} * loads.run + step + i;
          order.push_back(source < k ? source : -1);
        }
  return order;
}

/// A and B with K permuted, filled up with zeros to whole tiles.
GemmProblem loaded(const GemmProblem& problem, const LoadOrder& loads) {
  const std::vector<std::int64_t> order = load_order(loads, problem.k());
  const std::int64_t k = std::ssize(order);
  GemmProblem x;
  x.a = make_matrix(problem.a.format, problem.a.batch, problem.m(), k);
  x.b = make_matrix(problem.b.format, problem.b.batch, k, problem.n());
  for (std::int64_t g = 0; g < x.a.batch; ++g) {
    for (std::int64_t to = 0; to < k; ++to) {
      const std::int64_t from = order[static_cast<std::size_t>(to)];
      for (std::int64_t i = 0; from >= 0 && i < x.m(); ++i)
        x.a.set(x.a.index(g, i, to), problem.a(g, i, from));
      for (std::int64_t j = 0; from >= 0 && j < x.n(); ++j)
        x.b.set(x.b.index(g, to, j), problem.b(g, from, j));
    }
  }
  return x;
}

/// Alpha times every element, in the format of the sums.
void multiply_by(double alpha, const Format& sum, CodeMatrix& matrix) {
  const double factor = scalar::rounded(sum, alpha);
  CodeMatrix product = make_matrix(sum, matrix.batch, matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.size(); ++i)
    product.set(i,
                scalar::encoded(
                    sum, scalar::multiply(sum, factor, scalar::decoded(matrix.format, matrix[i]))));
  matrix = std::move(product);
}

/// A and B cut into pieces or slices, as chains take their products.
void cut(const InputConversion& input, const GemmProblem& problem, GemmOperands& x) {
  const MatrixInstruction& instruction = *x.instruction;
  std::vector<CodeMatrix> a, b;
  if (input.has_integer_slices()) {
    IntegerSlices of_a = integer_slices_of(problem.a, instruction.a, input.pieces, true);
    IntegerSlices of_b = integer_slices_of(problem.b, instruction.b, input.pieces, false);
    a = std::move(of_a.matrices), b = std::move(of_b.matrices);
    x.a_exponents = std::move(of_a.exponents), x.b_exponents = std::move(of_b.exponents);
  } else {
    a = pieces_of(problem.a, instruction.a, input), b = pieces_of(problem.b, instruction.b, input);
  }
  using Products = std::vector<std::pair<int, int>>;
  std::vector<Products> chains;  // products that share one
  for (const auto& product : piece_products(input)) {
    const int rank = product.first + product.second;
    const bool apart = chains.empty() || input.cut == InputConversion::Cut::slices ||
                       (input.cut != InputConversion::Cut::rest &&
                        chains.back().back().first + chains.back().back().second != rank);
    if (apart) chains.emplace_back();
    chains.back().push_back(product);
  }
  for (const Products& products : chains) {
    std::vector<int> a_ranks, b_ranks;
    for (const auto& [i, j] : products) a_ranks.push_back(i), b_ranks.push_back(j);
    GemmOperands of_chain;
    of_chain.instruction = x.instruction;
    of_chain.sum = x.sum;
    of_chain.run = input.run != 0 ? input.run : x.run;
    of_chain.places = (of_chain.run + x.run - 1) / x.run * x.run;
    of_chain.expansion = std::ssize(products);
    of_chain.a = expanded(a, a_ranks, of_chain.run, of_chain.places, true);
    of_chain.b = expanded(b, b_ranks, of_chain.run, of_chain.places, false);
    x.apart.push_back({std::move(of_chain), products.front().first + products.front().second});
  }
  // The leading chain is the plan's own; of integer slices, none leads.
  GemmOperands& leading = x.apart.back().operands;
  x.expansion = leading.expansion;
  x.run = leading.run;
  x.places = leading.places;
  if (input.has_integer_slices()) {
    x.a = {instruction.a, problem.a.batch, problem.m(), leading.a.columns, {}};
    x.b = {instruction.b, problem.b.batch, leading.b.rows, problem.n(), {}};
    return;
  }
  x.a = std::move(leading.a), x.b = std::move(leading.b);
  x.apart.pop_back();
}

/// A of a 2:4 product as stored values and positions: the nonzeros of each group, then zeros.
void compress(const MatrixInstruction& instruction, GemmOperands& x, std::string_view where) {
  const Sparsity& s = instruction.sparsity;
  const CodeMatrix dense = std::move(x.a);
  const std::int64_t groups = dense.columns / s.group_elements;
  if (s.chunk != 1 || dense.columns % s.group_elements != 0)
    throw Error(std::string(where), "K = " + std::to_string(dense.columns) +
                                        " cannot be stored in the sparse form of " +
                                        std::string(std::string_view(instruction.name)));
  x.a = make_matrix(dense.format, dense.batch, dense.rows, groups * s.stored_per_group);
  x.e = make_matrix(formats::uint8, dense.batch, dense.rows, x.a.columns);
  const std::uint64_t magnitude = formats::is_integer(dense.format)
                                      ? formats::code_mask(dense.format)
                                      : formats::magnitude_mask(dense.format);
  std::vector<int> kept;
  for (std::int64_t line = 0; line < dense.batch * dense.rows; ++line) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t from = line * dense.columns + group * s.group_elements;
      kept.clear();
      for (int e = 0; e < s.group_elements; ++e)
        if ((dense[from + e] & magnitude) != 0) kept.push_back(e);
      if (std::ssize(kept) > s.stored_per_group)
        throw Error(std::string(where),
                    "A has more than " + std::to_string(s.stored_per_group) + " of " +
                        std::to_string(s.group_elements) + " neighbours that are not zero, which " +
                        std::string(std::string_view(instruction.name)) + " cannot store");
      for (int e = 0; std::ssize(kept) < s.stored_per_group; ++e)
        if (std::find(kept.begin(), kept.end(), e) == kept.end()) kept.push_back(e);
      std::sort(kept.begin(), kept.end());
      for (int i = 0; i < s.stored_per_group; ++i) {
        const std::int64_t to = line * x.a.columns + group * s.stored_per_group + i;
        x.a.set(to, dense[from + kept[static_cast<std::size_t>(i)]]);
        x.e.set(to, static_cast<std::uint64_t>(kept[static_cast<std::size_t>(i)]));
      }
    }
  }
}

}  // namespace

std::optional<Format> product_format(const GemmUnit& unit) {
  if (unit.arch != "simt") return {};
  for (const Format& format : {formats::fp32, formats::fp16, formats::bf16})
    if (unit.instruction == "mul_add." + formats::name_of(format)) return format;
  return {};
}

Format scalar_format(const GemmUnit& unit, std::string_view where) {
  if (product_format(unit)) return formats::fp32;
  if (unit.instruction == "fma.fp32") return formats::fp32;
  if (unit.instruction == "fma.fp64") return formats::fp64;
  if (unit.instruction == "fma.fp16") return formats::fp16;
  if (unit.instruction == "mad.int32") return formats::int32;
  throw Error(std::string(where), "unknown unit 'simt/" + unit.instruction + "'",
              "fma.fp32, mul_add.fp32, mul_add.fp16, mul_add.bf16, fma.fp64, fma.fp16, mad.int32");
}

namespace {

/// formats::Error for loads or runs that take the elements of a sparse group apart.
void require_whole_groups(const GemmPlan& plan, std::string_view where) {
  if (plan.unit.arch == "simt") return;
  const int group =
      require_instruction(plan.unit.arch, plan.unit.instruction, where).sparsity.group_elements;
  if (group == 0) return;
  const std::string stored = "where a sparse A is stored in groups of " + std::to_string(group);
  if (plan.loads.lanes != 0 && plan.loads.take % group != 0)
    throw Error(std::string(where),
                "loads take " + std::to_string(plan.loads.take) + " neighbours, " + stored,
                "a TAKE that is a multiple of " + std::to_string(group));
  if (plan.input.run % group != 0)
    throw Error(std::string(where),
                "input has runs of " + std::to_string(plan.input.run) + ", " + stored,
                "runs of a multiple of " + std::to_string(group));
}

}  // namespace

GemmOperands prepare_factors(const GemmPlan& plan, const GemmProblem& problem,
                             std::string_view where) {
  require_whole_groups(plan, where);
  if (plan.loads.lanes != 0) {
    GemmPlan plain = plan;
    plain.loads = {};
    return prepare_factors(plain, loaded(problem, plan.loads), where);
  }
  GemmOperands x;
  if (plan.unit.arch == "simt" && (plan.input.pieces > 1 || plan.input.has_integer_slices()))
    throw Error(std::string(where),
                std::string(plan.input.has_integer_slices() ? "slices" : "pieces") +
                    " are multiplied by an instruction of the catalogue, not by simt/" +
                    plan.unit.instruction);
  if (plan.products == ProductOrder::tree && !product_format(plan.unit))
    throw Error(std::string(where),
                "products=tree is of rounded products, not of " + plan.unit.arch + "/" +
                    plan.unit.instruction,
                "simt/mul_add.fp32, simt/mul_add.fp16, simt/mul_add.bf16");
  if (plan.unit.arch == "simt") {
    x.sum = scalar_format(plan.unit, where);
    x.products = product_format(plan.unit);
    const bool integer = formats::is_integer(x.sum);
    const Format factors = integer ? problem.a.format : x.products.value_or(x.sum);
    x.a = native(problem.a, factors, plan.input.rounding);
    x.b = native(problem.b, factors, plan.input.rounding);
    using AlphaOn = Epilogue::AlphaOn;
    if (plan.epilogue.scales_operand())
      multiply_by(plan.epilogue.alpha, factors, plan.epilogue.alpha_on == AlphaOn::a ? x.a : x.b);
    if (factors != x.sum && !integer) {
      x.a = native(x.a, x.sum, plan.input.rounding);
      x.b = native(x.b, x.sum, plan.input.rounding);
    }
    return x;
  }
  x.instruction = require_instruction(plan.unit.arch, plan.unit.instruction, where);
  x.sum = x.instruction->d;
  x.run = x.places = x.instruction->shape.k;
  require_k(*x.instruction, problem.k(), where);
  if (x.instruction->scale.count != 0)
    throw Error(std::string(where), std::string(std::string_view(x.instruction->name)) +
                                        " takes scale factors of blocks of K, which no plan has");
  for (const auto& [matrix, format] :
       {std::pair{&problem.a, x.instruction->a}, {&problem.b, x.instruction->b}}) {
    const bool integers = formats::is_integer(matrix->format);
    if (plan.input.has_integer_slices() && (integers || !formats::is_integer(format)))
      throw Error(std::string(where), "slices are floating numbers as integers of the unit, not " +
                                          formats::name_of(matrix->format) + " as " +
                                          formats::name_of(format));
    if (!plan.input.has_integer_slices() && integers != formats::is_integer(format))
      throw Error(std::string(where), std::string(std::string_view(x.instruction->name)) +
                                          " multiplies " + formats::name_of(format) + ", not " +
                                          formats::name_of(matrix->format));
  }
  // A compiler that multiplies an operand first, rounds it to that operand's format.
  GemmProblem scaled;
  const bool on_operand = plan.epilogue.scales_operand();
  if (on_operand) {
    scaled = problem;
    CodeMatrix& operand = plan.epilogue.alpha_on == Epilogue::AlphaOn::a ? scaled.a : scaled.b;
    multiply_by(plan.epilogue.alpha, operand.format, operand);
  }
  const GemmProblem& factors = on_operand ? scaled : problem;
  if (plan.input.pieces > 1 || plan.input.has_integer_slices()) {
    if (x.instruction->sparsity.group_elements != 0 && plan.input.cut != InputConversion::Cut::rest)
      throw Error(std::string(where), "no cut of sparse products but into rests is known");
    cut(plan.input, factors, x);
  } else {
    x.a = converted(factors.a, x.instruction->a, plan.input.rounding);
    x.b = converted(factors.b, x.instruction->b, plan.input.rounding);
  }
  if (x.instruction->sparsity.group_elements != 0) compress(*x.instruction, x, where);
  return x;
}

CodeMatrix initial_sums(const GemmPlan& plan, const GemmOperands& operands,
                        const GemmProblem& problem, std::string_view where) {
  if (plan.epilogue.addition != Epilogue::Addition::initial) return {};
  const bool has_c = !problem.c.empty();
  if (!has_c && problem.bias.empty())
    throw Error(std::string(where), "add=initial needs a C or a bias");
  if (plan.input.has_integer_slices() || plan.products == ProductOrder::tree)
    throw Error(std::string(where),
                "add=initial: integer slices and products=tree begin with zero");
  if (operands.instruction && !takes_addend(*operands.instruction))
    throw Error(std::string(where), std::string(std::string_view(operands.instruction->name)) +
                                        " takes no addend: no chain of it begins with C");
  CodeMatrix addend = has_c ? problem.c : problem.bias;
  const double beta = plan.epilogue.beta;
  if (has_c && beta != 0 && beta != 1) multiply_by(beta, plan.epilogue.compute, addend);
  addend = converted(addend, operands.instruction ? operands.instruction->c : operands.sum,
                     Rounding::nearest_even);
  if (has_c) return addend;
  addend.strides = {addend.all_strides().batch, 0, addend.all_strides().column};
  addend.rows = problem.m();
  return addend;
}

std::shared_ptr<const FewDots> few_dots_of(const GemmOperands& x) {
  return x.instruction && x.c.empty() ? FewDots::of(*x.instruction, x.a, x.b, x.e) : nullptr;
}

GemmOperands prepare(const GemmPlan& plan, const GemmProblem& problem, std::string_view where) {
  GemmOperands x = prepare_factors(plan, problem, where);
  x.c = initial_sums(plan, x, problem, where);
  if (!plan.input.has_integer_slices()) x.few = few_dots_of(x);
  for (PieceProducts& other : x.apart) other.operands.few = few_dots_of(other.operands);
  return x;
}

namespace {

/// Entries of a list that has one for every row (or column) of every batch entry.
std::vector<int> part(const std::vector<int>& from, std::int64_t lines, const OutputBlock& block,
                      std::int64_t first, std::int64_t count) {
  std::vector<int> to;
  for (std::int64_t g = block.g; !from.empty() && g < block.g + block.batch; ++g) {
    const auto begin = from.begin() + g * lines + first;
    to.insert(to.end(), begin, begin + count);
  }
  return to;
}

}  // namespace

GemmOperands part(const GemmOperands& x, const OutputBlock& block) {
  const auto rows = [&](const CodeMatrix& from) {
    return from.entries(block.g, block.batch).part(block.i, block.rows, 0, from.columns);
  };
  const auto columns = [&](const CodeMatrix& from) {
    return from.entries(block.g, block.batch).part(0, from.rows, block.j, block.columns);
  };
  GemmOperands result = x;
  result.few = nullptr;
  result.a = rows(x.a);
  result.b = columns(x.b);
  result.e = rows(x.e);
  if (!x.c.empty())
    result.c = (x.c.batch == 1 ? x.c : x.c.entries(block.g, block.batch))
                   .part(block.i, block.rows, block.j, block.columns);
  result.a_exponents = part(x.a_exponents, x.a.rows, block, block.i, block.rows);
  result.b_exponents = part(x.b_exponents, x.b.columns, block, block.j, block.columns);
  for (PieceProducts& other : result.apart) other.operands = part(other.operands, block);
  return result;
}

}  // namespace guardbit::emulator

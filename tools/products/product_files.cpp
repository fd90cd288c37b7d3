#include "tools/products/product_files.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>

#include "emulator/capture/bound_operands.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/products/operand_file.hpp"

namespace guardbit::tools {

namespace {

using emulator::CodeMatrix;
using formats::Error;

formats::Tensor read(const std::string& option, const std::string& name, const std::string& place,
                     const std::string& from) {
  formats::Tensor tensor = read_operand(option, name, place, formats::fp32, from);
  if (tensor.packing != formats::Packing::container)
    throw Error(option + " " + formats::printable(place), "packed elements are not taken here");
  if (formats::element_count(tensor.shape) == 0)
    throw Error(option + " " + formats::printable(place), "the tensor is empty");
  return tensor;
}

CodeMatrix matrix_at(const std::string& option, const std::string& place,
                     const formats::Tensor& tensor) {
  if (tensor.shape.size() != 2 && tensor.shape.size() != 3)
    throw Error(option + " " + formats::printable(place),
                "shape " + emulator::shape_text(tensor.shape) + " has not 2 or 3 dimensions");
  return emulator::matrix_of(tensor);
}

CodeMatrix read_matrix(const std::string& option, const std::string& name, const std::string& place,
                       const std::string& from) {
  return matrix_at(option, place, read(option, name, place, from));
}

std::vector<std::int64_t> shape_of(const CodeMatrix& m) {
  if (m.batch == 1) return {m.rows, m.columns};
  return {m.batch, m.rows, m.columns};
}

/// A number, or a tensor whose vector lies along the rows (`down`) or the columns.
CodeMatrix read_scale(const std::string& option, const std::string& name, const std::string& place,
                      bool down) {
  double number = 0;
  const auto [end, error] = std::from_chars(place.data(), place.data() + place.size(), number);
  if (error == std::errc() && end == place.data() + place.size()) {
    CodeMatrix m = emulator::make_matrix(formats::fp32, 1, 1, 1);
    m.set(0, formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(number), formats::fp32));
    return m;
  }
  formats::Tensor tensor = read(option, name, place, {});
  if (tensor.shape.size() < 2) {
    const std::int64_t count = formats::element_count(tensor.shape);
    tensor.shape = down ? std::vector<std::int64_t>{count, 1} : std::vector<std::int64_t>{1, count};
  }
  if (tensor.shape.size() > 3)
    throw Error(option + " " + formats::printable(place), "has more than 3 dimensions");
  return emulator::matrix_of(tensor);
}

/// formats::Error at the first group of four of A that stores more than two numbers. Pairs of FP4
/// numbers go together, so these are not looked at.
void require_sparse(const CodeMatrix& a, const std::string& place) {
  constexpr std::int64_t group = 4;
  constexpr int most = 2;
  if (formats::bits(a.format) < 8) return;
  std::int64_t at = 0;
  for (std::int64_t g = 0; g < a.batch; ++g) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      int count = 0;
      for (std::int64_t k = 0; k < a.columns; ++k, ++at) {
        if (k % group == 0) count = 0;
        if (formats::decode(a.format, a[at]).kind == formats::Kind::zero) continue;
        if (++count <= most) continue;
        throw Error("--sparse", "A " + formats::printable(place) + " is not 2:4 sparse: row " +
                                    std::to_string(i) + " has more than two numbers at k = " +
                                    std::to_string(k - k % group) + " to " +
                                    std::to_string(std::min(k - k % group + group, a.columns) - 1));
      }
    }
  }
}

}  // namespace

void add_operand_options(CLI::App& command, GemmPlaces& places) {
  command.add_option("--c", places.c,
                     "C: [M, N] or [B, M, N]; the plan's beta says how much of it");
  command.add_option("--bias", places.bias, "Bias: [N]");
  command.add_option("--scale-a", places.scale_a, "Scale of A: a number, [M], or [M, blocks of K]");
  command.add_option("--scale-b", places.scale_b, "Scale of B: a number, [N], or [blocks of K, N]");
  command
      .add_option("--from", places.from,
                  "The format of codes that the files have as integers, as cast writes FP8 to .npy")
      ->type_name("FORMAT");
  command.add_flag("--sparse", places.sparse, "A is 2:4 sparse, stored with its zeros");
}

GemmInput read_gemm_operands(const GemmPlaces& places) {
  GemmInput input;
  emulator::GemmProblem& x = input.problem;
  const formats::Tensor a = read("A", "a", places.a, places.from);
  input.batched = a.shape.size() == 3;
  x.a = matrix_at("A", places.a, a);
  x.b = read_matrix("B", "b", places.b, places.from);
  x.sparse_a = places.sparse;
  if (x.sparse_a) require_sparse(x.a, places.a);
  if (x.b.rows != x.k() || x.b.batch != x.a.batch) {
    const bool fits_otherwise = x.b.columns == x.m() && x.b.batch == x.a.batch;
    throw Error("B " + formats::printable(places.b),
                "is " + emulator::shape_text(shape_of(x.b)) + " where A is " +
                    emulator::shape_text(shape_of(x.a)) + ": B needs " + std::to_string(x.k()) +
                    " rows, A's K" + (x.b.batch == x.a.batch ? "" : ", and as many matrices as A") +
                    (fits_otherwise                                   ? "; A and B swapped?"
                     : x.b.columns == x.k() && x.b.batch == x.a.batch ? "; B transposed?"
                                                                      : ""));
  }
  if (!places.c.empty()) {
    x.c = read_matrix("--c", "c", places.c, places.from);
    if (x.c.rows != x.m() || x.c.columns != x.n() || (x.c.batch != 1 && x.c.batch != x.a.batch))
      throw Error("--c " + formats::printable(places.c), "is not of the shape of A * B");
  }
  if (!places.bias.empty()) {
    const formats::Tensor bias = read("--bias", "bias", places.bias, places.from);
    if (formats::element_count(bias.shape) != x.n())
      throw Error("--bias " + formats::printable(places.bias), "is not one row of A * B");
    x.bias = {bias.format, 1, 1, x.n(), {bias.bytes, bias.owner}};
  }
  if (!places.scale_a.empty()) x.scale_a = read_scale("--scale-a", "scale_a", places.scale_a, true);
  if (!places.scale_b.empty())
    x.scale_b = read_scale("--scale-b", "scale_b", places.scale_b, false);
  if (x.scale_a.rows > x.m() || x.scale_a.columns > x.k())
    throw Error("--scale-a", "more scales than elements of A");
  if (x.scale_b.rows > x.k() || x.scale_b.columns > x.n())
    throw Error("--scale-b", "more scales than elements of B");
  const std::int64_t blocks = std::max<std::int64_t>(
      {1, x.scale_a.empty() ? 1 : x.scale_a.columns, x.scale_b.empty() ? 1 : x.scale_b.rows});
  if (blocks > 1) x.scale_k = (x.k() + blocks - 1) / blocks;
  return input;
}

}  // namespace guardbit::tools

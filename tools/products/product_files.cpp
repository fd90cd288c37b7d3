#include "tools/products/product_files.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <utility>

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
  const auto where = [](const std::string& option, const std::string& place) {
    return option + " " + formats::printable(place);
  };
  ProductOperands x;
  const formats::Tensor a = read("A", "a", places.a, places.from);
  x.batched = a.shape.size() == 3;
  x.a = {matrix_at("A", places.a, a), where("A", places.a)};
  x.b = {read_matrix("B", "b", places.b, places.from), where("B", places.b)};
  x.sparse = places.sparse;
  if (!places.c.empty())
    x.c = {read_matrix("--c", "c", places.c, places.from), where("--c", places.c)};
  if (!places.bias.empty()) {
    const formats::Tensor bias = read("--bias", "bias", places.bias, places.from);
    x.bias = {{bias.format, 1, 1, formats::element_count(bias.shape), {bias.bytes, bias.owner}},
              where("--bias", places.bias)};
  }
  if (!places.scale_a.empty())
    x.scale_a = {read_scale("--scale-a", "scale_a", places.scale_a, true), "--scale-a"};
  if (!places.scale_b.empty())
    x.scale_b = {read_scale("--scale-b", "scale_b", places.scale_b, false), "--scale-b"};
  return gemm_input(std::move(x));
}

}  // namespace guardbit::tools

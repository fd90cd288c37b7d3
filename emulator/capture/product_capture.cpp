#include "emulator/capture/product_capture.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>

#include "emulator/capture/bound_operands.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/gemm/scales.hpp"
#include "formats/codec.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;
using formats::Tensor;

/// Metadata and tensors of one file, checked as they are read.
class Reader {
 public:
  Reader(const formats::TensorFile& file, const std::string& where) : file_(file), where_(where) {}

  std::string text(const std::string& key, const std::string& otherwise = "") const {
    const auto entry = file_.metadata.find(key);
    return entry == file_.metadata.end() ? otherwise : entry->second;
  }

  double number(const std::string& key, double otherwise) const {
    const std::string value = text(key);
    if (value.empty()) return otherwise;
    double x = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), x);
    if (error != std::errc() || end != value.data() + value.size())
      throw Error(where_, key + " " + formats::in_quotes(value) + " is not a number");
    return x;
  }

  /// One or two whole numbers, as "1", "1,2", "[1, 2]" or "(1, 2)".
  std::array<std::int64_t, 2> pair(const std::string& key, std::int64_t otherwise) const {
    const std::string value = text(key);
    std::array<std::int64_t, 2> result = {otherwise, otherwise};
    std::size_t count = 0;
    for (std::size_t at = 0; at < value.size();) {
      const char c = value[at];
      if (c == ' ' || c == ',' || c == '[' || c == ']' || c == '(' || c == ')' || c == 'x') {
        ++at;
        continue;
      }
      std::int64_t x = 0;
      const auto [end, error] = std::from_chars(value.data() + at, value.data() + value.size(), x);
      if (error != std::errc() || count == 2 || x < 0 || x > 1 << 20)
        throw Error(where_, key + " " + formats::in_quotes(value) + " is not valid",
                    "one or two whole numbers");
      result[count++] = x;
      at = static_cast<std::size_t>(end - value.data());
    }
    if (count == 1) result[1] = result[0];
    return result;
  }

  const Tensor* find(std::string_view name) const { return file_.find(name); }

  const Tensor& require(std::string_view name, std::size_t fewest, std::size_t most) const {
    const Tensor* tensor = find(name);
    if (tensor == nullptr) throw Error(where_, "tensor '" + std::string(name) + "' is missing");
    if (tensor->shape.size() < fewest || tensor->shape.size() > most)
      refuse(*tensor, "has not " + std::to_string(fewest) +
                          (most != fewest ? " or " + std::to_string(most) : "") + " dimensions");
    if (formats::element_count(tensor->shape) == 0) refuse(*tensor, "is empty");
    if (tensor->packing != formats::Packing::container) refuse(*tensor, "is packed");
    return *tensor;
  }

  [[noreturn]] void refuse(const Tensor& tensor, const std::string& what) const {
    throw Error(where_ + ": tensor '" + tensor.name + "'",
                "shape " + shape_text(tensor.shape) + " " + what);
  }

 private:
  const formats::TensorFile& file_;
  const std::string& where_;
};

/// A scale [rows, columns] from a tensor of any rank, or a single number of the metadata.
CodeMatrix scale_of(const Reader& reader, const std::string& key, bool is_row_vector) {
  if (const Tensor* tensor = reader.find(key)) {
    CodeMatrix m{tensor->format,
                 1,
                 1,
                 formats::element_count(tensor->shape),
                 {tensor->bytes, tensor->owner}};
    if (tensor->shape.size() >= 2) {
      m.rows = tensor->shape[tensor->shape.size() - 2];
      m.columns = tensor->shape.back();
      m.batch = formats::element_count(tensor->shape) / (m.rows * m.columns);
    } else if (!is_row_vector) {
      std::swap(m.rows, m.columns);
    }
    return m;
  }
  if (reader.text(key).empty()) return {};
  CodeMatrix m = make_matrix(formats::fp32, 1, 1, 1);
  const double value = reader.number(key, 1);
  m.set(0, formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(value), formats::fp32));
  return m;
}

void read_scales(const Reader& reader, GemmProblem& x, const std::string& where) {
  x.scale_a = scale_of(reader, "scale_a", false);
  x.scale_b = scale_of(reader, "scale_b", true);
  x.scale_k = scale_k_of({x.a, x.scale_a, where + ": tensor 'scale_a'"},
                         {x.b, x.scale_b, where + ": tensor 'scale_b'"});
}

void read_product(const Reader& reader, GemmCapture& capture, const std::string& where) {
  GemmProblem& x = capture.problem;
  const Tensor& d = reader.require("d", 2, 3);
  x.a = matrix_of(reader.require("a", 2, 3));
  x.b = matrix_of(reader.require("b", 2, 3));
  capture.d = matrix_of(d);
  capture.shape = d.shape;
  if (x.b.rows != x.k())
    reader.refuse(*reader.find("b"), "does not follow a's K = " + std::to_string(x.k()));
  if (x.b.batch != x.a.batch) reader.refuse(*reader.find("b"), "has another batch than a");
  if (capture.d.rows != x.m() || capture.d.columns != x.n() || capture.d.batch != x.a.batch)
    reader.refuse(d, "is not that of a * b");
  if (reader.find("c") != nullptr) {
    const Tensor& c = reader.require("c", 1, 3);
    if (c.shape.size() == 1 || c.shape[c.shape.size() - 2] != x.m()) {
      // One row for all of D.
      if (formats::element_count(c.shape) != x.n()) reader.refuse(c, "is not that of a * b");
      x.c = {c.format, 1, x.m(), x.n(), {c.bytes, c.owner}, Strides{0, 0, 1}};
    } else {
      x.c = matrix_of(c);
    }
    if (x.c.rows != x.m() || x.c.columns != x.n() || (x.c.batch != 1 && x.c.batch != x.a.batch))
      reader.refuse(c, "is not that of a * b");
  }
  if (const Tensor* bias = reader.find("bias")) {
    if (formats::element_count(bias->shape) != x.n()) reader.refuse(*bias, "is not one row of d");
    x.bias = CodeMatrix{bias->format, 1, 1, x.n(), {bias->bytes, bias->owner}};
  }
  read_scales(reader, x, where);
  const std::string sparsity = reader.text("sparsity");
  if (!sparsity.empty() && sparsity != "2:4")
    throw Error(where, "sparsity " + formats::in_quotes(sparsity) + " is not known", "2:4");
  x.sparse_a = !sparsity.empty();
}

void read_convolution(const Reader& reader, GemmCapture& capture) {
  const Tensor& a = reader.require("a", 4, 4);
  const Tensor& b = reader.require("b", 4, 4);
  const Tensor& d = reader.require("d", 4, 4);
  Convolution x;
  x.n = a.shape[0], x.c = a.shape[1], x.h = a.shape[2], x.w = a.shape[3];
  x.o = b.shape[0], x.r = b.shape[2], x.s = b.shape[3];
  x.p = d.shape[2], x.q = d.shape[3];
  x.groups = reader.pair("groups", 1)[0];
  std::tie(x.padding_h, x.padding_w) = std::tuple_cat(reader.pair("padding", 0));
  std::tie(x.stride_h, x.stride_w) = std::tuple_cat(reader.pair("stride", 1));
  std::tie(x.dilation_h, x.dilation_w) = std::tuple_cat(reader.pair("dilation", 1));
  if (x.groups < 1 || x.c % x.groups != 0 || x.o % x.groups != 0 || b.shape[1] * x.groups != x.c)
    reader.refuse(b, "does not follow a's channels and the groups");
  if (x.stride_h < 1 || x.stride_w < 1 || x.dilation_h < 1 || x.dilation_w < 1)
    reader.refuse(a, "needs a stride and a dilation of at least 1");
  const auto outputs = [](std::int64_t in, std::int64_t padding, std::int64_t filter,
                          std::int64_t dilation, std::int64_t stride) {
    return (in + 2 * padding - dilation * (filter - 1) - 1) / stride + 1;
  };
  if (d.shape[0] != x.n || d.shape[1] != x.o ||
      x.p != outputs(x.h, x.padding_h, x.r, x.dilation_h, x.stride_h) ||
      x.q != outputs(x.w, x.padding_w, x.s, x.dilation_w, x.stride_w))
    reader.refuse(d, "is not that of the convolution");
  const auto line = [](const Tensor& tensor) {
    return CodeMatrix{
        tensor.format, 1, 1, formats::element_count(tensor.shape), {tensor.bytes, tensor.owner}};
  };
  capture.problem.a = line(a);
  capture.problem.b = line(b);
  if (const Tensor* bias = reader.find("bias")) capture.problem.bias = line(*bias);
  capture.d = lower_output(x, line(d));
  capture.shape = d.shape;
  capture.convolution = x;
}

}  // namespace

GemmProblem GemmCapture::lowered(const ConvolutionOrder& order) const {
  if (!convolution) return problem;
  GemmProblem x = lower(*convolution, problem.a, problem.b, order);
  if (!problem.bias.empty()) {
    x.bias = problem.bias;
    x.bias.batch = convolution->groups;
    x.bias.columns /= convolution->groups;
  }
  return x;
}

void GemmCapture::set_factors(Epilogue& epilogue) const {
  epilogue.alpha = alpha;
  epilogue.beta = beta;
  // It may be another form of what was asked for.
  if (function_of(epilogue.activation) != activation) epilogue.activation = activation;
}

std::vector<Output> telling_outputs(const GemmCapture& capture, std::int64_t count) {
  const CodeMatrix& d = capture.d;
  if (capture.activation != Activation::none) {
    std::vector<Output> outputs = scattered_outputs(d.batch, d.rows, d.columns, 8 * count);
    const auto others = std::stable_partition(
        outputs.begin(), outputs.end(),
        [&, least = least_unchanged(capture.activation)](const Output& x) {
          return scalar::decoded(d.format, d(x.batch, x.row, x.column)) >= least;
        });
    // What ReLU made zero tells nothing, where it left anything.
    if (capture.activation == Activation::relu && others != outputs.begin())
      outputs.erase(others, outputs.end());
    if (std::ssize(outputs) > count) outputs.resize(static_cast<std::size_t>(count));
    return outputs;
  }
  return scattered_outputs(d.batch, d.rows, d.columns, count);
}

GemmCapture make_gemm_capture(const formats::TensorFile& file, const std::string& where) {
  const Reader reader(file, where);
  if (reader.text("capture") != "1")
    throw Error(where, "not a capture of version 1: metadata 'capture' is " +
                           formats::in_quotes(reader.text("capture")));
  GemmCapture capture;
  capture.path = where;
  capture.kind = reader.text("kind");
  capture.arch = reader.text("arch", "sm_90");
  capture.metadata = file.metadata;
  capture.alpha = reader.number("alpha", 1);
  // Recordings may name functions that no plan has.
  capture.activation =
      formats::find_word<Activation>(reader.text("activation")).value_or(Activation::none);
  capture.tf32 = reader.text("math_mode") == "tf32";
  if (capture.kind == "gemm" || capture.kind == "instruction") {
    for (const char* name : {"e", "a_scale", "b_scale"})
      if (reader.find(name) != nullptr)
        throw Error(where, "sparse and block-scaled instructions are not searched; verify them");
    read_product(reader, capture, where);
    capture.beta = reader.number("beta", capture.problem.c.empty() ? 0 : 1);
  } else if (capture.kind == "conv2d") {
    read_convolution(reader, capture);
  } else {
    throw Error(where, "kind " + formats::in_quotes(capture.kind) + " is no library call",
                "gemm, conv2d, instruction");
  }
  return capture;
}

GemmCapture read_gemm_capture(const std::string& path) {
  GemmCapture capture =
      make_gemm_capture(formats::read_safetensors(path), formats::printable(path));
  capture.path = path;
  return capture;
}

}  // namespace guardbit::emulator

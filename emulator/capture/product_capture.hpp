#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "formats/files/tensor_file.hpp"

// Recordings of whole products and convolutions of a library.
namespace guardbit::emulator {

/// What a library answered: a capture of kind `gemm` or `conv2d`; or many executions of one
/// instruction, as a batch of products whose chains begin with C.
struct GemmCapture {
  /// kind: gemm, conv2d or instruction
  std::string path, kind, arch;
  std::map<std::string, std::string> metadata;
  /// of kind gemm
  GemmProblem problem;
  /// then `problem` holds a and b as one row each
  std::optional<Convolution> convolution;
  /// as [batch, m, n] or as `lower_output` lays it out
  CodeMatrix d;
  /// of the tensor d
  std::vector<std::int64_t> shape;
  double alpha = 1, beta = 0;
  /// that the recording says D went through, where plans have it
  Activation activation = Activation::none;
  bool tf32 = false;

  std::int64_t outputs() const { return d.size(); }
  /// A product of a matrix with a vector.
  bool is_of_vector() const { return !convolution && (d.rows == 1 || d.columns == 1); }
  /// Sets what was asked for: alpha, beta and the activation.
  void set_factors(Epilogue& epilogue) const;
  /// The problem with a convolution lowered as that order walks.
  GemmProblem lowered(const ConvolutionOrder& order) const;
};

/// At most `count` outputs of different rows and columns; where D went through an activation, first
/// those that it left as they were.
std::vector<Output> telling_outputs(const GemmCapture& capture, std::int64_t count);

/// formats::Error for whatever does not fit: one line with file, place and choices.
GemmCapture read_gemm_capture(const std::string& path);
GemmCapture make_gemm_capture(const formats::TensorFile& file, const std::string& where);

}  // namespace guardbit::emulator

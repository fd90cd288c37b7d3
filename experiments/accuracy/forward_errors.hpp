#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"

// Forward errors: each element of a result beside its exact value.
namespace guardbit::experiments {

/// Each element of a result beside what it should be. All numbers are the nearest doubles to the
/// exact ones; where the element or the reference is an infinity or a NaN, error and ulps are NaN.
struct Deviation {
  double result = 0;
  double reference = 0;
  /// result - reference
  double error = 0;
  /// the error in units of the reference's last place in D's format
  double ulps = 0;
};

/// Result after result in the order of D. They are kept, or computed from D and a reference
/// whenever one is asked for: of large arrays they would take many times the memory of both.
class Deviations {
 public:
  Deviations() = default;
  // A list is one of these, so that functions take both.
  Deviations(std::vector<Deviation> list) : list_(std::move(list)), size_(list_.size()) {}
  /// Of matrices of one shape, in formats that FP64 contains.
  Deviations(emulator::CodeMatrix d, emulator::CodeMatrix reference)
      : d_(std::move(d)),
        reference_(std::move(reference)),
        size_(static_cast<std::size_t>(d_.size())) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Deviation operator[](std::size_t at) const { return list_.empty() ? computed(at) : list_[at]; }

 private:
  Deviation computed(std::size_t at) const;

  std::vector<Deviation> list_;
  emulator::CodeMatrix d_, reference_;
  std::size_t size_ = 0;
};

/// From a reference of D's shape; of more than 2^22 elements computed whenever they are asked for.
/// formats::Error, beginning with `where`, for a format that FP64 does not contain.
Deviations deviations(const emulator::CodeMatrix& d, const emulator::CodeMatrix& reference,
                      std::string_view where);

/// The same against alpha * A * B + beta * C + bias as exact numbers, with the problem's scales,
/// through the activation.
/// `progress` is told now and then which part is done, and ends the work by answering false; then
/// the list is empty.
std::vector<Deviation> exact_deviations(const emulator::CodeMatrix& d,
                                        const emulator::GemmProblem& problem, double alpha,
                                        double beta, int threads, std::string_view where,
                                        const std::function<bool(double)>& progress = {},
                                        emulator::Activation activation = {});

/// |alpha| |A| |B| + |beta| |C| + |bias| for each output, in FP64. Of A's elements that are not
/// zero none counts as less than `least_a`, of B's `least_b`.
std::vector<double> magnitudes(const emulator::GemmProblem& problem, double alpha, double beta,
                               int threads, std::string_view where, double least_a = 0,
                               double least_b = 0);

}  // namespace guardbit::experiments

#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpu/tensor_core_instruction.hpp"
#include "gpu/words.hpp"

namespace guardbit::gpu {

struct Term {
  int k;
  std::uint64_t a, b;
};

struct Probe {
  std::string label;
  std::vector<Term> terms;
  std::uint64_t c;
};

/// 2^exponent.
inline long double two(int exponent) { return std::ldexp(1.0L, exponent); }

/// Collects probes of one row; a probe whose values its formats cannot hold is left out.
class Collector {
 public:
  explicit Collector(const TensorCoreInstruction& instruction) : row(instruction) {}

  Collector& start(std::string label, std::uint64_t c_code = 0) {
    finish();
    current_ = {std::move(label), {}, c_code};
    usable_ = true;
    return *this;
  }
  Collector& start_value(std::string label, long double c) {
    start(std::move(label), word_of(row.c, c));
    if (value_of(row.c, current_.c) != c) usable_ = false;
    return *this;
  }
  Collector& add(int k, long double a, long double b) {
    const std::uint64_t a_code = word_of(row.a, a), b_code = word_of(row.b, b);
    if (value_of(row.a, a_code) != a || value_of(row.b, b_code) != b || k >= row.k) usable_ = false;
    return add_codes(k, a_code, b_code);
  }
  Collector& add_codes(int k, std::uint64_t a, std::uint64_t b) {
    if (k >= row.k) usable_ = false;
    current_.terms.push_back({k, a, b});
    return *this;
  }
  std::vector<Probe> take() {
    finish();
    return std::move(probes_);
  }

  const TensorCoreInstruction& row;

 private:
  void finish() {
    if (usable_) probes_.push_back(std::move(current_));
    usable_ = false;
  }
  std::vector<Probe> probes_;
  Probe current_;
  bool usable_ = false;
};

/// Sums of finite terms: which bits are kept, what tiny and huge ones become, where blocks begin.
void probe_sums(Collector& x);
/// Infinities, NaNs, signed zeros and ignored bits.
void probe_specials(Collector& x);
/// Chains of IEEE operations in binary64: order, rounding, NaN payloads.
void probe_double_precision(Collector& x);
/// Where an integer sum saturates.
void probe_saturation(Collector& x);

}  // namespace guardbit::gpu

#pragma once

// Whether a product is right, and if not, what the kernel did wrong. Input: operands and a recorded
// D; no plan. Output: a verdict that holds for every order of sums, and faults with which D agrees
// with the operands up to rounding.

#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/faults/fault.hpp"
#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/faults/product_numbers.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

enum class Verdict : std::uint8_t {
  /// a plan gives every bit; only a search can say so
  exact_plan,
  /// every element is the exact result rounded once
  rounded_once,
  /// no element is further from the exact result than sums in the accumulators of a GPU, or the
  /// conversions that are named, take it
  valid_rounding,
  /// some are
  wrong,
  /// a recording of a single instruction that no instruction of its formats explains; only a search
  /// can say so
  not_judged,
};
constexpr auto words(Verdict) {
  return std::array{"exact_plan", "rounded_once", "valid_rounding", "wrong", "not_judged"};
}
std::string_view meaning_of(Verdict verdict);

struct Judgement {
  Verdict verdict = Verdict::wrong;
  /// of a wrong product, and of a valid one with narrower arithmetic than its formats ask for
  std::vector<Fault> faults = {};
  /// outputs that no honest rounding explains
  std::int64_t wrong = 0, outputs = 0;
  /// some of the wrong ones, as rows and columns of D
  std::vector<std::pair<std::int64_t, std::int64_t>> examples = {};
  /// largest distance from the exact result, as a part of the sum of the terms' magnitudes
  double largest_error = 0;
  /// `interrupted` said true before every fault was tried
  bool is_cut_short = false;
  /// how K was split, where D shows that parts were rounded to 16 bits
  std::optional<Partition> split = {};
};

/// `whole` reads the product of which `x` may be some rows and columns. When
/// `interrupted` says true, faults are looked for no longer; any thread may ask it.
Judgement judge(const ProductNumbers& x, const WholeProduct& whole,
                const std::function<bool()>& interrupted = {});
/// Where these faults are known to explain D.
Judgement wrong_judgement(const ProductNumbers& x, Faults faults);
/// Where x is the whole product.
Judgement judge(const ProductNumbers& x, const std::function<bool()>& interrupted = {});

}  // namespace guardbit::emulator

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "emulator/faults/first_faults.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"

namespace guardbit::emulator {

namespace {

/// The product of other operands.
Expected with_operands(const ProductNumbers& x, const RealMatrix& a, const RealMatrix& b) {
  ProductNumbers y = x;
  y.product = multiply(a, b);
  return y.asked();
}

/// Rounds to the format's precision, ties away from zero.
double rounded_away(const formats::Format& format, double x) {
  const double spacing = 2 * half_spacing(format, x);
  return std::isfinite(x) ? std::round(x / spacing) * spacing : x;
}

double to_significant_bits(int bits, double x) {
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  return std::isfinite(x)
             ? std::ldexp(std::nearbyint(std::ldexp(significand, bits)), exponent - bits)
             : x;
}

/// What operands went through before they were multiplied.
struct Conversion {
  enum class Way : std::uint8_t {
    nearest,
    truncated,
    ties_away,
    /// the sum of two numbers of the format
    two_pieces,
    /// to the format's significant bits alone, as if each number had a scale
    scaled
  };

  Format format;
  Way way = Way::nearest;

  double operator()(double x) const;
  /// What it did to these operands.
  std::string text(const std::string& which) const;
};

double Conversion::operator()(double x) const {
  switch (way) {
    case Way::nearest: break;
    case Way::truncated: return truncated(format, x);
    case Way::ties_away: return rounded_away(format, x);
    case Way::two_pieces: {
      const double first = scalar::rounded(format, x);
      return first + scalar::rounded(format, x - first);
    }
    case Way::scaled: return to_significant_bits(format.fraction_bits + 1, x);
  }
  return scalar::rounded(format, x);
}

std::string Conversion::text(const std::string& which) const {
  const std::string name = formats::name_of(format);
  const std::string how = way == Way::truncated    ? "truncated to " + name
                          : way == Way::two_pieces ? "taken as sums of two numbers in " + name
                          : way == Way::scaled
                              ? "rounded to " + std::to_string(format.fraction_bits + 1) +
                                    " significant bits, those of " + name + ","
                              : "rounded to " + name;
  return which + " " + how + " before they were multiplied";
}

/// From the one that changes least on.
constexpr Conversion input_conversions[] = {{formats::tf32},
                                            {formats::tf32, Conversion::Way::truncated},
                                            {formats::tf32, Conversion::Way::ties_away},
                                            {formats::fp16},
                                            {formats::bf16},
                                            {formats::bf16, Conversion::Way::truncated},
                                            {formats::bf16, Conversion::Way::two_pieces},
                                            {formats::e4m3},
                                            {formats::e4m3, Conversion::Way::truncated},
                                            {formats::e5m2},
                                            {formats::e5m2, Conversion::Way::truncated},
                                            {formats::e4m3, Conversion::Way::scaled},
                                            {formats::e5m2, Conversion::Way::scaled}};

/// Subnormal numbers of the operands' own format that are taken as zero.
Faults find_flushed_inputs(const ProductNumbers& x) {
  const double least = std::ldexp(1.0, 1 - x.input.bias);
  const auto flushed = [&](double value) { return std::abs(value) < least ? 0 : value; };
  for (const auto& [operand, of_a, of_b] :
       {std::tuple{"both", true, true}, {"a", true, false}, {"b", false, true}}) {
    const RealMatrix a = of_a ? mapped(x.a, flushed) : x.a, b = of_b ? mapped(x.b, flushed) : x.b;
    if ((of_a && a.values == x.a.values) || (of_b && b.values == x.b.values)) continue;
    if (!agrees(x, with_operands(x, a, b))) continue;
    const char* const which = of_a && of_b ? "A and B" : of_a ? "A" : "B";
    const std::string name = formats::name_of(x.input);
    return {{.kind = FaultKind::converted_input,
             .operand = operand,
             .name = name,
             .text = "subnormal " + name + " numbers of " + which + " were taken as zero"}};
  }
  return {};
}

/// FP64 operands that are multiplied in FP32: D holds FP32 numbers then.
Faults find_fp32_arithmetic(const ProductNumbers& x) {
  const auto to_fp32 = [](double value) { return scalar::rounded(formats::fp32, value); };
  const auto is_fp32 = [&](double value) {
    return !std::isfinite(value) || to_fp32(value) == value;
  };
  if (x.input.fraction_bits <= formats::fp32.fraction_bits ||
      !std::all_of(x.d.values.begin(), x.d.values.end(), is_fp32))
    return {};
  ProductNumbers y = x;
  y.a = mapped(x.a, to_fp32), y.b = mapped(x.b, to_fp32);
  if (y.a.values == x.a.values && y.b.values == x.b.values) return {};
  y.input = formats::fp32;
  y.multiply_operands();
  if (!agrees(y, y.asked())) return {};
  return {{.kind = FaultKind::converted_input,
           .operand = "both",
           .name = "fp32",
           .text = "A and B were rounded to fp32 before they were multiplied"}};
}

}  // namespace

FirstFaults guess_input_conversion(const ProductNumbers& x, const WholeProduct& whole) {
  if (formats::is_integer(x.input)) return {};
  const ProductNumbers few = x.selected(spread(x.m(), 12), spread(x.n(), 12));
  const auto wrong = [](const ProductNumbers& y) { return disagreement(y, y.asked()).count; };
  const std::int64_t as_asked = wrong(few);
  const double error_as_asked = error_of(few, few.asked());
  FirstFaults list;
  for (const Conversion& conversion : input_conversions) {
    if (conversion.format.fraction_bits >= x.input.fraction_bits) continue;
    for (const auto& [operand, which, of_a, of_b] : {std::tuple{"both", "A and B were", true, true},
                                                     {"a", "elements of A were", true, false},
                                                     {"b", "elements of B were", false, true}}) {
      const auto converted = [&, a = of_a, b = of_b](ProductNumbers y) {
        if (a) y.a = mapped(y.a, conversion);
        if (b) y.b = mapped(y.b, conversion);
        y.multiply_operands();
        return y;
      };
      // Most outputs are right then, or much nearer.
      const ProductNumbers y = converted(few);
      if (3 * wrong(y) > as_asked && 3 * error_of(y, y.asked()) > error_as_asked) continue;
      list.push_back({{{.kind = FaultKind::converted_input,
                        .operand = operand,
                        .name = formats::name_of(conversion.format),
                        .text = conversion.text(which)}},
                      converted(x),
                      whole});
      list.back().whole.m = 0;
    }
  }
  return list;
}

Faults find_input_conversion(const ProductNumbers& x) {
  if (formats::is_integer(x.input)) return {};
  if (Faults faults = find_fp32_arithmetic(x); !faults.empty()) return faults;
  // A few outputs refute most.
  const ProductNumbers few = x.selected(spread(x.m(), 12), spread(x.n(), 12));
  for (const Conversion& conversion : input_conversions) {
    if (conversion.format.fraction_bits >= x.input.fraction_bits) continue;
    const auto fits = [&](bool of_a, bool of_b) {
      for (const ProductNumbers* y : {&few, &x}) {
        const RealMatrix a = of_a ? mapped(y->a, conversion) : y->a,
                         b = of_b ? mapped(y->b, conversion) : y->b;
        if (a.values == y->a.values && b.values == y->b.values) return false;
        // The product of the two second pieces may be left out.
        const RealMatrix extra = mapped(y->product_magnitude, [&](double value) {
          return conversion.way == Conversion::Way::two_pieces ? std::abs(x.alpha) * 0x1p-16 * value
                                                               : 0;
        });
        if (!agrees(*y, with_operands(*y, a, b), &extra)) return false;
      }
      return true;
    };
    const auto fault = [&](const char* operand, const std::string& which) {
      return Faults{{.kind = FaultKind::converted_input,
                     .operand = operand,
                     .name = formats::name_of(conversion.format),
                     .text = conversion.text(which)}};
    };
    if (fits(true, true)) return fault("both", "A and B were");
    if (fits(true, false)) return fault("a", "elements of A were");
    if (fits(false, true)) return fault("b", "elements of B were");
  }
  return find_flushed_inputs(x);
}

Faults find_scaled_operand(const ProductNumbers& x) {
  if (x.alpha == 1 || formats::is_integer(x.input)) return {};
  // TF32 operands are FP32 numbers until a unit takes them.
  const Format format = x.input == formats::tf32 ? formats::fp32 : x.input;
  const double alpha = scalar::rounded(format, x.alpha);
  for (const bool of_a : {true, false}) {
    ProductNumbers y = x;
    RealMatrix& operand = of_a ? y.a : y.b;
    operand = mapped(operand, [&](double value) { return scalar::rounded(format, alpha * value); });
    y.alpha = 1;
    y.multiply_operands();
    const std::string name = formats::name_of(format);
    Faults faults = {{.kind = FaultKind::converted_input,
                      .operand = of_a ? "a" : "b",
                      .name = name,
                      .text = std::string(of_a ? "A" : "B") +
                              " was multiplied by alpha and rounded to " + name +
                              " before the product"}};
    if (agrees(y, y.asked())) return faults;
    Faults conversions = find_input_conversion(y);
    if (conversions.empty()) conversions = find_rounded_products(y);
    if (conversions.empty()) continue;
    faults.insert(faults.end(), conversions.begin(), conversions.end());
    return faults;
  }
  return {};
}

}  // namespace guardbit::emulator

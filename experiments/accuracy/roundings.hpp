#pragma once

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/rounding.hpp"

// The algebra of rounding errors: factors 1 + e along the way of a sum, and what underflow adds.
namespace guardbit::experiments {

bool is_nearest(formats::Rounding rounding);

/// The largest relative error of rounding to that many significant bits.
double unit_roundoff(int precision, formats::Rounding rounding);
/// The same of a format; 0 of an integer, whose error is `underflow`.
double unit_roundoff(const formats::Format& f,
                     formats::Rounding rounding = formats::Rounding::nearest_even);
/// The largest error of rounding below the smallest normal number; of integers any number.
double underflow(const formats::Format& f,
                 formats::Rounding rounding = formats::Rounding::nearest_even);
double smallest_normal(const formats::Format& f);
double largest_number(const formats::Format& f);

/// Is every number of `from`, short of overflow, one of `to`?
bool contains(const formats::Format& to, const formats::Format& from);

/// The largest relative error of a constant rounded to a format.
double constant_error(const formats::Format& f, double x);

/// Errors on the way from the operands to a result: numbers of the format `held` with a relative
/// error, as factors 1 + e, and an absolute one.
struct Roundings {
  formats::Format held = formats::fp32;
  double logarithm = 0, squares = 0, largest = 0;
  double absolute = 0;
  bool mean_zero = true;
  /// The smallest of the largest numbers of the formats on the way: of those that have infinities,
  /// and of those that saturate or wrap.
  double largest_finite, largest_limited;

  Roundings();
  void add(double error, double count = 1) { add(error, error * error, count); }
  void add(double error, double square, double count);
  /// The way goes through the other one as well, `count` times.
  void add(const Roundings& other, double count);
  /// Numbers of `held` become numbers of that format.
  void convert_to(const formats::Format& f,
                  formats::Rounding rounding = formats::Rounding::nearest_even);
  /// Results of operations in that format, of numbers of it; products also underflow.
  void add_up_in(const formats::Format& f, double count = 1);
  void multiply_in(const formats::Format& f, double count = 1);
  /// The format may overflow.
  void pass(const formats::Format& f);
  /// Something on the way does overflow, whatever the sums.
  void overflow() { largest_finite = -1; }

  double worst() const;
  double likely(double lambda) const;
};

/// The way that loses more, with what either of them adds.
Roundings worse(const Roundings& x, const Roundings& y);

}  // namespace guardbit::experiments

#pragma once

// Functions of the host's doubles, of which its library has no or no good version. Results of the
// catalogue are compared with them; no bits rest on them.
namespace guardbit::emulator::exact {

double exp10(double x);
double reciprocal_root(double x);
double reciprocal_cube_root(double x);
double sin_of_pi(double x);
double cos_of_pi(double x);
double normal_distribution(double x);
double normal_quantile(double x);
double inverse_erf(double x);
double inverse_erfc(double x);
/// e^(x^2) (1 - erf(x))
double scaled_erfc(double x);
double gamma(double x);
/// modified Bessel functions of the first kind
double bessel_i0(double x);
double bessel_i1(double x);
/// Bessel functions of the second kind; NaN of negative numbers
double bessel_y0(double x);
double bessel_y1(double x);
double bessel_j(double order, double x);
double bessel_y(double order, double x);

}  // namespace guardbit::emulator::exact

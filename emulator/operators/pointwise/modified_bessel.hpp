#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include "emulator/functions/cuda/cuda_doubles.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/numbers/host_number.hpp"

// Modified Bessel functions of the orders 0 and 1, by series of Chebyshev's polynomials (those of
// the Cephes library), as PyTorch's kernels add them: to 8 in x / 2 - 2, above in 32 / x - 2.
namespace guardbit::emulator::operators::bessel {

inline constexpr std::array near_0 = {
    -0x1.45cb72134d0efp-58, 0x1.33362977da589p-55, -0x1.184eb721ebbb4p-52, 0x1.ee6d893f65ebap-50,
    -0x1.a5022c297fbebp-47, 0x1.59b464b262627p-44, -0x1.1164c62ee1afp-41,  0x1.9fe2fe19bd324p-39,
    -0x1.2fc957a946abcp-36, 0x1.a98becc743c1p-34,  -0x1.1d4fe13ae9556p-31, 0x1.6d903a454cb34p-29,
    -0x1.beaf68c0b30abp-27, 0x1.03b769d4d6435p-24, -0x1.1ec638f227f8dp-22, 0x1.2bf24978cf4acp-20,
    -0x1.2866fcba56427p-18, 0x1.13f58be9a2859p-16, -0x1.e2b2659c41d5ap-15, 0x1.8b51b74107cabp-13,
    -0x1.2e2fd1f15eb52p-11, 0x1.adc758a12100ep-10, -0x1.1b65e201aa849p-8,  0x1.59961f3dde3ddp-7,
    -0x1.84e9ef121b6fp-6,   0x1.93e8acea8a32dp-5,  -0x1.84b70342d06eap-4,  0x1.5f7ac77ac88cp-3,
    -0x1.37febc057cd8dp-2,  0x1.5a84e9035a22ap-1};
inline constexpr std::array far_0 = {
    -0x1.0adb754ca8b19p-57, -0x1.646da6611913p-58,  0x1.9be1812d98421p-55,  0x1.3f3dd076041cdp-55,
    -0x1.4600babd21fe4p-52, -0x1.8aee7d908de38p-52, 0x1.fee7da3eafb1fp-50,  0x1.12a919094e6d7p-48,
    -0x1.583fe7e65629ap-47, -0x1.75d99cf68bb32p-45, 0x1.156ff0d5fc545p-46,  0x1.b1c8c6b83c073p-42,
    0x1.94347fa268cecp-41,  -0x1.f904303178d66p-40, -0x1.d0fd7357e7bf2p-37, -0x1.1511d08397425p-35,
    0x1.a24feabe8004fp-37,  0x1.0f9ccc0f46f75p-31,  0x1.d2c64a9225b87p-29,  0x1.8569280d6d56dp-26,
    0x1.b8007d9cd616ep-23,  0x1.8412bc101c586p-19,  0x1.20fa378999e52p-14,  0x1.b998ca2e59049p-9,
    0x1.9be62aca809cbp-1};
inline constexpr std::array near_1 = {
    0x1.99f2a0c3c4014p-59, -0x1.857d0c38a0576p-56, 0x1.663e3e593bfacp-53, -0x1.3eaaa7e0d1573p-50,
    0x1.11d7f0615290cp-47, -0x1.c628e1c8f0b3bp-45, 0x1.6af784779d955p-42, -0x1.173835fb70366p-39,
    0x1.9cee2b21d3154p-37, -0x1.2510397eb07dep-34, 0x1.8ea34b43fdf6cp-32, -0x1.0361b28ea67e6p-29,
    0x1.4258e0239501p-27,  -0x1.7dd3e24b8c3e8p-25, 0x1.ae344b347d108p-23, -0x1.cc0798363992ap-21,
    0x1.d1c4ed511afc5p-19, -0x1.bd5f9b8debbcfp-17, 0x1.911b542c70d0bp-15, -0x1.533cad3d694fep-13,
    0x1.0c95db6c6df7dp-11, -0x1.8cc620b3cd4a4p-10, 0x1.1065349d3a1b4p-8,  -0x1.5a29f7913a26ap-7,
    0x1.951e3e7bb2349p-6,  -0x1.b1bbc537c9ebcp-5,  0x1.a46dad536f53cp-4,  -0x1.694d10469192ep-3,
    0x1.02a63724a7ffap-2};
inline constexpr std::array far_1 = {
    0x1.1556db352e8e6p-57,  0x1.45b8aea87b95p-58,   -0x1.acea3b2532277p-55, -0x1.2806c9c77332p-55,
    0x1.55915fceb588ap-52,  0x1.7d68e5f04a2d1p-52,  -0x1.0efcd8bc4d22ap-49, -0x1.12db5138afbc7p-48,
    0x1.776e1762d31e8p-47,  0x1.80d3c26b3281ep-45,  -0x1.7a9482e6d22ap-46,  -0x1.cbc458e73e255p-42,
    -0x1.953e1076ab493p-41, 0x1.1e7d3f6439fa3p-39,  0x1.f101f653c457bp-37,  0x1.1e1a1f1587865p-35,
    -0x1.4dcf9d4504c0cp-36, -0x1.334ca5423dd8p-31,  -0x1.0790b9ad53528p-28, -0x1.c415394bb46c1p-26,
    -0x1.0dbfd2e9e5443p-22, -0x1.048df49ca0373p-18, -0x1.cfd7f804aa9a6p-14, -0x1.3fda053fcdb4cp-7,
    0x1.8ea18b55b1514p-1};

// Of i1e in FP32 so many of the last ones, of small and of large numbers.
inline constexpr std::size_t short_near_1 = 17, short_far_1 = 7;

inline double fused(double x, double y, double z) { return std::fma(x, y, z); }
inline HostNumber fused(HostNumber x, HostNumber y, HostNumber z) { return fma(x, y, z); }
inline double exponential(double x) { return cuda_math::exp(x); }
inline HostNumber exponential(HostNumber x) { return cuda_math::expf(x); }
inline double root(double x) { return std::sqrt(x); }
inline HostNumber root(HostNumber x) { return square_root(x); }
inline double magnitude_of(double x) { return std::abs(x); }
inline HostNumber magnitude_of(HostNumber x) { return abs(x); }
inline double constant(double, double x) { return x; }
inline HostNumber constant(HostNumber, double x) { return static_cast<float>(x); }

template <class Number>
Number series(Number x, std::span<const double> coefficients) {
  Number before = constant(x, 0), last = constant(x, coefficients[0]);
  // Of the second term nothing is taken away: its sum is fused.
  Number newest = fused(x, last, constant(x, coefficients[1]));
  for (std::size_t i = 2; i < coefficients.size(); ++i) {
    before = last;
    last = newest;
    newest = fused(x, last, -before) + constant(x, coefficients[i]);
  }
  return constant(x, 0.5) * (newest - before);
}

template <class Number>
Number of_order_0(Number x, bool is_scaled) {
  x = magnitude_of(x);
  if (x <= constant(x, 8)) {
    const Number sum = series(x / constant(x, 2) - constant(x, 2), near_0);
    return is_scaled ? sum : exponential(x) * sum;
  }
  const Number sum = series(constant(x, 32) / x - constant(x, 2), far_0);
  return (is_scaled ? sum : exponential(x) * sum) / root(x);
}

template <class Number>
Number of_order_1(Number x, bool is_scaled) {
  const bool is_short = is_scaled && std::is_same_v<Number, HostNumber>;
  const Number own = magnitude_of(x);
  Number result = own;
  if (own <= constant(x, 8)) {
    const Number place = own / constant(x, 2) - constant(x, 2);
    const Number sum =
        series(place, std::span(near_1).last(is_short ? short_near_1 : near_1.size()));
    result = is_scaled ? sum * own : exponential(own) * own * sum;
  } else {
    const Number place = constant(x, 32) / own - constant(x, 2);
    const Number sum = series(place, std::span(far_1).last(is_short ? short_far_1 : far_1.size()));
    result = (is_scaled ? sum : exponential(own) * sum) / root(own);
  }
  return x < constant(x, 0) ? -result : result;
}

}  // namespace guardbit::emulator::operators::bessel

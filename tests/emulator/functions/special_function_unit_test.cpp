#include "emulator/functions/unit/special_function_unit.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"

/// The unit itself; digests of its forms are with those of all functions
/// (function_catalogue_test.cpp).
namespace guardbit::tests {
namespace {

namespace mufu = emulator::mufu;
using mufu::infinity_code;
using mufu::nan_code;
using mufu::one_code;
using mufu::sign_bit;

/// An argument and its result.
using Case = std::pair<std::uint32_t, std::uint32_t>;

void check(const mufu::SpecialFunctionForm& form, const std::vector<Case>& cases) {
  for (const auto& [x, y] : cases) {
    INFO(form.name << " of " << std::hex << x);
    CHECK(bits(evaluate(form, emulator::HostNumber::of(x))) == y);
  }
}

TEST_CASE("ex2 at special inputs") {
  const std::vector<Case> cases = {{0, one_code},
                                   {sign_bit, one_code},
                                   {one_code, 0x40000000},
                                   {sign_bit | one_code, 0x3f000000},
                                   {0xaedbe6ff, one_code},  // -1e-10, whose fraction is cut off
                                   {infinity_code, infinity_code},
                                   {sign_bit | infinity_code, 0},
                                   {0x7fc00000, nan_code},
                                   {0x43000000, infinity_code},  // 128
                                   {0xc2fc0000, 0x00800000},     // -126
                                   {0x00000001, one_code},
                                   {0x80000001, one_code}};
  check(mufu::ex2_approx_ftz_form, cases);
  check(mufu::ex2_approx_form, cases);
  check(mufu::ex2_approx_ftz_form, {{0xc2fe0000, 0}});                        // -127
  check(mufu::ex2_approx_form, {{0xc2fe0000, 0x003fffff}, {0xc3150000, 1}});  // -127, -149
}

TEST_CASE("rcp at special inputs") {
  const std::vector<Case> cases = {{0, infinity_code},    {sign_bit, sign_bit | infinity_code},
                                   {one_code, one_code},  {0xc0000000, 0xbf000000},
                                   {infinity_code, 0},    {sign_bit | infinity_code, sign_bit},
                                   {0xffc00000, nan_code}};
  check(mufu::rcp_approx_ftz_form, cases);
  check(mufu::rcp_approx_form, cases);
  // 2^127 and 2^-127
  check(mufu::rcp_approx_ftz_form, {{0x7f000000, 0}, {0x00400000, infinity_code}});
  check(mufu::rcp_approx_form, {{0x7f000000, 0x00400000}, {0x00400000, 0x7f000000}});
}

TEST_CASE("roots and logarithms at special inputs") {
  const std::vector<Case> negative = {{0xbf800000, nan_code}, {0xff800000, nan_code}};
  for (const auto* form :
       {&mufu::lg2_approx_form, &mufu::lg2_approx_ftz_form, &mufu::rsqrt_approx_form,
        &mufu::rsqrt_approx_ftz_form, &mufu::sqrt_approx_form, &mufu::sqrt_approx_ftz_form})
    check(*form, negative);
  check(mufu::lg2_approx_ftz_form, {{0, 0xff800000},
                                    {0x80000001, 0xff800000},
                                    {one_code, 0},
                                    {0x3f000000, 0xbf7ffffe},  // of 1/2, not -1
                                    {0x40000000, one_code},
                                    {infinity_code, infinity_code}});
  check(mufu::lg2_approx_form, {{0x80000001, nan_code}, {1, 0xc3150000}});  // of 2^-149
  check(mufu::rsqrt_approx_ftz_form, {{0, infinity_code},
                                      {sign_bit, 0xff800000},
                                      {0x00000001, infinity_code},
                                      {one_code, one_code},
                                      {0x40800000, 0x3f000000},
                                      {0x3e800000, 0x40000000},
                                      {infinity_code, 0}});
  check(mufu::sqrt_approx_ftz_form, {{0, 0},
                                     {sign_bit, sign_bit},
                                     {0x80000001, sign_bit},
                                     {0x40800000, 0x40000000},
                                     {infinity_code, infinity_code}});
}

TEST_CASE("sin, cos and tanh at special inputs") {
  check(mufu::sin_approx_form,
        {{0, 0}, {sign_bit, sign_bit}, {infinity_code, nan_code}, {0x80000001, sign_bit}});
  check(mufu::cos_approx_form, {{0, one_code}, {sign_bit, one_code}, {infinity_code, nan_code}});
  check(mufu::tanh_approx_form, {{0, 0},
                                 {0x80000001, 0x80000001},
                                 {0x3b7fffff, 0x3b7fffff},  // below 2^-8
                                 {0x41000000, one_code},    // 8
                                 {0xff800000, 0xbf800000},
                                 {0x7f800001, nan_code}});
}

// Constants of the compiler as well.
static_assert(mufu::evaluate(mufu::rcp, 0x40000000).code == 0x3f000000);
static_assert(mufu::evaluate(mufu::ex2, 0x3f800000).code == 0x40000000);

TEST_CASE("an evaluation says how a result came about") {
  const mufu::Evaluation e = mufu::evaluate(mufu::ex2, 0xbfa00000);  // -1.25
  CHECK(e.special == mufu::Special::none);
  CHECK(e.reduced.exponent == -2);
  CHECK(e.reduced.fraction == 0x5fffff);  // the ones' complement of 0.25
  CHECK(e.magnitude >> 20 == ((e.code & 0x7fffff) | 0x800000));
  CHECK(mufu::evaluate(mufu::rsqrt, 0x40800000).is_exact_one);
  CHECK_FALSE(mufu::evaluate(mufu::rsqrt, 0x40000000).is_exact_one);
  CHECK(mufu::evaluate(mufu::tanh, 0x41000000).special == mufu::Special::one);
}

}  // namespace
}  // namespace guardbit::tests

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "tests/catch.hpp"

/// What is expected was published with AMD's emulator rocjitsu (ROCm/rocm-systems, below
/// emulation/rocjitsu/tests): results of a Radeon PRO W7900 and a Radeon AI PRO R9700, and digests
/// of many of them.
namespace guardbit::tests {
namespace {

using emulator::Function;

std::vector<std::uint32_t> results_of(const char* name, const std::vector<std::uint32_t>& x) {
  const Function& function = emulator::require_function("rdna4", name, "test");
  std::vector<std::uint32_t> results(x.size());
  function.run({{x}, {results}});
  return results;
}

/// The FNV-1a hash of words, or of their bytes.
struct Digest {
  std::uint64_t value = 0xcbf29ce484222325;

  void add(std::uint32_t part) { value = (value ^ part) * 0x100000001b3; }
  void add_bytes(std::uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) add(word >> shift & 0xff);
  }
};

std::uint64_t digest_of(const char* name, const std::vector<std::uint32_t>& x) {
  Digest digest;
  for (const std::uint32_t result : results_of(name, x)) digest.add(result);
  return digest.value;
}

std::vector<std::uint32_t> codes_from(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> codes;
  codes.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) codes.push_back(first + i);
  return codes;
}

/// Fractions k 2^-24 of a sign.
std::vector<std::uint32_t> fractions(std::uint32_t sign) {
  std::vector<std::uint32_t> codes;
  for (std::uint32_t k = 0; k < 1U << 24; ++k)
    codes.push_back(sign | std::bit_cast<std::uint32_t>(static_cast<float>(k) * 0x1p-24F));
  return codes;
}

TEST_CASE("RDNA's functions give the published digests of cards") {
  CHECK(digest_of("v_rcp_f32", codes_from(0x3f800000, 1U << 23)) == 0xd54ec24992572df9);
  CHECK(digest_of("v_rsq_f32", codes_from(0x3f800000, 1U << 24)) == 0x010bc79eb6e48caf);
  CHECK(digest_of("v_log_f32", codes_from(0x3f000000, 1U << 24)) == 0xc33a54efbae098be);
  CHECK(digest_of("v_exp_f32", fractions(0)) == 0x68959bb684f42e5f);
  CHECK(digest_of("v_exp_f32", fractions(0x80000000)) == 0x88b75684494db8d3);
}

TEST_CASE("RDNA4's functions give the published digest of codes of all kinds") {
  std::vector<std::uint32_t> x;
  for (std::uint32_t k = 0; k < 1U << 20; ++k) x.push_back(k * 0x9e3779b9);
  Digest digest;
  for (const char* const name : {"v_exp_f32", "v_log_f32", "v_rcp_f32", "v_rsq_f32", "v_sqrt_f32"})
    for (const std::uint32_t result : results_of(name, x)) digest.add_bytes(result);
  CHECK(digest.value == 0x83684362e754ab7f);
}

TEST_CASE("RDNA's sine and cosine give the published results of cards") {
  constexpr std::array<std::array<std::uint32_t, 3>, 35> published = {
      {{0, 0, 0x3f800000},
       {0x80000000, 0x80000000, 0x3f800000},
       {0x00000001, 0x00000006, 0x3f800000},
       {0x80000001, 0x80000006, 0x3f800000},
       {0x007fffff, 0x01c90fd3, 0x3f800000},
       {0x00800000, 0x01c90fd5, 0x3f800000},
       {0x39bfffff, 0x3b16cbdf, 0x3f7fffd3},
       {0x39c00000, 0x3b16cbdf, 0x3f7fffd3},
       {0x39ffffff, 0x3b490fbe, 0x3f7fffb1},
       {0x3a000000, 0x3b490fcb, 0x3f7fffb1},
       {0x3e000000, 0x3f3504f4, 0x3f3504f3},
       {0x3e7fffff, 0x3f800000, 0x33c90fd9},
       {0x3e800000, 0x3f800000, 0},
       {0x3f000000, 0, 0xbf800000},
       {0x3f800000, 0, 0x3f800000},
       {0x7f7fffff, 0, 0x3f800000},
       {0xff7fffff, 0, 0x3f800000},
       {0x7f800000, 0xffc00000, 0xffc00000},
       {0xff800000, 0xffc00000, 0xffc00000},
       {0x3aab9885, 0x3c06c500, 0x3f7ffdc8},
       {0x3b8419b1, 0x3ccf7b0d, 0x3f7feaf9},
       {0x3bcf188b, 0x3d229c2d, 0x3f7fcc55},
       {0x3c98be2d, 0x3def6125, 0x3f7e3ec8},
       {0x3d2001fb, 0x3e78d2d0, 0x3f7853c7},
       {0x3d6002f3, 0x3eac7f01, 0x3f7108a3},
       {0x3dc084ad, 0x3f0e9072, 0x3f54a13b},
       {0x3df0010d, 0x3f2bebe5, 0x3f3dae6b},
       {0x3e7f2800, 0x3f7fff1f, 0x3ba9a533},
       {0x3e7ff600, 0x3f7fffff, 0x397b53d7},
       {0x3e7fff08, 0x3f800000, 0x37c2c761},
       {0x3e7ffff1, 0x3f800000, 0x35bc7ee2},
       {0x3e7ffa50, 0x3f800000, 0x390ef149},
       {0x3efffd28, 0x390ef149, 0xbf800000},
       {0x3f3ffe94, 0xbf800000, 0xb90ef149},
       {0x3f7ffe94, 0xb90ef149, 0x3f800000}}};
  std::vector<std::uint32_t> x, sines, cosines;
  for (const auto& [argument, sine, cosine] : published) {
    x.push_back(argument);
    sines.push_back(sine);
    cosines.push_back(cosine);
  }
  CHECK(results_of("v_sin_f32", x) == sines);
  CHECK(results_of("v_cos_f32", x) == cosines);
}

TEST_CASE("RDNA3 has RDNA4's functions, and chips have their family's") {
  std::size_t functions = 0;
  for (const Function& function : emulator::rdna_functions()) {
    ++functions;
    CHECK(function.evidence.basis == emulator::Basis::documented);
    const Function& other = emulator::require_function(
        function.arch == "rdna3" ? "gfx1201" : "gfx1151", function.name, "test");
    CHECK(other.arch != function.arch);
    CHECK(other.reference({0x3fc00001}) == function.reference({0x3fc00001}));
  }
  CHECK(functions == 14);
}

TEST_CASE("NaNs keep sign and payload in RDNA's functions, and no result is subnormal but a sine") {
  for (const Function& function : emulator::rdna_functions()) {
    INFO(function.name);
    CHECK(function.reference({0xffa12345})[0] == 0xffe12345);
    if (function.name == "v_sin_f32") continue;
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
      for (const std::uint32_t sign : {0U, 0x80000000U}) {
        const std::uint64_t result = function.reference({sign | exponent << 23 | 0x2aaaaa})[0];
        CHECK(((result & 0x7f800000) != 0 || (result & 0x7fffffff) == 0));
      }
    }
  }
}

}  // namespace
}  // namespace guardbit::tests

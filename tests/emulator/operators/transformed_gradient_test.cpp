#include "emulator/operators/layers/transformed_gradient.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"

// cuDNN's gradient of weights by Winograd's transforms, against what an H200 answered.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;

// One channel of an image of 6 x 6 pixels and of the output's gradient, of a convolution of 3 x 3
// with padding 1; and the gradient of that filter, as winograd_nonfused gave it on an H200 (cuDNN
// 9, driver 580.159.04).
constexpr std::array<std::uint32_t, 36> image_codes = {
    0xBEEE2B76, 0xBE9FA281, 0xC112145D, 0x4155C496, 0x405B789E, 0xC11561FD, 0xBF32A19E, 0xBE748342,
    0xBF47DBFA, 0x414A06E9, 0xBE18D93E, 0x414354B2, 0x3FC2FFE8, 0xC08B623E, 0x3FFDB04C, 0xBE49237D,
    0x4080D201, 0x3E62E62B, 0xC17D37CF, 0xBFCB80DC, 0xC028EB53, 0xBE180040, 0x3E56155A, 0xC098F947,
    0x3E49F1AD, 0x3E4D162C, 0xBE7B30AE, 0x3E893FFC, 0x40BFFF1C, 0xC05F3E96, 0xC096AF5D, 0x40B1AC2B,
    0x3E080CF5, 0x3EDCE9AA, 0xC10B3BFA, 0x3FB2925D,
};
constexpr std::array<std::uint32_t, 36> gradient_codes = {
    0xBE446E79, 0x3E664842, 0x3FF794CB, 0xC02F7430, 0xC001D496, 0xBE723F93, 0x40995E24, 0x3FB8A9A0,
    0xC098D077, 0xBE063388, 0x417FB91D, 0xC0317626, 0xC168BD70, 0x41004D04, 0xBEC11841, 0xBEEFAA47,
    0x3F950F65, 0x40180872, 0x4122B791, 0x3E7543FF, 0xBE0B7C1E, 0xBF772346, 0x41519043, 0xBE03367E,
    0xBE7CB17C, 0xC0E2497E, 0xBE034ED8, 0xBFBA302B, 0x3E4A9B69, 0xBE090483, 0xC05D9C96, 0xC0902FB0,
    0x3FA37E4C, 0x40469C30, 0xBE13324A, 0xC0D0E365,
};
constexpr std::array<std::uint32_t, 9> filter_codes = {
    0x438F4138, 0x437F9AB9, 0xC3647AEE, 0x4396E49C, 0xC3A10D07,
    0x42DBA26E, 0xC2CF73D8, 0x438425AC, 0xC262F96A,
};

ops::Tensor tensor(const ops::Dimensions& shape, std::span<const std::uint32_t> codes) {
  std::vector<float> numbers;
  for (const std::uint32_t code : codes) numbers.push_back(std::bit_cast<float>(code));
  return ops::tensor_of_numbers(formats::fp32, shape, numbers);
}

TEST_CASE("a transformed gradient has the bits that an H200 gave") {
  const ops::Tensor filter = ops::uninitialised_tensor(formats::fp32, {1, 1, 3, 3});
  const ops::Tensor own = ops::transformed_weight_gradient(
      tensor({1, 1, 6, 6}, gradient_codes), tensor({1, 1, 6, 6}, image_codes), filter, {1, 1});
  std::array<std::uint32_t, 9> codes{};
  REQUIRE(own.bytes.size() == sizeof codes);
  std::memcpy(codes.data(), own.bytes.data(), sizeof codes);
  CHECK(codes == filter_codes);
}

TEST_CASE("a transformed gradient sums all images, channels and pieces") {
  const ops::Dimensions shape = {2, 3, 7, 5};
  std::vector<float> image(210), gradient(140);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 13) - 6;
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 7) - 3;
  const auto own = ops::numbers_of(ops::transformed_weight_gradient(
      ops::tensor_of_numbers(formats::fp32, {2, 2, 7, 5}, gradient),
      ops::tensor_of_numbers(formats::fp32, shape, image),
      ops::uninitialised_tensor(formats::fp32, {2, 3, 3, 3}), {1, 1}, 2));
  REQUIRE(own.size() == 54);
  std::vector<float> exact(own.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const std::size_t o = i / 27, c = i / 9 % 3, r = i / 3 % 3, s = i % 3;
    for (std::size_t n = 0; n < 2; ++n)
      for (std::size_t p = 0; p < 7; ++p)
        for (std::size_t q = 0; q < 5; ++q)
          if (p + r >= 1 && p + r <= 7 && q + s >= 1 && q + s <= 5)
            exact[i] += image[((n * 3 + c) * 7 + p + r - 1) * 5 + q + s - 1] *
                        gradient[((n * 2 + o) * 7 + p) * 5 + q];
  }
  for (std::size_t i = 0; i < exact.size(); ++i) CHECK(std::abs(own[i] - exact[i]) < 1e-3F);
}

TEST_CASE("a transformed gradient refuses shapes that no convolution has") {
  const auto empty = [](ops::Dimensions of) {
    return ops::uninitialised_tensor(formats::fp16, std::move(of));
  };
  const auto call = [&](const ops::Dimensions& gradient, const ops::Dimensions& filter) {
    return ops::transformed_weight_gradient(empty(gradient), empty({1, 3, 4, 4}), empty(filter),
                                            {1, 1});
  };
  CHECK_THROWS_AS(call({1, 2, 4, 4}, {2, 2, 3, 3}), ops::UnknownShape);
  CHECK_THROWS_AS(call({1, 2, 2, 2}, {2, 3, 3, 3}), ops::UnknownShape);
  CHECK_THROWS_AS(call({1, 2, 2, 2}, {2, 3, 5, 5}), ops::UnknownShape);
}

}  // namespace
}  // namespace guardbit::tests

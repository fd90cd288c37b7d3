#include "formats/tensors/storage.hpp"

#include <array>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {
namespace {

template <std::size_t Bytes>
constexpr std::array<std::byte, Bytes> bytes_of(const std::array<int, Bytes>& values) {
  std::array<std::byte, Bytes> result{};
  for (std::size_t i = 0; i < Bytes; ++i) result[i] = static_cast<std::byte>(values[i]);
  return result;
}

template <std::size_t Bytes, std::size_t Count>
constexpr bool packs_to(const Format& format, Packing packing,
                        const std::array<std::uint32_t, Count>& codes,
                        const std::array<int, Bytes>& expected) {
  std::array<std::byte, Bytes> packed{};
  packed.fill(std::byte{0xFF});
  pack_codes(codes, format, packing, packed);
  std::array<std::uint32_t, Count> unpacked{};
  unpack_codes(packed, format, packing, unpacked);
  return packed == bytes_of(expected) && unpacked == codes;
}

// The layouts by hand, at compile time: the same text must run on a device.
static_assert(packs_to<2, 3>(e2m1, Packing::dense, {0x1, 0x2, 0xF}, {0x21, 0x0F}));
static_assert(packs_to<3, 4>(e3m2, Packing::dense, {0x3F, 0x00, 0x3F, 0x01}, {0x3F, 0xF0, 0x07}));
static_assert(packs_to<2, 9>(b1, Packing::dense, {1, 0, 0, 0, 0, 0, 0, 1, 1}, {0x81, 0x01}));
static_assert(packs_to<3, 3>(e2m1, Packing::container, {1, 2, 15}, {1, 2, 15}));
static_assert(packs_to<2, 1>(bf16, Packing::container, {0x1234}, {0x34, 0x12}));
static_assert(packs_to<4, 1>(tf32, Packing::container, {0x40001}, {0x00, 0x20, 0x00, 0x80}));
static_assert(byte_size(e2m1, Packing::dense, 3) == 2);
static_assert(byte_size(e3m2, Packing::dense, 5) == 4);
static_assert(byte_size(fp64, Packing::container, std::uint64_t{1} << 60) == std::nullopt);
static_assert(byte_size(fp64, Packing::container, (std::uint64_t{1} << 60) - 1) ==
              (std::uint64_t{1} << 63) - 8);
static_assert(byte_size(b1, Packing::dense, ~std::uint64_t{0}) == std::uint64_t{1} << 61);

TEST_CASE("container bits outside the code are ignored") {
  const auto word = bytes_of<4>({0xFF, 0x3F, 0x00, 0x80});
  CHECK(load_code(word, tf32, Packing::container, 0) == 0x40001);
  CHECK(load_code(word, int4, Packing::container, 0) == 0xF);
}

TEST_CASE("store and load are inverse and touch only their code, in every format and packing") {
  for (const FormatEntry& entry : format_catalogue) {
    for (const Packing packing : {Packing::container, Packing::dense}) {
      CAPTURE(entry.name, packing == Packing::dense);
      constexpr std::size_t count = 11;
      std::mt19937_64 generator(1);
      std::vector<std::uint64_t> codes(count);
      std::vector<std::byte> bytes(byte_size(entry.format, packing, count).value());
      for (int round = 0; round < 200; ++round) {
        const std::size_t index = generator() % count;
        const std::uint64_t code = generator();
        codes[index] = code & code_mask(entry.format);
        store_code(bytes, entry.format, packing, index, code);
        std::vector<std::uint64_t> read(count);
        unpack_codes(bytes, entry.format, packing, read);
        REQUIRE(read == codes);
      }
    }
  }
}

TEST_CASE("changing the packing keeps the codes") {
  for (const FormatEntry& entry : format_catalogue) {
    const Tensor dense = random_tensor("x", entry.format, Packing::dense, {3, 7});
    const Tensor word = with_packing(dense, Packing::container);
    CHECK(word.bytes.size() == byte_size(entry.format, Packing::container, 21));
    CHECK(same_codes(dense, word));
    CHECK(same_codes(dense, with_packing(word, Packing::dense)));
  }
}

TEST_CASE("element counts that overflow are noticed, also beside a zero dimension") {
  const auto count = [](std::vector<std::int64_t> shape) { return checked_element_count(shape); };
  CHECK(count({}) == 1);
  CHECK(count({3, 0, 5}) == 0);
  CHECK(count({2, 3}) == 6);
  CHECK(count({-1}) == std::nullopt);
  CHECK(count({std::int64_t{1} << 32, std::int64_t{1} << 31}) == std::nullopt);
  CHECK(count({0, std::int64_t{1} << 32, std::int64_t{1} << 31}) == std::nullopt);
}

}  // namespace
}  // namespace guardbit::formats

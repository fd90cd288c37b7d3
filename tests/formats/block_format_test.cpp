#include "formats/block_format.hpp"

#include "formats/text.hpp"
#include "tests/catch.hpp"

namespace guardbit::formats {

TEST_CASE("block formats have the sizes of their standards") {
  CHECK(find_block_format("MXFP8") == mxfp8_e4m3);
  CHECK(find_block_format("nvfp4") == nvfp4);
  CHECK_FALSE(find_block_format("fp16"));
  for (const BlockFormatEntry& entry : block_format_catalogue)
    CHECK(find_block_format(entry.name) == entry.format);
  // OCP MX 1.0, table 1: 8.25, 6.25 and 4.25 bits; NVFP4: 4.5.
  CHECK(bits_per_block(mxfp8_e5m2) == 264);
  CHECK(bits_per_block(mxfp6_e2m3) == 200);
  CHECK(bits_per_block(mxfp4) == 136);
  CHECK(bits_per_block(mxint8) == 264);
  CHECK(bits_per_block(nvfp4) == 72);
  CHECK(block_count(mxfp4, 0) == 0);
  CHECK(block_count(mxfp4, 32) == 1);
  CHECK(block_count(mxfp4, 33) == 2);
  CHECK(element_bytes(mxfp6_e3m2, 32) == 24);
  CHECK(element_bytes(mxfp4, 5) == 3);
  CHECK(scale_bytes(nvfp4, 33) == 3);
}

TEST_CASE("an element stands for the exact product with its scale") {
  // Independently: every pair of codes in double arithmetic, exact here (at most 11 significant
  // bits).
  const auto as_double = [](const Value& v) {
    return parse_value(exact_text(v), "test").decimal ? std::stod(exact_text(v)) : 0.0;
  };
  for (const BlockFormat& f : {mxfp6_e2m3, mxfp4, nvfp4, mxint8}) {
    for (std::uint64_t scale = 0; scale <= code_mask(f.scale); ++scale) {
      const Value s = decode(f.scale, scale);
      const double factor = s.kind == Kind::nan ? 0.0 : as_double(s) * (f == mxint8 ? 0x1p-6 : 1);
      for (std::uint64_t element = 0; element <= code_mask(f.element); ++element) {
        const Value product = decode_element(f, element, scale);
        if (s.kind == Kind::nan) {
          CHECK(product.kind == Kind::nan);
          continue;
        }
        CHECK(as_double(product) == as_double(decode(f.element, element)) * factor);
      }
    }
  }
  CHECK(exact_text(decode_element(mxint8, 0x80, 127)) == "-2");
  CHECK(exact_text(decode_element(nvfp4, 7, 0x7e)) == "2688");
  CHECK(exact_text(decode_element(nvfp4, 7, 0x7e, decode(fp32, 0x3f000000))) == "1344");
  CHECK(decode_element(mxfp8_e5m2, 0x7c, 127).kind == Kind::infinity);
}

}  // namespace guardbit::formats

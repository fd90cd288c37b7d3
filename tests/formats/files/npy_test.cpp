#include "formats/files/npy.hpp"

#include "formats/files/dtype.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {
namespace {

std::string bytes_of(const std::string& literal, const std::string& data, int version = 1) {
  const int length_bytes = version == 1 ? 2 : 4;
  return "\x93NUMPY" + little_endian(static_cast<unsigned>(version), 2) +
         little_endian(literal.size(), length_bytes) + literal + data;
}

std::string literal(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }  \n";
}

Tensor parse(const std::string& bytes, const FormatOverrides& overrides = {},
             const std::string& path = "x.npy") {
  return read_npy(in_memory(bytes, path), overrides);
}

using Codes = std::vector<std::uint64_t>;

TEST_CASE(".npy versions, spellings and byte orders") {
  for (const int version : {1, 2, 3}) {
    const Tensor tensor = parse(bytes_of(literal("<u2", "(2,)"), "abcd", version));
    CHECK(tensor.name == "x");
    CHECK(tensor.format == uint16);
    CHECK(tensor.shape == std::vector<std::int64_t>{2});
    CHECK(codes_of(tensor) == Codes{0x6261, 0x6463});
  }
  CHECK(codes_of(parse(bytes_of(literal(">u2", "(2,)"), "abcd"))) == Codes{0x6162, 0x6364});
  CHECK(codes_of(parse(bytes_of(literal(">f8", "()"), "abcdefgh"))) == Codes{0x6162636465666768});
  CHECK(codes_of(parse(bytes_of(literal("|b1", "(1,2,)"), std::string("\0\1", 2)))) == Codes{0, 1});
  CHECK(parse(bytes_of("{\"shape\":(0,3),'descr':\"<f4\",'fortran_order':False}", "")).format ==
        fp32);
}

TEST_CASE("Fortran order becomes row-major") {
  CHECK(codes_of(parse(bytes_of(literal("|u1", "(2, 3)", true), {1, 2, 3, 4, 5, 6}))) ==
        Codes{1, 3, 5, 2, 4, 6});
  CHECK(codes_of(parse(bytes_of(literal(">u2", "(2, 2)", true), {0, 1, 0, 2, 0, 3, 0, 4}))) ==
        Codes{1, 3, 2, 4});
  // Element (i, j, k) of a 2x3x4 array lies at i + 2j + 6k.
  std::string data;
  for (char i = 0; i < 24; ++i) data += i;
  const Codes codes = codes_of(parse(bytes_of(literal("|u1", "(2, 3, 4)", true), data)));
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 4; ++k) CHECK(codes[(i * 3 + j) * 4 + k] == i + 2 * j + 6 * k);
    }
  }
  CHECK(codes_of(parse(bytes_of(literal("|u1", "(3, 1)", true), {1, 2, 3}))) == Codes{1, 2, 3});
  CHECK(parse(bytes_of(literal("|u1", "(3, 0)", true), "")).bytes.empty());
}

TEST_CASE("row-major little-endian arrays are viewed, not copied") {
  const MappedFile file = in_memory(bytes_of(literal("<f4", "(1,)"), "abcd"), "x.npy");
  CHECK(read_npy(file).bytes.data() == file.bytes.data() + file.bytes.size() - 4);
}

TEST_CASE("raw words take their format from the caller or from the file's name") {
  const std::string words = bytes_of(literal("|V2", "(1,)"), "ab");
  const std::string bytes = bytes_of(literal("<f1", "(1,)"), "a");
  const auto named = [](const std::string& content, const std::string& path) {
    return parse(content, {}, path).format;
  };
  CHECK(parse(words, {bf16, {}}).format == bf16);
  CHECK(parse(words, {fp16, {}}, "x.bf16.npy").format == fp16);
  CHECK(named(words, "grad.bf16.npy") == bf16);
  CHECK(named(words, "bf16/e4m3_scaled_bfloat16.npy") == bf16);
  CHECK(named(words, "e5m6-x.npy") == *find_format("e5m6"));
  CHECK(named(bytes, "w_e4m3.npy") == e4m3);
  CHECK(named(bytes, "float8_e5m2fnuz.npy") == e5m2fnuz);
  CHECK(named(bytes, "w.float8_e8m0fnu.npy") == e8m0);
  CHECK(named(bytes, "float4_e2m1fn_w.npy") == e2m1);
  CHECK(named(bytes, "uint8_as_e3m2.npy") == e3m2);
  CHECK(codes_of(parse(bytes_of(literal(">V2", "(1,)"), "ab"), {bf16, {}})) == Codes{0x6162});
  CHECK(contains(error_of([&] { parse(words); }), "words of 16 bits of unknown format: give"));
  CHECK(contains(error_of([&] { parse(words, {}, "bf16/x.npy"); }), "unknown format"));
  CHECK(contains(error_of([&] { parse(words, {}, "x.e4m3.npy"); }), "unknown format"));
  CHECK(contains(error_of([&] { parse(bytes, {}, "e4m3_to_e5m2.npy"); }), "unknown format"));
  CHECK(contains(error_of([&] { parse(words, {e4m3, {}}); }), "can be read as e4m3"));
}

TEST_CASE("every format survives a .npy file whose name tells it") {
  const Scratch scratch;
  for (const FormatEntry& entry : format_catalogue) {
    for (const Packing packing : {Packing::container, Packing::dense}) {
      CAPTURE(entry.name);
      const std::string name = "x." + std::string(entry.name);
      const Tensor tensor = random_tensor(name, entry.format, packing, {3, 5});
      write_npy(scratch / (name + ".npy"), tensor);
      const FormatOverrides overrides{entry.format, {}};
      CHECK(same_codes(read_npy(scratch / (name + ".npy"), overrides), tensor));
      if (entry.format == tf32) continue;  // a valid <f4, so that its name does not count
      CHECK(same_codes(read_npy(scratch / (name + ".npy")), tensor));
    }
  }
  const Tensor tensor = random_tensor("x", fp32, Packing::container, {7});
  write_npy(scratch / "x.npy", tensor);
  const std::string text = read_text(scratch / "x.npy");
  CHECK(text.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  CHECK(text.find("{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }  ") == 10);
  CHECK(text[127] == '\n');
}

TEST_CASE("hostile .npy headers are refused with the place and the reason") {
  struct Hostile {
    std::string bytes;
    std::string message;
  };
  const auto tail = [](const std::string& fields) { return bytes_of("{" + fields + "}", ""); };
  const std::string nine = "9223372036854775807";
  const std::vector<Hostile> table = {
      {"", "the magic bytes are missing"},
      {"\x93NUMPX\x01", "the magic bytes are missing"},
      {bytes_of("", "", 4), "byte 6: unknown .npy version 4.0 (valid: 1.0, 2.0, 3.0)"},
      {std::string("\x93NUMPY\x01\x01\x00\x00", 10), "unknown .npy version 1.1"},
      {std::string("\x93NUMPY\x02\x00\x00\x00", 10), "cut short"},
      {std::string("\x93NUMPY\x01\x00\xFF\x00{", 11), "cut short"},
      {"\x93NUMPY" + little_endian(2, 2) + little_endian(0xFFFFFFFF, 4),
       "above the limit of 65536"},
      {bytes_of("", ""), "byte 10: the .npy header: '{' expected"},
      {bytes_of(std::string(60000, '('), ""), "'{' expected"},
      {bytes_of("{" + std::string(60000, '{'), ""), "''' expected"},
      {tail("'descr': '<f4', 'fortran_order': False"), "it needs the keys"},
      {tail("'descr': '<f4', 'descr': '<f4'"), "the key 'descr' is unknown or appears twice"},
      {tail("'extra': 1"), "the key 'extra' is unknown"},
      {tail("'descr' '<f4'"), "':' expected"},
      {tail("'descr': '<f4"), "a string without its end"},
      {tail("'descr': '\\x3cf4'"), "an escape in a string"},
      {tail("'fortran_order': 0"), "True or False expected"},
      {tail("'shape': [3]"), "'(' expected"},
      {tail("'shape': (3)"), "a tuple of one needs its comma"},
      {tail("'shape': (3 4)"), "',' or ')' expected"},
      {tail("'shape': (-3,)"), "a dimension (a whole number from 0) expected"},
      {tail("'shape': (,)"), "a dimension (a whole number from 0) expected"},
      {tail("'shape': (3.0,)"), "',' or ')' expected"},
      {tail("'shape': (9223372036854775808,)"), "a dimension is too large"},
      {tail("'shape': (" +
            [] {
              std::string s;
              for (int i = 0; i < 65; ++i) s += "1,";
              return s;
            }() +
            ")"),
       "more than 64 dimensions"},
      {bytes_of(literal("<f4", "()") + "x", "abcd"), "text after the dictionary"},
      {bytes_of(std::string("{\0}", 3), ""), "expected"},
      {tail("'descr': [('x', '<f4')], 'fortran_order': False"),
       "arrays of structures are not supported (valid: f8,"},
      {bytes_of(literal("|O", "(1,)"), "abcdefgh"), "arrays of Python objects are not supported"},
      {bytes_of(literal("<c8", "(1,)"), "abcdefgh"),
       "unsupported .npy dtype '<c8' (valid: f8, f4,"},
      {bytes_of(literal("<U1", "(1,)"), "abcd"), "unsupported .npy dtype"},
      {bytes_of(literal("", "(1,)"), "abcd"), "unsupported .npy dtype ''"},
      {bytes_of(literal("<", "(1,)"), "abcd"), "unsupported .npy dtype '<'"},
      {bytes_of(literal("f4", "(1,)"), "abcd"), "unsupported .npy dtype 'f4'"},
      {bytes_of(literal("|f4", "(1,)"), "abcd"), "unsupported .npy dtype '|f4'"},
      {bytes_of(literal("<V3", "(1,)"), "abc"), "unsupported .npy dtype '<V3'"},
      {bytes_of(literal("<f4", "(" + nine + ",2)"), ""), "too many elements"},
      {bytes_of(literal("<f4", "(" + nine + ",)"), ""), "too many elements"},
      {bytes_of(literal("<f4", "(0," + nine + ",2)"), ""), "too many elements"},
      {bytes_of(literal("<f4", "(2,)"), "abcd"),
       "its shape needs 8 bytes of data, the file holds 4"},
      {bytes_of(literal("<f4", "(1,)"), "abcde"),
       "its shape needs 4 bytes of data, the file holds 5"},
  };
  for (const Hostile& hostile : table) {
    CAPTURE(hostile.bytes.substr(0, 200));
    const std::string message = error_of([&] { parse(hostile.bytes); });
    CAPTURE(message);
    CHECK(message.starts_with("x.npy: "));
    CHECK(contains(message, hostile.message));
    CHECK_FALSE(contains(message, "\n"));
  }
}

}  // namespace
}  // namespace guardbit::formats

#include "formats/files/safetensors.hpp"

#include <chrono>

#include "formats/files/dtype.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {
namespace {

std::string bytes_of(const std::string& header, const std::string& data = "") {
  return little_endian(header.size(), 8) + header + data;
}

TensorFile parse(const std::string& header, const std::string& data = "") {
  return read_safetensors(in_memory(bytes_of(header, data)));
}

TEST_CASE("a safetensors file by hand") {
  const TensorFile file =
      parse(R"({"__metadata__":{"k":"v"},"b":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[4,6]},)"
            R"("a":{"data_offsets":[0,4],"shape":[1,2],"dtype":"BF16"},)"
            R"("none":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]},)"
            R"("scalar":{"dtype":"U8","shape":[],"data_offsets":[6,7]}}   )",
            std::string("\x01\x02\x03\x04\x05\x06\x07", 7));
  CHECK(file.metadata == std::map<std::string, std::string>{{"k", "v"}});
  REQUIRE(file.tensors.size() == 4);
  CHECK(file.find("a")->format == bf16);
  CHECK(codes_of(*file.find("a")) == std::vector<std::uint64_t>{0x0201, 0x0403});
  CHECK(codes_of(*file.find("b")) == std::vector<std::uint64_t>{5, 6});
  CHECK(file.find("none")->bytes.empty());
  CHECK(file.find("scalar")->shape.empty());
  CHECK(codes_of(*file.find("scalar")) == std::vector<std::uint64_t>{7});
  CHECK(file.find("absent") == nullptr);
  CHECK(parse("{}").tensors.empty());
}

TEST_CASE("every dtype survives, and its name is the one in the file") {
  const Scratch scratch;
  for (const Dtype& dtype : dtypes) {
    CAPTURE(dtype.safetensors);
    const Tensor tensor = random_tensor("x", dtype.format, dtype.packing, {2, 4});
    write_safetensors(scratch / "x", {{"k", "v"}}, std::span(&tensor, 1));
    CHECK(
        contains(read_text(scratch / "x"), "\"dtype\":\"" + std::string(dtype.safetensors) + "\""));
    const TensorFile file = read_safetensors(scratch / "x");
    REQUIRE(file.tensors.size() == 1);
    CHECK(same_codes(file.tensors[0], tensor));
    CHECK(file.tensors[0].packing == dtype.packing);
    CHECK(file.metadata == std::map<std::string, std::string>{{"k", "v"}});
  }
}

TEST_CASE("every format survives in both packings, odd counts included") {
  const Scratch scratch;
  std::vector<Tensor> tensors;
  for (const FormatEntry& entry : format_catalogue) {
    for (const Packing packing : {Packing::container, Packing::dense}) {
      const std::string name = std::string(entry.name) + (packing == Packing::dense ? ".d" : ".c");
      tensors.push_back(random_tensor(name, entry.format, packing, {3, 1, 5}));
    }
  }
  for (const char* name : {"e5m6:bias=20:specials=none", "e8m12", "e9m20", "e4m3:bias=9"}) {
    tensors.push_back(random_tensor(name, *find_format(name), Packing::container, {7}));
  }
  write_safetensors(scratch / "x", {}, tensors);
  const TensorFile file = read_safetensors(scratch / "x");
  REQUIRE(file.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CAPTURE(tensors[i].name);
    CHECK(same_codes(file.tensors[i], tensors[i]));
  }
  CHECK(file.metadata.empty());
}

TEST_CASE("formats without a dtype are unsigned words with a name in the metadata") {
  const Scratch scratch;
  const std::vector<Tensor> tensors = {random_tensor("s", ue4m3, Packing::container, {4}),
                                       random_tensor("t", tf32, Packing::container, {4}),
                                       random_tensor("f", e2m1, Packing::dense, {3})};
  write_safetensors(scratch / "x", {{"format.s", "stale"}}, tensors);
  const std::string text = read_text(scratch / "x");
  CHECK(contains(text, R"("format.f":"e2m1","format.s":"ue4m3","format.t":"tf32")"));
  CHECK(contains(text, R"("s":{"dtype":"U8")"));
  CHECK(contains(text, R"("t":{"dtype":"F32")"));
  CHECK(contains(text, R"("f":{"dtype":"U8")"));
}

TEST_CASE("tensors lie aligned whatever their order") {
  const Scratch scratch;
  const std::vector<Tensor> tensors = {random_tensor("byte", uint8, Packing::container, {3}),
                                       random_tensor("double", fp64, Packing::container, {2}),
                                       random_tensor("half", fp16, Packing::container, {5})};
  write_safetensors(scratch / "x", {}, tensors);
  const TensorFile file = read_safetensors(scratch / "x");
  for (const Tensor& tensor : file.tensors) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes.data());
    CHECK(address % (static_cast<unsigned>(bits(tensor.format)) / 8) == 0);
  }
  CHECK(file.tensors[0].name == "byte");
}

TEST_CASE("the caller's format replaces the file's where the width agrees") {
  const std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("c":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  const MappedFile file = in_memory(bytes_of(header, "abcdef"));
  const auto read = [&](const FormatOverrides& overrides) {
    return read_safetensors(file, overrides);
  };
  CHECK(read({e4m3, {}}).find("a")->format == e4m3);
  CHECK(read({e4m3, {}}).find("c")->format == fp32);
  CHECK(read({e4m3, {{"a", e3m2}, {"c", tf32}}}).find("a")->format == e3m2);
  CHECK(read({{}, {{"c", tf32}}}).find("c")->format == tf32);
  CHECK(contains(error_of([&] { read({bf16, {}}); }), "no tensor can be read as bf16"));
  CHECK(contains(error_of([&] { read({{}, {{"a", bf16}}}); }), "tensor 'a': 8 bits per element"));
  CHECK(contains(error_of([&] { read({{}, {{"z", e4m3}}}); }), "no tensor 'z'"));
}

struct Hostile {
  std::string header;
  std::string data;
  std::string message;
};

std::string one(const std::string& fields) { return "{\"t\":{" + fields + "}}"; }

TEST_CASE("hostile safetensors headers are refused with the place and the reason") {
  const std::string deep = std::string(100000, '[');
  const std::string good = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const std::vector<Hostile> table = {
      {"", "", "does not begin with '{'"},
      {"[]", "", "does not begin with '{'"},
      {" {}", "", "does not begin with '{'"},
      {"{}x", "", "byte 10: the header does not end with '}'"},
      {"{}\n", "", "does not end with '}'"},
      {"{}{}", "", "byte 11: the header is not JSON"},
      {std::string("{}\0}", 4), "", "byte 10: the header is not JSON: a NUL"},
      {"{\"a\":}", "", "the header is not JSON"},
      {"{\"\xFF\":{}}", "", "ill-formed UTF-8"},
      {"{\"\xC0\x80\":{}}", "", "ill-formed UTF-8"},
      {"{\"\\ud800\":{}}", "", "not JSON"},
      {"{\"a\nb\":{}}", "", "not JSON"},
      {"{" + good + "," + good + "}", "ab", "header: the key 'a' appears twice"},
      {one(R"("dtype":"U8","dtype":"U8")"), "", "tensor 't': the key 'dtype' appears twice"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", "", "__metadata__: the key 'k' appears twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "the key '__metadata__' appears twice"},
      {R"({"__metadata__":{"k":1}})", "", "__metadata__: a number where a string belongs"},
      {R"({"__metadata__":{"k":null}})", "", "__metadata__: null where a string"},
      {R"({"__metadata__":{"k":{}}})", "", "__metadata__: an object where a string"},
      {R"({"__metadata__":{"k":["v"]}})", "", "__metadata__: an array where a string"},
      {R"({"__metadata__":"x"})", "", "a string where an object belongs, at key '__metadata__'"},
      {R"({"t":[1]})", "", "header: an array where an object belongs, at key 't'"},
      {R"({"t":-1})", "", "header: a negative number"},
      {"{\"t\":" + deep + "}", "", "header: an array"},
      {one("\"shape\":" + deep), "", "tensor 't': an array in the shape"},
      {one("\"shape\":[{}]"), "", "tensor 't': an object in the shape"},
      {one("\"data_offsets\":[[0],1]"), "", "tensor 't': an array in data_offsets"},
      {one(R"("dtype":"U8","shape":[1])"), "", "it needs the keys"},
      {one(R"("dtype":"U8","extra":1)"), "",
       "unknown key 'extra' (valid: dtype, shape, data_offsets)"},
      {one(R"("dtype":8)"), "", "a number is no value for the key 'dtype'"},
      {one(R"("dtype":["U8"])"), "", "an array is no value for the key 'dtype'"},
      {one(R"("shape":"x")"), "", "a string is no value for the key 'shape'"},
      {one(R"("shape":{})"), "", "an object is no value for the key 'shape'"},
      {one(R"("shape":true)"), "", "a boolean is no value"},
      {one(R"("shape":[-1])"), "", "a negative number in the shape"},
      {one(R"("shape":[1.0])"), "", "the number 1.0 in the shape"},
      {one(R"("shape":[1e400])"), "", "not JSON"},
      {one(R"("shape":[9223372036854775808])"), "",
       "the dimension 9223372036854775808 is too large"},
      {one(R"("shape":[99999999999999999999])"), "", "the number 99999999999999999999"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[0])"), "a", "needs two numbers"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])"), "a", "in data_offsets"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[-1,0])"), "a",
       "negative number in data_offsets"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])"), "a", "data_offsets are [1, 0]"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0])"), "a",
       "data_offsets are"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616])"), "a",
       "in data_offsets"},
      {one(R"("dtype":"I4","shape":[1],"data_offsets":[0,1])"), "a",
       "unknown dtype 'I4' (valid: F64, F32,"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "abcd", "its shape needs 8 bytes"},
      {one(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), "ab",
       "3 elements of F4 do not fill"},
      {one(R"("dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2])"), "ab",
       "do not fill whole bytes"},
      {one(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"), "",
       "too many elements"},
      {one(R"("dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0])"), "",
       "too many elements"},
      {one(R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"), "",
       "too many"},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])"), "a", "the file holds 1"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"), "abc",
       "2 bytes after the last tensor"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), "ab", "leaves a hole from 0"},
      {"{" + good + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "abc",
       "tensor 'b': it begins at data byte 1 and overlaps"},
      {"{" + good + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab", "overlaps"},
      {"{" + good + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})", "abcd",
       "tensor 'b': it begins at data byte 3 and leaves a hole from 2"},
      {"{" + good + R"(,"__metadata__":{"format.a":"nonsense"}})", "ab", "'format.a'"},
      {"{" + good + R"(,"__metadata__":{"format.a":"bf16"}})", "ab",
       "8 bits per element cannot be read as bf16"},
      {one(R"("dtype":"X\n\u001b[31m","shape":[1],"data_offsets":[0,1])"), "a",
       R"(unknown dtype 'X\x0a\x1b[31m')"},
  };
  for (const Hostile& hostile : table) {
    CAPTURE(hostile.header.substr(0, 200));
    const std::string message = error_of([&] { parse(hostile.header, hostile.data); });
    CAPTURE(message);
    CHECK(message.starts_with("memory: "));
    CHECK(contains(message, hostile.message));
    CHECK_FALSE(contains(message, "\n"));
  }
}

TEST_CASE("hostile safetensors lengths are refused") {
  const auto message = [](const std::string& bytes) {
    return error_of([&] { read_safetensors(in_memory(bytes)); });
  };
  CHECK(contains(message(""), "too short"));
  CHECK(contains(message("1234567"), "too short"));
  CHECK(contains(message(little_endian(3, 8) + "{}"), "reaches beyond the file's 10 bytes"));
  CHECK(contains(message(little_endian(100'000'001, 8) + "{}"), "above the limit"));
  CHECK(contains(message(little_endian(~std::uint64_t{0}, 8) + "{}"), "above the limit"));
  const std::string whole =
      bytes_of(one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), "abcd");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(message(whole.substr(0, size)).empty());
  }
  CHECK(message(whole).empty());
}

TEST_CASE("the largest header of brackets costs neither stack nor time") {
  const auto start = std::chrono::steady_clock::now();
  const auto refuse = [](const std::string& prefix, std::size_t size) {
    std::string header = prefix + std::string(size - prefix.size(), '[');
    header.back() = '}';
    CHECK(contains(error_of([&] { parse(header); }), "an array"));
  };
  refuse("{\"t\":{\"shape\":", 100'000'000);
  refuse("{\"t\":", 1'000'000);
  refuse("{\"__metadata__\":{\"k\":", 1'000'000);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("what cannot be written is refused and leaves nothing") {
  const Scratch scratch;
  const auto attempt = [&](const std::vector<Tensor>& tensors,
                           const std::map<std::string, std::string>& metadata = {}) {
    return error_of([&] { write_safetensors(scratch / "x", metadata, tensors); });
  };
  const auto named = [](const std::string& name) {
    return random_tensor(name, uint8, Packing::container, {2});
  };
  CHECK(contains(attempt({named("a"), named("a")}), "tensor 'a': the name is taken"));
  CHECK(contains(attempt({named("__metadata__")}), "the name is taken"));
  CHECK(contains(attempt({named("\xFF")}), "not UTF-8"));
  CHECK(contains(attempt({}, {{"k", "\xFF"}}), "not UTF-8"));
  Tensor wrong = named("a");
  wrong.shape = {3};
  CHECK(contains(attempt({wrong}), "its shape does not need the 2 bytes"));
  CHECK(scratch.files() == 0);
  CHECK(attempt({named("\"quoted\\ \n")}).empty());
  CHECK(read_safetensors(scratch / "x").tensors[0].name == "\"quoted\\ \n");
}

}  // namespace
}  // namespace guardbit::formats

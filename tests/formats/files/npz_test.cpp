#include "formats/files/npz.hpp"

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {
namespace {

std::string written(const std::vector<Tensor>& tensors, ZipMethod method = ZipMethod::stored) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", tensors, method);
  CHECK(scratch.files() == 1);
  return read_text(scratch / "x.npz");
}

/// Replaces `from` by `to`, of the same length, wherever it occurs; it must occur.
std::string patched(std::string bytes, const std::string& from, const std::string& to) {
  std::size_t at = bytes.find(from);
  REQUIRE(at != bytes.npos);
  for (; at != bytes.npos; at = bytes.find(from, at + 1)) bytes.replace(at, from.size(), to);
  return bytes;
}

/// Position of central directory record `index`; its fields are those of APPNOTE 4.3.12.
std::size_t record(const std::string& bytes, int index) {
  std::size_t at = bytes.find("PK\x01\x02");
  for (; index > 0; --index) at = bytes.find("PK\x01\x02", at + 1);
  REQUIRE(at != bytes.npos);
  return at;
}
constexpr std::size_t flags_at = 8, method_at = 10, packed_size_at = 20, size_at = 24,
                      offset_at = 42;

std::string with_field(std::string bytes, int index, std::size_t field, const std::string& value) {
  return bytes.replace(record(bytes, index) + field, value.size(), value);
}

std::string message(const std::string& bytes) {
  return error_of([&] { read_npz(in_memory(bytes, "x.npz")); });
}

TEST_CASE("every format survives an .npz file, stored and deflated, without help from names") {
  std::vector<Tensor> tensors;
  for (const FormatEntry& entry : format_catalogue) {
    for (const Packing packing : {Packing::container, Packing::dense}) {
      const std::string name = "t" + std::to_string(tensors.size());
      tensors.push_back(random_tensor(name, entry.format, packing, {3, 5}));
    }
  }
  tensors.push_back(
      random_tensor("e4m3_misnamed", *find_format("e5m6:bias=3"), Packing::container, {4}));
  tensors.push_back(random_tensor("scalar", fp64, Packing::container, {}));
  tensors.push_back(random_tensor("empty", bf16, Packing::container, {0, 4}));
  for (const ZipMethod method : {ZipMethod::stored, ZipMethod::deflated}) {
    const TensorFile file = read_npz(in_memory(written(tensors, method)));
    REQUIRE(file.tensors.size() == tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      CAPTURE(tensors[i].name);
      CHECK(same_codes(file.tensors[i], tensors[i]));
    }
  }
}

TEST_CASE("deflated archives are smaller and the same arrays give the same file") {
  const std::vector<std::uint32_t> zeros(10000);
  const std::vector<Tensor> tensors = {
      tensor_of_codes("z", fp32, Packing::container, {10000}, zeros)};
  const std::string stored = written(tensors);
  const std::string deflated = written(tensors, ZipMethod::deflated);
  CHECK(stored.size() > 40000);
  CHECK(deflated.size() < 1000);
  CHECK(stored == written(tensors));
  CHECK(same_codes(read_npz(in_memory(deflated)).tensors[0], tensors[0]));
}

TEST_CASE("raw words in an .npz without comments take their format from names or overrides") {
  const std::vector<Tensor> tensors = {random_tensor("grad.bf16", bf16, Packing::container, {2}),
                                       random_tensor("w", e4m3, Packing::container, {2})};
  const std::string bytes = patched(patched(written(tensors), "format=bf16", "remark=bf16"),
                                    "format=e4m3", "remark=e4m3");
  const auto read = [&](const FormatOverrides& overrides) {
    return read_npz(in_memory(bytes), overrides);
  };
  CHECK(contains(error_of([&] { read({}); }), "array 'w' holds words of 8 bits of unknown format"));
  CHECK(read({e5m2, {}}).find("w")->format == e5m2);
  CHECK(read({e5m2, {}}).find("grad.bf16")->format == bf16);
  CHECK(read({{}, {{"w", e4m3}}}).find("w")->format == e4m3);
  CHECK(contains(error_of([&] { read({fp16, {}}); }), "array 'w'"));
  CHECK(contains(error_of([&] { read({{}, {{"w", bf16}}}); }), "8 bits per element"));
}

TEST_CASE("hostile .npz archives are refused with the entry and the reason") {
  const std::vector<Tensor> tensors = {random_tensor("aa", fp32, Packing::container, {64}),
                                       random_tensor("bb", fp32, Packing::container, {64})};
  const std::string good = written(tensors);
  const std::string packed = written(tensors, ZipMethod::deflated);
  REQUIRE(message(good).empty());
  const auto four = [](std::uint64_t value) { return little_endian(value, 4); };
  const auto two = [](std::uint64_t value) { return little_endian(value, 2); };

  CHECK(contains(message(""), "x.npz: not an .npz archive"));
  CHECK(contains(message("PK\x03\x04 and no more"), "not an .npz archive"));
  CHECK(contains(message(patched(good, "bb.npy", "aa.npy")),
                 "entry 'aa.npy': the name appears twice"));
  CHECK(contains(message(patched(good, "bb.npy", "bb.txt")), "entry 'bb.txt': not an .npy array"));
  CHECK(contains(message(patched(good, "bb.npy", "bb\n.py")), R"(entry 'bb\x0a.py')"));
  CHECK(contains(message(patched(good, "(64,)", "(65,)")), "its shape needs 260 bytes of data"));
  CHECK(contains(message(patched(good, "\x93NUMPY", "\x93NUMPX")), "the magic bytes are missing"));
  CHECK(
      contains(message(with_field(good, 1, size_at, four(1000))), "announces 1000 bytes from 384"));
  CHECK(
      contains(message(with_field(packed, 1, size_at, four(0x7FFFFFFF))), "announces 2147483647"));
  CHECK(contains(message(with_field(packed, 1, size_at, four(4096))),
                 "entry 'bb.npy': its shape needs"));
  CHECK(contains(message(with_field(good, 1, method_at, two(93))), "(valid: stored, deflated)"));
  CHECK(contains(message(with_field(good, 1, flags_at, two(1))), "encrypted"));
  CHECK_FALSE(message(with_field(good, 1, offset_at, four(0x7FFFFFFF))).empty());

  std::string flipped = good;
  flipped[good.find("PK\x03\x04", 10) - 1] ^= 1;  // the last byte of the first array
  CHECK(contains(message(flipped), "entry 'aa.npy': unreadable: CRC"));

  // DEFLATE has no block of type 3.
  std::string damaged = packed;
  const std::size_t name_size = std::string("aa.npy").size(),
                    extra_size = static_cast<unsigned char>(damaged[28]);
  damaged[30 + name_size + extra_size] = '\xff';
  CHECK(contains(message(damaged), "entry 'aa.npy': its packed data are damaged"));

  // Both records claim the bytes of one entry, each nearly the whole file.
  std::string shared = with_field(good, 1, offset_at, four(0));
  for (const int index : {0, 1}) {
    shared =
        with_field(with_field(shared, index, size_at, four(600)), index, packed_size_at, four(600));
  }
  CHECK_FALSE(message(shared).empty());
  for (std::size_t size = 0; size < good.size(); size += 7) {
    CHECK_FALSE(message(good.substr(0, size)).empty());
  }
}

TEST_CASE("an .npz archive that would unpack to more than its size allows is a bomb") {
  const std::vector<Tensor> noise = {random_tensor("a", int8, Packing::container, {1 << 21})};
  const std::string packed = written(noise, ZipMethod::deflated);
  REQUIRE(message(packed).empty());
  CHECK(contains(message(with_field(packed, 0, size_at, little_endian(2'000'000'000, 4))),
                 "would unpack to more than 1 GiB and 256 times the size of the file"));
}

TEST_CASE("an .npz that cannot be written leaves nothing") {
  const Scratch scratch;
  const auto attempt = [&](const std::vector<Tensor>& tensors) {
    return error_of([&] { write_npz(scratch / "x.npz", tensors); });
  };
  const Tensor good = random_tensor("a", fp32, Packing::container, {2});
  Tensor wrong = good;
  wrong.shape = {3};
  CHECK(contains(attempt({}), "at least one array"));
  CHECK(contains(attempt({good, good}), "array 'a': cannot be written"));
  CHECK(contains(attempt({good, wrong}), "its shape does not need"));
  CHECK(contains(error_of([&] { write_npz(scratch / "no/x.npz", std::span(&good, 1)); }),
                 "No such file"));
  CHECK(scratch.files() == 0);
}

}  // namespace
}  // namespace guardbit::formats

#include "formats/files/idx.hpp"

#include <string>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/support/printable.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {

TEST_CASE("IDX files come back as they were written") {
  const Scratch scratch;
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 250, 5, 6};
  write_idx(scratch / "a", {3, 1, 2}, bytes);
  // MNIST's header of unsigned bytes in three dimensions.
  CHECK(read_text(scratch / "a") == std::string("\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02"
                                                "\x01\x02\x03\xfa\x05\x06",
                                                22));
  const Tensor tensor = read_idx(scratch / "a");
  CHECK(tensor.format == uint8);
  CHECK(tensor.shape == std::vector<std::int64_t>{3, 1, 2});
  REQUIRE(tensor.bytes.size() == 6);
  CHECK(tensor.bytes[3] == std::byte{250});
}

namespace {

/// CRC-32 as gzip has it (RFC 1952, section 8), bit by bit.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

/// A member of a gzip file that stores the bytes as they are.
std::string stored_member(std::string_view bytes) {
  std::string text("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);
  text += little_endian(bytes.size(), 2) + little_endian(~bytes.size(), 2);
  text.append(bytes);
  return text + little_endian(checksum(bytes), 4) + little_endian(bytes.size(), 4);
}

}  // namespace

TEST_CASE("IDX files packed by gzip are unpacked, and nothing beyond what they say") {
  const Scratch scratch;
  using namespace std::string_view_literals;
  const std::string plain("\0\0\x08\x01\0\0\0\x03\x07\x08\x09"sv);
  const auto codes = [&](const std::string& packed) {
    write_text(scratch / "f.gz", packed);
    const Tensor tensor = read_idx(scratch / "f.gz");
    CHECK(tensor.shape == std::vector<std::int64_t>{3});
    return std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end());
  };
  const std::vector<std::byte> expected = {std::byte{7}, std::byte{8}, std::byte{9}};
  CHECK(codes(stored_member(plain)) == expected);
  // Members follow each other anywhere, in the header too.
  for (std::size_t cut = 1; cut < plain.size(); ++cut)
    CHECK(codes(stored_member(plain.substr(0, cut)) + stored_member(plain.substr(cut))) ==
          expected);

  const auto refuses = [&](const std::string& packed, std::string_view word) {
    write_text(scratch / "f.gz", packed);
    const std::string error = error_of([&] { static_cast<void>(read_idx(scratch / "f.gz")); });
    INFO(error);
    CHECK(error.find('\n') == std::string::npos);
    return error.starts_with(printable(scratch / "f.gz") + ": ") &&
           error.find(word) != std::string::npos;
  };
  const std::string good = stored_member(plain);
  for (std::size_t cut = 2; cut < good.size(); ++cut)
    CHECK(refuses(good.substr(0, cut), "cut off"));
  for (const std::size_t at : {std::size_t{2}, std::size_t{12}, good.size() - 5}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    CHECK(refuses(bad, "damaged"));
  }
  CHECK(refuses(good + "more", "bytes after its gzip data"));
  CHECK(refuses(stored_member(plain + "x"), "3 bytes, but more follow"));
  CHECK(refuses(stored_member(plain.substr(0, 10)), "3 bytes, but 2 follow"));
  // A header that speaks of more than any such file can hold takes no memory.
  CHECK(refuses(stored_member("\0\0\x08\x01\x7f\xff\xff\xff"sv), "but fewer follow"));
  CHECK(refuses(stored_member("\0\0\x08\x01\x80\0\0\x01"sv), "unpack it first"));
  // What follows the bytes that the header speaks of is not unpacked: nobody sees that it is wrong.
  std::string bomb = stored_member(plain + std::string(50000, 'x'));
  bomb.back() = 'x';
  CHECK(refuses(bomb, "3 bytes, but more follow"));
}

TEST_CASE("Files that are no IDX files of bytes are refused") {
  const Scratch scratch;
  const auto refuses = [&](std::string_view text, std::string_view word) {
    write_text(scratch / "f", text);
    return error_of([&] { static_cast<void>(read_idx(scratch / "f")); }).find(word) !=
           std::string::npos;
  };
  using namespace std::string_view_literals;
  CHECK(refuses("", "not an IDX file"));
  CHECK(refuses("\0\x01\x08\x01\0\0\0\0"sv, "not an IDX file"));
  CHECK(refuses("\0\0\x0d\x01\0\0\0\0"sv, "type 13"));
  CHECK(refuses("\0\0\x08\x02\0\0\0\x01"sv, "header"));
  CHECK(refuses("\0\0\x08\x01\0\0\0\x03\x01\x02"sv, "2 follow"));
  CHECK(refuses("\0\0\x08\x01\0\0\0\x01\x01\x02"sv, "2 follow"));
  CHECK(refuses("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv, "2^63"));
}

}  // namespace guardbit::formats

#include "formats/files/idx.hpp"

#include <string>
#include <vector>

#include "formats/catalogue.hpp"
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

TEST_CASE("Files that are no IDX files of bytes are refused") {
  const Scratch scratch;
  const auto refuses = [&](std::string_view text, std::string_view word) {
    write_text(scratch / "f", text);
    return error_of([&] { static_cast<void>(read_idx(scratch / "f")); }).find(word) !=
           std::string::npos;
  };
  using namespace std::string_view_literals;
  CHECK(refuses("", "not an IDX file"));
  CHECK(refuses("\x1f\x8b\x08\0"sv, "compressed"));
  CHECK(refuses("\0\x01\x08\x01\0\0\0\0"sv, "not an IDX file"));
  CHECK(refuses("\0\0\x0d\x01\0\0\0\0"sv, "type 13"));
  CHECK(refuses("\0\0\x08\x02\0\0\0\x01"sv, "header"));
  CHECK(refuses("\0\0\x08\x01\0\0\0\x03\x01\x02"sv, "2 follow"));
  CHECK(refuses("\0\0\x08\x01\0\0\0\x01\x01\x02"sv, "2 follow"));
  CHECK(refuses("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv, "2^63"));
}

}  // namespace guardbit::formats

#include <sys/stat.h>

#include "formats/files/atomic_output.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/support/printable.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a mapped file shows its bytes and outlives its name") {
  const Scratch scratch;
  write_text(scratch / "x", "hello");
  const MappedFile file = map_file(scratch / "x");
  fs::remove(scratch / "x");
  REQUIRE(file.bytes.size() == 5);
  CHECK(file.bytes[4] == std::byte{'o'});
  write_text(scratch / "empty", "");
  CHECK(map_file(scratch / "empty").bytes.empty());
}

TEST_CASE("what cannot be mapped is an error of one line") {
  const Scratch scratch;
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK(contains(error_of([&] { map_file(scratch / "absent"); }), "No such file"));
  CHECK(contains(error_of([&] { map_file(scratch / "."); }), "directory"));
  CHECK(contains(error_of([&] { map_file(scratch / "pipe"); }), "not a regular file"));
  CHECK(contains(error_of([&] { map_file("/dev/zero"); }), "not a regular file"));
  CHECK(contains(error_of([&] { map_file("new\nline"); }), "new\\x0aline: cannot be read"));
}

TEST_CASE("an output appears only when it is committed") {
  const Scratch scratch;
  {
    AtomicOutput output(scratch / "x");
    output.write("one");
    CHECK_FALSE(fs::exists(scratch / "x"));
    output.commit();
  }
  CHECK(read_text(scratch / "x") == "one");
  CHECK(scratch.files() == 1);
}

TEST_CASE("an abandoned output leaves the old file and nothing else") {
  const Scratch scratch;
  write_text(scratch / "x", "old");
  const auto interrupted = [&] {
    AtomicOutput output(scratch / "x");
    output.write("new");
    throw Error("interrupted");
  };
  CHECK(error_of(interrupted) == "interrupted");
  CHECK(read_text(scratch / "x") == "old");
  CHECK(scratch.files() == 1);
}

TEST_CASE("replacing keeps permissions, readers of the old file, and symbolic links") {
  const Scratch scratch;
  write_text(scratch / "x", "old");
  fs::permissions(scratch / "x", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("x", scratch / "link");
  const MappedFile before = map_file(scratch / "x");
  AtomicOutput output(scratch / "link");
  output.write("new");
  output.commit();
  CHECK(before.bytes[0] == std::byte{'o'});
  CHECK(read_text(scratch / "x") == "new");
  CHECK(fs::is_symlink(scratch / "link"));
  CHECK(fs::status(scratch / "x").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("unwritable places are errors of one line") {
  const Scratch scratch;
  const auto attempt = [](const std::string& path) {
    return error_of([&] { AtomicOutput output(path); });
  };
  write_text(scratch / "file", "");
  CHECK(contains(attempt(scratch / "absent/x"), "cannot be written: No such file"));
  CHECK(contains(attempt(scratch / "file/x"), "cannot be written: Not a directory"));
  CHECK(contains(attempt(scratch / "."), "cannot be written: Is a directory"));
  CHECK(contains(attempt(scratch / "new/"), "cannot be written"));
  CHECK(contains(attempt(""), "cannot be written"));
  CHECK(contains(attempt("/dev/null"), "not a regular file"));
  CHECK(scratch.files() == 1);
}

TEST_CASE("text from files stays on one line and short") {
  CHECK(printable("a\nb\x7f") == "a\\x0ab\\x7f");
  CHECK(printable(std::string(500, 'x')).size() == 203);
  CHECK(printable("\xC3\xA9\xC3\xA9", 1) == "\xC3\xA9...");
}

}  // namespace
}  // namespace guardbit::formats

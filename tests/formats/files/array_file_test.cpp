#include "formats/files/array_file.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

#include "formats/files/npy.hpp"
#include "formats/files/npz.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"
#include "tests/places.hpp"

namespace guardbit::formats {
namespace {

TEST_CASE("the front door goes by extension when writing and by content when reading") {
  const Scratch scratch;
  const Tensor tensor = random_tensor("x", bf16, Packing::container, {3, 5});
  for (const std::string extension : {".safetensors", ".npz", ".npy"}) {
    CAPTURE(extension);
    write_tensors(scratch / ("x" + extension), {{"k", "v"}}, std::span(&tensor, 1));
    std::filesystem::rename(scratch / ("x" + extension), scratch / "x");
    const TensorFile file = read_tensors(scratch / "x", {bf16, {}});
    REQUIRE(file.tensors.size() == 1);
    CHECK(same_codes(file.tensors[0], tensor));
    CHECK(file.metadata.size() == (extension == ".safetensors" ? 1 : 0));
  }
}

TEST_CASE("the front door names what it does not know") {
  const Scratch scratch;
  const std::vector<Tensor> two(2, random_tensor("x", bf16, Packing::container, {1}));
  const auto write = [&](const std::string& name) {
    return error_of([&] { write_tensors(scratch / name, {}, two); });
  };
  CHECK(contains(write("x.bin"), "unknown extension (valid: .safetensors, .npy, .npz)"));
  CHECK(contains(write("x"), "unknown extension"));
  CHECK(contains(write("x.npy"), "holds one tensor, not 2"));
  CHECK(scratch.files() == 0);
  const auto read = [&](const std::string& name, const std::string& content) {
    write_text(scratch / name, content);
    return error_of([&] { read_tensors(scratch / name); });
  };
  CHECK(contains(read("x", "12345678x"),
                 "not a file of tensors (valid: .safetensors, .npy, .npz, .pt, .pth, .h5, .hdf5)"));
  CHECK(contains(read("x", ""), "not a file of tensors"));
  CHECK(contains(read("x.safetensors", ""), "too short"));
  CHECK(contains(read("x.npy", "hello"), "magic bytes"));
  CHECK(contains(read("x.npz", "hello"), "not an .npz archive"));
}

/// Lets no file grow beyond `bytes`, as a full disk would, until it goes away.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_CASE("a write that fails half-way leaves the old file and nothing else") {
  const Scratch scratch;
  const Tensor tensor = random_tensor("x", fp64, Packing::container, {5000});
  for (const std::string name : {"x.safetensors", "x.npz", "x.npy"}) {
    CAPTURE(name);
    write_text(scratch / name, "old");
    std::string message;
    {
      const FileSizeLimit limit(10000);
      message = error_of([&] { write_tensors(scratch / name, {}, std::span(&tensor, 1)); });
    }
    CHECK(contains(message, "cannot be written: "));
    CHECK(contains(message, "too large"));
    CHECK(read_text(scratch / name) == "old");
  }
  CHECK(scratch.files() == 3);
}

// The other implementation of the format: NumPy reads what we write, and we read what it writes.
TEST_CASE("NumPy agrees", "[tool]") {
  const std::string interpreter = tests::python_with_numpy();
  if (interpreter.empty()) {
    WARN("SKIPPED: python3 with numpy is not here");
    return;
  }
  const Scratch scratch;
  write_text(scratch / "ours.py", R"(
import numpy, sys
folder = sys.argv[1]
arrays = {}
for kind in ['f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8']:
    for order in '<>':
        for layout in 'CF':
            values = numpy.arange(24).reshape(2, 3, 4).astype(order + kind)
            arrays[kind + ('l' if order == '<' else 'b') + layout] = numpy.asarray(values, order=layout)
numpy.savez(folder + '/stored.npz', **arrays)
numpy.savez_compressed(folder + '/deflated.npz', **arrays)
numpy.save(folder + '/plain.npy', arrays['f8lC'])
)");
  write_text(scratch / "theirs.py", R"(
import numpy, sys
folder = sys.argv[1]
one = numpy.load(folder + '/again.npy')
many = numpy.load(folder + '/again.npz')
assert (one == numpy.arange(24).reshape(2, 3, 4)).all() and one.dtype == numpy.float64
assert len(many.files) == 44
for name in many.files:
    assert many[name].dtype.str[1:] == name[:2], name
    assert (many[name] == numpy.arange(24).reshape(2, 3, 4)).all(), name
)");
  const auto python = [&](const std::string& script) {
    return std::system(
        (interpreter + " '" + (scratch / script) + "' '" + (scratch / "") + "'").c_str());
  };
  REQUIRE(python("ours.py") == 0);
  const TensorFile stored = read_tensors(scratch / "stored.npz");
  const TensorFile deflated = read_tensors(scratch / "deflated.npz");
  REQUIRE(stored.tensors.size() == 44);
  REQUIRE(deflated.tensors.size() == 44);
  for (const Tensor& tensor : stored.tensors) {
    CHECK(same_codes(tensor, *deflated.find(tensor.name)));
    const Tensor* plain = stored.find(tensor.name.substr(0, 2) + "lC");
    CHECK(codes_of(tensor) == codes_of(*plain));
  }
  write_tensors(scratch / "again.npy", {}, read_tensors(scratch / "plain.npy").tensors);
  write_tensors(scratch / "again.npz", {}, stored.tensors);
  CHECK(python("theirs.py") == 0);
}

}  // namespace
}  // namespace guardbit::formats

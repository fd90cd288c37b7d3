#include "formats/files/npy.hpp"
#include "formats/files/npz.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/files/torch_file.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/torch_scratch.hpp"

namespace guardbit::formats {
namespace {

constexpr int rounds = 2000;

/// Reads `rounds` copies of a valid file with one byte changed: a tensor that can be read
/// throughout, or an Error of one line; the sanitizers of the asan preset watch the rest. Returns
/// how many were refused.
template <class Read>
int refused_mutations(const std::string& bytes, Read read) {
  std::mt19937_64 generator(7);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string mutated = bytes;
    const std::size_t at = generator() % bytes.size();
    mutated[at] = static_cast<char>(generator());
    CAPTURE(at, static_cast<int>(mutated[at]));
    try {
      for (const Tensor& tensor : read(in_memory(mutated, "x"))) {
        REQUIRE(codes_of(tensor).size() == static_cast<std::size_t>(element_count(tensor.shape)));
      }
    } catch (const Error& error) {
      REQUIRE_FALSE(contains(error.what(), "\n"));
      ++refused;
    }
  }
  return refused;
}

std::string written(auto write) {
  const Scratch scratch;
  const std::vector<Tensor> tensors = {random_tensor("a", e4m3, Packing::container, {2, 3}),
                                       random_tensor("b", e2m1, Packing::dense, {4}),
                                       random_tensor("s", ue4m3, Packing::container, {2})};
  write(scratch / "x", tensors);
  return read_text(scratch / "x");
}

TEST_CASE("single-byte mutations of a safetensors file") {
  const std::string bytes =
      written([](const std::string& path, const std::vector<Tensor>& tensors) {
        write_safetensors(path, {{"key", "value"}}, tensors);
      });
  const int refused = refused_mutations(
      bytes, [](const MappedFile& file) { return read_safetensors(file).tensors; });
  CHECK(refused > rounds / 2);
  CHECK(refused < rounds);
}

TEST_CASE("single-byte mutations of a .npy file") {
  const std::string bytes =
      written([](const std::string& path, const std::vector<Tensor>& tensors) {
        write_npy(path, tensors[0]);
      });
  const int refused = refused_mutations(bytes, [](const MappedFile& file) {
    return std::vector{read_npy(file, {e4m3, {}})};
  });
  CHECK(refused > rounds / 4);
  CHECK(refused < rounds);
}

TEST_CASE("single-byte mutations of an .npz file") {
  for (const ZipMethod method : {ZipMethod::stored, ZipMethod::deflated}) {
    const std::string bytes =
        written([&](const std::string& path, const std::vector<Tensor>& tensors) {
          write_npz(path, tensors, method);
        });
    const int refused =
        refused_mutations(bytes, [](const MappedFile& file) { return read_npz(file).tensors; });
    CHECK(refused > rounds / 4);
    CHECK(refused < rounds);
  }
}

TEST_CASE("single-byte mutations of what torch.save writes") {
  using namespace pickled;
  const std::string whole = storage("FloatStorage", "0", 4);
  const std::string bytes =
      torch_file(dict({text("step"), number(3), text("a"), tensor(whole, 0, {2, 2}, {2, 1}),
                       text("b"), list({tensor(whole, 0, {2, 2}, {1, 2})})}),
                 {{"0", std::string(16, '\1')}});
  const int refused = refused_mutations(bytes, [](const MappedFile& file) {
    return whole_tensors(file.path, open_torch(file)).tensors;
  });
  CHECK(refused > rounds / 4);
  CHECK(refused < rounds);
}

}  // namespace
}  // namespace guardbit::formats

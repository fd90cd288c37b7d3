#include "formats/files/tensor_output.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {
namespace {

std::vector<Tensor> some_tensors() {
  std::vector<std::uint64_t> codes(30);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = i;
  const auto first = [&](std::size_t count) { return std::span(codes).first(count); };
  return {tensor_of_codes("a", e4m3, Packing::container, {2, 5}, first(10)),
          tensor_of_codes("b", e2m1, Packing::dense, {16}, first(16)),
          tensor_of_codes("c", fp32, Packing::container, {30}, first(30)),
          tensor_of_codes("odd", e2m1, Packing::dense, {3, 3}, first(9)),
          tensor_of_codes("none", bf16, Packing::container, {0, 4}, first(0))};
}

/// Writes the tensors backwards, the second half of each before the first.
void write_in_pieces(TensorOutput& output, const std::vector<Tensor>& tensors) {
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const TensorWriter writer = output.writer(i);
    const Tensor tensor = with_packing(tensors[i], writer.packing);
    const std::size_t half = tensor.bytes.size() / 2;
    writer.write(half, tensor.bytes.subspan(half));
    writer.write(0, tensor.bytes.first(half));
  }
}

TEST_CASE("a file written in pieces is the one written at once") {
  const Scratch scratch;
  const std::vector<Tensor> all = some_tensors();
  for (const std::string extension : {".safetensors", ".npz", ".npy"}) {
    const std::vector<Tensor> tensors =
        extension == ".npy" ? std::vector{all.front()} : std::vector(all);
    std::vector<Tensor> described = tensors;
    for (Tensor& tensor : described) tensor.bytes = {};
    write_tensors(scratch / ("at_once" + extension), {{"k", "v"}}, tensors);
    TensorOutput output(scratch / ("pieces" + extension), {{"k", "v"}}, described);
    write_in_pieces(output, tensors);
    CHECK_FALSE(std::filesystem::exists(scratch / ("pieces" + extension)));
    output.commit();
    CHECK(read_text(scratch / ("pieces" + extension)) ==
          read_text(scratch / ("at_once" + extension)));
  }
}

TEST_CASE("a file whose tensors were written as memory is the one written at once") {
  const Scratch scratch;
  for (const std::string extension : {".safetensors", ".npz", ".npy"}) {
    std::vector<Tensor> tensors = some_tensors();
    if (extension == ".npy") tensors.resize(1);
    write_tensors(scratch / ("at_once" + extension), {{"k", "v"}}, tensors);
    TensorOutput output(scratch / ("mapped" + extension), {{"k", "v"}}, tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const TensorWriter writer = output.writer(i);
      const Tensor tensor = with_packing(tensors[i], writer.packing);
      const std::span<std::byte> memory = output.memory(i);
      if (memory.empty()) {
        CHECK((writer.packing == Packing::dense || tensor.bytes.empty()));
        writer.write(0, tensor.bytes);
      } else {
        REQUIRE(memory.size() == tensor.bytes.size());
        std::ranges::copy(tensor.bytes, memory.begin());
      }
    }
    CHECK_FALSE(std::filesystem::exists(scratch / ("mapped" + extension)));
    output.commit();
    CHECK(read_text(scratch / ("mapped" + extension)) ==
          read_text(scratch / ("at_once" + extension)));
  }
}

TEST_CASE("what a file cannot hold is refused before anything is written") {
  const Scratch scratch;
  const std::vector<Tensor> two(2, some_tensors().front());
  const auto refusal = [&](const std::string& name) {
    return error_of([&] { TensorOutput(scratch / name, {}, two); });
  };
  CHECK(contains(refusal("x.npy"), "a .npy file holds one tensor, not 2: use .npz"));
  CHECK(contains(refusal("x.safetensors"), "the name is taken"));
  CHECK(contains(refusal("x.bin"), "unknown extension (valid: .safetensors, .npy, .npz)"));
  CHECK(contains(refusal("no/folder.npz"), "cannot be written: No such file or directory"));
  CHECK(scratch.files() == 0);
}

TEST_CASE("an output that is given up leaves nothing") {
  const Scratch scratch;
  const std::vector<Tensor> tensors = some_tensors();
  {
    TensorOutput output(scratch / "x.safetensors", {}, tensors);
    write_in_pieces(output, tensors);
    output.memory(0)[0] = std::byte{1};
  }
  CHECK(scratch.files() == 0);
}

}  // namespace
}  // namespace guardbit::formats

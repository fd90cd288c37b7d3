#include "emulator/capture/capture.hpp"

#include <filesystem>
#include <functional>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit;
using emulator::Capture;
using formats::Packing;
using formats::Tensor;
using formats::TensorFile;

Tensor filled(const std::string& name, const formats::Format& format,
              const std::vector<std::int64_t>& shape, std::uint64_t code = 0) {
  const std::vector<std::uint64_t> codes(static_cast<std::size_t>(formats::element_count(shape)),
                                         code);
  return formats::tensor_of_codes(name, format, Packing::container, shape, codes);
}

/// A copy with element `index` replaced.
Tensor with_code(const Tensor& tensor, std::size_t index, std::uint64_t code) {
  std::vector<std::uint64_t> codes = formats::codes_of(tensor);
  codes.at(index) = code;
  return formats::tensor_of_codes(tensor.name, tensor.format, tensor.packing, tensor.shape, codes);
}

Tensor& tensor_of(TensorFile& file, const std::string& name) {
  for (Tensor& tensor : file.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::logic_error("no tensor " + name);
}

TensorFile dense_capture() {
  return {{{"capture", "1"},
           {"kind", "instruction"},
           {"arch", "sm_90"},
           {"cuda", "13.0"},
           {"instruction", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"}},
          {filled("a", formats::fp16, {2, 16, 16}, 0x3C00),
           filled("b", formats::fp16, {2, 16, 8}, 0x3C00), filled("c", formats::fp32, {2, 16, 8}),
           filled("d", formats::fp32, {2, 16, 8}, 0x41800000)}};
}

/// Pairs of four-bit integers: chunks of two.
TensorFile sparse_capture() {
  return {
      {{"capture", "1"},
       {"kind", "instruction"},
       {"arch", "sm_90"},
       {"instruction", "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"}},
      {filled("a", formats::uint8, {1, 16, 32}, 0xF), filled("b", formats::uint8, {1, 64, 8}, 1),
       filled("c", formats::int32, {1, 16, 8}), filled("d", formats::int32, {1, 16, 8}, 0xFFFFFFE0),
       filled("e", formats::uint8, {1, 16, 32}, 2)}};
}

TensorFile dot_capture() {
  return {{{"capture", "1"},
           {"kind", "dot"},
           {"arch", "sm_80"},
           {"unit", "wmma"},
           {"inputs", "bf16"},
           {"output", "fp32"}},
          {filled("a", formats::bf16, {3, 8}, 0x3F80), filled("b", formats::bf16, {3, 8}, 0x3F80),
           filled("c", formats::fp32, {3}), filled("d", formats::fp32, {3}, 0x41000000)}};
}

std::int64_t mismatches(const TensorFile& file) {
  Capture capture = emulator::make_capture(file, "x");
  const emulator::BoundBatch& operands = capture.operands;
  std::vector<std::byte> results(static_cast<std::size_t>(operands.outputs()) *
                                 static_cast<std::size_t>(operands.recorded.container_bytes));
  emulator::MatrixBatch batch = operands.batch;
  batch.d = emulator::codes_of(capture.instruction.d, results.data());
  const std::byte* const written = results.data();
  emulator::run_batch(emulator::require_engine("reference", capture.instruction),
                      capture.instruction, batch);
  return emulator::compare(capture.instruction, batch, operands.recorded,
                           emulator::codes_of(capture.instruction.d, written), 1)
      .mismatches;
}

/// The error that a change of a good capture brings about.
std::string error_of(TensorFile file, const std::function<void(TensorFile&)>& change) {
  change(file);
  try {
    static_cast<void>(emulator::make_capture(file, "x"));
  } catch (const formats::Error& error) {
    return error.what();
  }
  return "accepted";
}

/// The text when a part is missing in it, so that a failure shows it.
std::string text_without(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) return text;
  }
  return "";
}

TEST_CASE("captures of every kind are replayed") {
  CHECK(mismatches(dense_capture()) == 0);
  CHECK(mismatches(sparse_capture()) == 0);
  CHECK(mismatches(dot_capture()) == 0);

  TensorFile changed = dense_capture();
  tensor_of(changed, "d") = with_code(tensor_of(changed, "d"), 130, 0x41800001);
  CHECK(mismatches(changed) == 1);
}

TEST_CASE("a capture's metadata chooses operand signs, addend and toolkit") {
  TensorFile file = dense_capture();
  file.metadata["imm_scale_a"] = "-1";
  CHECK(emulator::make_capture(file, "x").operands.batch.modifiers.negate_a);
  CHECK(mismatches(file) == 2 * 16 * 8);
  file.metadata["imm_scale_b"] = "-1";
  CHECK(mismatches(file) == 0);

  file = dense_capture();
  tensor_of(file, "c") = filled("c", formats::fp32, {2, 16, 8}, 0x3F800000);
  CHECK(mismatches(file) == 2 * 16 * 8);
  file.metadata["scale_d"] = "0";
  CHECK(mismatches(file) == 0);

  TensorFile fp8 = dense_capture();
  fp8.metadata["instruction"] = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
  tensor_of(fp8, "a") = filled("a", formats::e4m3, {2, 16, 32});
  tensor_of(fp8, "b") = filled("b", formats::e4m3, {2, 32, 8});
  CHECK(emulator::make_capture(fp8, "x").instruction.steps.count == 3);
  fp8.metadata["ptxas"] = "12.4";  // wins over cuda
  CHECK(emulator::make_capture(fp8, "x").instruction.steps.count == 4);
  for (const auto& [text, steps] :
       {std::pair{"release 12.4, V12.4.131", 4}, {"CUDA 13.1", 3}, {"unknown", 3}}) {
    fp8.metadata["ptxas"] = text;
    CHECK(emulator::make_capture(fp8, "x").instruction.steps.count == steps);
  }
  fp8.metadata["arch"] = "sm_100";
  fp8.metadata["ptxas"] = "12.8";
  CHECK(emulator::make_capture(fp8, "x").instruction.steps.count == 3);
}

TEST_CASE("products that a short dot capture leaves out are zero") {
  TensorFile file;
  file.metadata = {{"capture", "1"},     {"kind", "dot"},    {"arch", "sm_90"},
                   {"unit", "mma.sync"}, {"inputs", "fp64"}, {"output", "fp64"}};
  // -1 * +0 + -0 is -0; a further fma(+0, +0, -0) makes it +0.
  file.tensors = {
      filled("a", formats::fp64, {1, 1}, 0xBFF0000000000000), filled("b", formats::fp64, {1, 1}),
      filled("c", formats::fp64, {1}, 0x8000000000000000), filled("d", formats::fp64, {1})};
  CHECK(mismatches(file) == 0);
}

TEST_CASE("operands come in the element types that can hold them") {
  TensorFile file = dense_capture();
  file.metadata["arch"] = "sm_120";
  file.metadata["instruction"] =
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3";
  const std::vector<std::uint64_t> twos(2 * 16 * 64, 4);
  tensor_of(file, "a") =
      formats::tensor_of_codes("a", formats::e2m1, Packing::dense, {2, 16, 64}, twos);
  tensor_of(file, "b") = filled("b", formats::uint8, {2, 64, 8}, 2);
  tensor_of(file, "d") = filled("d", formats::fp32, {2, 16, 8}, 0x43000000);
  file.tensors.push_back(
      filled("a_scale", formats::uint8, {2, 16, 4}, 0xB8));  // the sign bit is ignored
  file.tensors.push_back(filled("b_scale", formats::e4m3, {2, 4, 8}, 0x38));
  CHECK(mismatches(file) == 0);

  TensorFile tf32 = dense_capture();
  tf32.metadata["instruction"] = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
  tensor_of(tf32, "a") = filled("a", formats::fp32, {2, 16, 8}, 0x3F801FFF);
  tensor_of(tf32, "b") = filled("b", formats::fp32, {2, 8, 8}, 0x3F800000);
  tensor_of(tf32, "d") = filled("d", formats::fp32, {2, 16, 8}, 0x41000000);
  CHECK(mismatches(tf32) == 0);
}

TEST_CASE("N of wgmma comes from the name or, left open, from the tensors") {
  TensorFile file = dense_capture();
  tensor_of(file, "a") = filled("a", formats::fp16, {2, 64, 16}, 0x3C00);
  for (const char* name : {"c", "d"})
    tensor_of(file, name) = filled(name, formats::fp32, {2, 64, 8});
  file.metadata["instruction"] = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16";
  CHECK(emulator::make_capture(file, "x").operands.batch.shape == emulator::Shape{64, 8, 16});
  file.metadata["instruction"] = "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16";
  CHECK(emulator::make_capture(file, "x").operands.batch.shape == emulator::Shape{64, 8, 16});
  file.metadata["instruction"] = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16";
  CHECK(text_without(error_of(file, [](TensorFile&) {}), {"tensor 'b': shape [2, 16, 8]"}) == "");
}

TEST_CASE("an empty capture has nothing to compare") {
  TensorFile file = dense_capture();
  tensor_of(file, "a") = filled("a", formats::fp16, {0, 16, 16});
  tensor_of(file, "b") = filled("b", formats::fp16, {0, 16, 8});
  for (const char* name : {"c", "d"})
    tensor_of(file, name) = filled(name, formats::fp32, {0, 16, 8});
  CHECK(mismatches(file) == 0);
}

TEST_CASE("a capture that does not fit is refused with the place and the choices") {
  const auto metadata = [](const char* key, const char* value) {
    return [=](TensorFile& file) { file.metadata[key] = value; };
  };
  const auto drop = [](const char* key) {
    return [=](TensorFile& file) { file.metadata.erase(key); };
  };
  const auto put = [](const Tensor& tensor) {
    return [=](TensorFile& file) { tensor_of(file, tensor.name) = tensor; };
  };
  const auto dense = [](const auto& change) { return error_of(dense_capture(), change); };
  CHECK(text_without(dense(drop("capture")), {"metadata 'capture' is missing"}) == "");
  CHECK(text_without(dense(metadata("capture", "2")), {"'2'", "valid: 1"}) == "");
  CHECK(text_without(dense(metadata("kind", "gemm")), {"guardbit verify --plan"}) == "");
  CHECK(text_without(dense(metadata("kind", "conv2d")), {"guardbit verify --plan"}) == "");
  CHECK(text_without(dense(metadata("kind", "cast")), {"'cast'", "valid: instruction, dot"}) == "");
  CHECK(text_without(dense(metadata("arch", "sm_91")), {"sm_91", "sm_90"}) == "");
  CHECK(text_without(
            dense(metadata("instruction", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f61.f32")),
            {"did you mean mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"}) == "");
  CHECK(text_without(dense(metadata("imm_scale_a", "2")), {"valid: 1, -1"}) == "");
  CHECK(text_without(dense(metadata("scale_d", "yes")), {"valid: 1, 0"}) == "");
  CHECK(text_without(dense([](TensorFile& file) { file.tensors.pop_back(); }),
                     {"tensor 'd' is missing"}) == "");
  CHECK(text_without(dense(put(filled("a", formats::bf16, {2, 16, 16}))),
                     {"tensor 'a': element type BF16 cannot hold fp16 (valid: F16)"}) == "");
  CHECK(text_without(dense(put(filled("b", formats::fp16, {2, 8, 16}))),
                     {"tensor 'b': shape [2, 8, 16]", "needs [2, 16, 8]"}) == "");
  CHECK(text_without(dense(put(filled("c", formats::fp32, {16, 8}))), {"has not 3 dimensions"}) ==
        "");
  CHECK(text_without(dense([](TensorFile& file) {
                       file.tensors.push_back(filled("e", formats::uint8, {2, 16, 16}));
                     }),
                     {"tensor 'e'", "is dense"}) == "");

  const auto sparse = [](const auto& change) { return error_of(sparse_capture(), change); };
  CHECK(text_without(
            sparse(put(with_code(sparse_capture().tensors[0], 33, 16))),
            {"tensor 'a' at [0, 1, 1]", "int4 code 16 is out of range (valid: 0 to 15)"}) == "");
  CHECK(text_without(sparse(put(with_code(sparse_capture().tensors[4], 5, 4))),
                     {"tensor 'e' at [0, 0, 5]: position 4 is out of range (valid: 0 to 3)"}) ==
        "");
  CHECK(text_without(sparse(put(with_code(sparse_capture().tensors[4], 5, 1))),
                     {"tensor 'e' at [0, 0, 5]: position 1 differs from that of its pair, 2"}) ==
        "");
  CHECK(text_without(sparse(metadata("imm_scale_a", "-1")), {"floating operands only"}) == "");
  CHECK(text_without(sparse([](TensorFile& file) { file.tensors.pop_back(); }),
                     {"tensor 'e' is missing"}) == "");

  const auto dot = [](const auto& change) { return error_of(dot_capture(), change); };
  CHECK(text_without(dot(metadata("inputs", "fp17")), {"fp17"}) == "");
  CHECK(text_without(dot(metadata("unit", "tcgen05")), {"no tcgen05 instruction of sm_80"}) == "");
  CHECK(text_without(dot(put(filled("b", formats::bf16, {3, 4}))),
                     {"tensor 'b': shape [3, 4] where a has [3, 8]"}) == "");
  CHECK(text_without(dot(put(filled("c", formats::fp32, {2}))),
                     {"tensor 'c': shape [2] where a has [3]"}) == "");
}

TEST_CASE("distances count codes, and NaNs have none") {
  using emulator::code_distance;
  CHECK(code_distance(formats::fp32, 0x3F800000, 0x3F800001) == 1U);
  CHECK(code_distance(formats::fp32, 0x00000001, 0x80000001) == 2U);
  CHECK(code_distance(formats::fp32, 0x00000000, 0x80000000) == 0U);
  CHECK(code_distance(formats::fp16, 0x7BFF, 0x7C00) == 1U);
  CHECK_FALSE(code_distance(formats::fp16, 0x7BFF, 0x7C01).has_value());
  CHECK(code_distance(formats::int32, 0xFFFFFFFF, 1) == 2U);
  CHECK(code_distance(formats::int32, 0x80000000, 0x7FFFFFFF) == 0xFFFFFFFFU);
  CHECK(code_distance(formats::fp64, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF) ==
        0xFFDFFFFFFFFFFFFEU);
}

TEST_CASE("NaNs of FP64 are equal, those of FP32 bit by bit") {
  const auto f64 =
      emulator::find_instruction("sm_90", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64");
  const auto f32 =
      emulator::find_instruction("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  REQUIRE((f64 && f32));
  CHECK(emulator::same_result(*f64, 0x7FF8000000000000, 0xFFF8000000000001));
  CHECK_FALSE(emulator::same_result(*f64, 0x7FF8000000000000, 0x7FF0000000000000));
  CHECK_FALSE(emulator::same_result(*f32, 0x7FFFFFFF, 0x7FC00000));
}

TEST_CASE("every golden recording is reproduced by every engine that takes its instruction") {
  std::vector<std::string> files;
  for (const char* folder : {"tests/golden/mma.sp", "tests/golden/mma.sync", "tests/golden/wgmma",
                             "tests/golden/wmma", "tests/golden/x86"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    }
  }
  for (const std::string& file : files) {
    const Capture capture = emulator::read_capture(file);
    for (const emulator::Engine& engine : emulator::engines()) {
      if (!engine.accepts(capture.instruction)) continue;
      std::vector<std::byte> results(
          static_cast<std::size_t>(capture.operands.outputs()) *
          static_cast<std::size_t>(capture.operands.recorded.container_bytes));
      emulator::MatrixBatch batch = capture.operands.batch;
      batch.d = emulator::codes_of(capture.instruction.d, results.data());
      emulator::run_batch(engine, capture.instruction, batch);
      const std::byte* const written = results.data();
      const emulator::Comparison comparison =
          emulator::compare(capture.instruction, batch, capture.operands.recorded,
                            emulator::codes_of(capture.instruction.d, written), 1);
      INFO(file << " on " << engine.name);
      CHECK(comparison.mismatches == 0);
    }
  }
  CHECK(files.size() >= 66 + 13);
}

}  // namespace

#include "gpu/validation/device_capture.hpp"

#include <cstdint>
#include <vector>

#include "emulator/capture/capture.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::gpu {

namespace {

constexpr auto container = formats::Packing::container;

/// The format of the words in a file: TF32 as 32 bits with its ignored bits, narrow codes as bytes.
Format stored_format(const Format& f) {
  if (f == formats::tf32) return formats::fp32;
  return bits(f) < 8 || f == formats::e8m0 ? formats::uint8 : f;
}

template <class Word>
formats::Tensor make_tensor(const char* name, const Format& format, const Batch& batch, int rows,
                            int columns, const std::vector<Word>& words) {
  return formats::tensor_of_codes(name, stored_format(format), container,
                                  {batch.executions, rows, columns}, words);
}

template <class Word>
void read_words(std::vector<Word>& words, const formats::TensorFile& file, const std::string& path,
                const char* name, const Format& type) {
  const formats::Tensor* tensor = file.find(name);
  const Format stored = stored_format(type);
  const auto bytes = static_cast<std::size_t>(formats::container_bits(stored)) / 8;
  if (tensor == nullptr || tensor->bytes.size() != words.size() * bytes)
    throw formats::Error(path, std::string("tensor ") + name + " does not fit the instruction");
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<Word>(formats::load_code(tensor->bytes, stored, container, i));
}

}  // namespace

std::string capture_stem(const TensorCoreInstruction& instruction) {
  std::string stem(instruction.name);
  for (std::size_t at = 0; (at = stem.find("::")) != std::string::npos;) stem.replace(at, 2, "__");
  return instruction.variant.empty() ? stem : stem + "." + std::string(instruction.variant);
}

void write_capture(const std::string& path, const TensorCoreInstruction& instruction,
                   const Batch& batch, const std::map<std::string, std::string>& metadata) {
  std::vector<formats::Tensor> tensors = {
      make_tensor("a", instruction.a, batch, instruction.m, instruction.stored_k(), batch.a),
      make_tensor("b", instruction.b, batch, instruction.k, instruction.n, batch.b),
      make_tensor("c", instruction.c, batch, instruction.m, instruction.n, batch.c),
      make_tensor("d", instruction.d, batch, instruction.m, instruction.n, batch.d)};
  if (instruction.sparse)
    tensors.push_back(
        make_tensor("e", formats::uint8, batch, instruction.m, instruction.stored_k(), batch.e));
  if (const int count = instruction.scale.count; count != 0) {
    const Format& type = instruction.scale.format;
    tensors.push_back(make_tensor("a_scale", type, batch, instruction.m, count, batch.a_scale));
    tensors.push_back(make_tensor("b_scale", type, batch, count, instruction.n, batch.b_scale));
  }
  auto all = emulator::capture_metadata(
      emulator::require_instruction(instruction.arch, instruction.name, path), instruction.arch,
      emulator::newest_toolkit,
      {.negate_a = instruction.negate_a,
       .negate_b = instruction.negate_b,
       .zero_addend = instruction.ignore_c});
  all.insert(metadata.begin(), metadata.end());
  if (instruction.a_from_registers) all["a_source"] = "registers";
  if (instruction.a_swizzle != 0) all["a_swizzle"] = std::to_string(instruction.a_swizzle);
  if (instruction.b_swizzle != 0) all["b_swizzle"] = std::to_string(instruction.b_swizzle);
  if (instruction.selector != 0) all["selector"] = std::to_string(instruction.selector);
  if (instruction.unordered) all["positions"] = "unordered";
  if (instruction.unit == Unit::wgmma && instruction.a_column_major) all["a_layout"] = "col";
  if (instruction.unit == Unit::wgmma && instruction.b_row_major) all["b_layout"] = "row";
  formats::write_safetensors(path, all, tensors);
}

Batch read_capture(const std::string& path, const TensorCoreInstruction& instruction) {
  const formats::TensorFile file = formats::read_safetensors(path);
  const formats::Tensor* a = file.find("a");
  if (a == nullptr || a->shape.empty()) throw formats::Error(path, "no tensor a");
  Batch batch(instruction, static_cast<int>(a->shape[0]));
  read_words(batch.a, file, path, "a", instruction.a);
  read_words(batch.b, file, path, "b", instruction.b);
  read_words(batch.c, file, path, "c", instruction.c);
  read_words(batch.d, file, path, "d", instruction.d);
  if (instruction.sparse) read_words(batch.e, file, path, "e", formats::uint8);
  if (instruction.scale.count != 0) {
    read_words(batch.a_scale, file, path, "a_scale", instruction.scale.format);
    read_words(batch.b_scale, file, path, "b_scale", instruction.scale.format);
  }
  return batch;
}

}  // namespace guardbit::gpu

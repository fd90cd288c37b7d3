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

/// The format whose containers hold the words in a file: ignored TF32 bits are kept, narrow codes
/// take a byte.
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

std::string capture_stem(const TensorCoreInstruction& row) {
  std::string stem(row.name);
  for (std::size_t at = 0; (at = stem.find("::")) != std::string::npos;) stem.replace(at, 2, "__");
  return row.variant.empty() ? stem : stem + "." + std::string(row.variant);
}

void write_capture(const std::string& path, const TensorCoreInstruction& row, const Batch& batch,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<formats::Tensor> tensors = {
      make_tensor("a", row.a, batch, row.m, row.stored_k(), batch.a),
      make_tensor("b", row.b, batch, row.k, row.n, batch.b),
      make_tensor("c", row.c, batch, row.m, row.n, batch.c),
      make_tensor("d", row.d, batch, row.m, row.n, batch.d)};
  if (row.sparse)
    tensors.push_back(make_tensor("e", formats::uint8, batch, row.m, row.stored_k(), batch.e));
  if (const int count = row.scale.count; count != 0) {
    const Format& type = row.scale.format;
    tensors.push_back(make_tensor("a_scale", type, batch, row.m, count, batch.a_scale));
    tensors.push_back(make_tensor("b_scale", type, batch, count, row.n, batch.b_scale));
  }
  auto all = emulator::capture_metadata(
      emulator::require_instruction(row.arch, row.name, path), row.arch, emulator::newest_toolkit,
      {.negate_a = row.negate_a, .negate_b = row.negate_b, .zero_addend = row.ignore_c});
  all.insert(metadata.begin(), metadata.end());
  if (row.a_from_registers) all["a_source"] = "registers";
  if (row.a_swizzle != 0) all["a_swizzle"] = std::to_string(row.a_swizzle);
  if (row.b_swizzle != 0) all["b_swizzle"] = std::to_string(row.b_swizzle);
  if (row.selector != 0) all["selector"] = std::to_string(row.selector);
  if (row.unordered) all["positions"] = "unordered";
  if (row.unit == Unit::wgmma && row.a_column_major) all["a_layout"] = "col";
  if (row.unit == Unit::wgmma && row.b_row_major) all["b_layout"] = "row";
  formats::write_safetensors(path, all, tensors);
}

Batch read_capture(const std::string& path, const TensorCoreInstruction& row) {
  const formats::TensorFile file = formats::read_safetensors(path);
  const formats::Tensor* a = file.find("a");
  if (a == nullptr || a->shape.empty()) throw formats::Error(path, "no tensor a");
  Batch batch(row, static_cast<int>(a->shape[0]));
  read_words(batch.a, file, path, "a", row.a);
  read_words(batch.b, file, path, "b", row.b);
  read_words(batch.c, file, path, "c", row.c);
  read_words(batch.d, file, path, "d", row.d);
  if (row.sparse) read_words(batch.e, file, path, "e", formats::uint8);
  if (row.scale.count != 0) {
    read_words(batch.a_scale, file, path, "a_scale", row.scale.format);
    read_words(batch.b_scale, file, path, "b_scale", row.scale.format);
  }
  return batch;
}

}  // namespace guardbit::gpu

#include "emulator/capture/capture.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/model/dot.hpp"
#include "formats/codec.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;
using formats::Tensor;

/// The metadata of a capture file, every value checked as it is read.
class Metadata {
 public:
  Metadata(const std::map<std::string, std::string>& values, const std::string& where)
      : values_(values), where_(where) {}

  std::optional<std::string> find(const std::string& key) const {
    const auto entry = values_.find(key);
    if (entry == values_.end()) return {};
    return entry->second;
  }

  std::string require(const std::string& key) const {
    const auto value = find(key);
    if (!value) throw Error(where_, "not a capture: metadata '" + key + "' is missing");
    return *value;
  }

  /// Is the key there with value `yes`? `no` is the same as being absent.
  bool flag(const std::string& key, const std::string& yes, const std::string& no) const {
    const std::string value = find(key).value_or(no);
    if (value != yes && value != no) refuse(key, value, no + ", " + yes);
    return value == yes;
  }

  /// The first version in free text such as "CUDA 13.0, V13.0.48"; the newest where there is none.
  int toolkit() const {
    for (const char* key : {"ptxas", "cuda"}) {
      const auto value = find(key);
      if (!value) continue;
      const std::size_t digits = value->find_first_of("0123456789");
      if (digits == std::string::npos) continue;
      std::string version = value->substr(digits);
      version.resize(std::min(version.size(), version.find_first_not_of("0123456789.")));
      if (const auto toolkit = parse_toolkit(version)) return *toolkit;
    }
    return newest_toolkit;
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& value,
                           const std::string& choices) const {
    throw Error(where_, key + " " + formats::in_quotes(value) + " is not valid", choices);
  }

 private:
  const std::map<std::string, std::string>& values_;
  const std::string& where_;
};

Modifiers read_modifiers(const Metadata& metadata, const MatrixInstruction& instruction,
                         const std::string& where) {
  const Modifiers modifiers{metadata.flag("imm_scale_a", "-1", "1"),
                            metadata.flag("imm_scale_b", "-1", "1"),
                            metadata.flag("scale_d", "0", "1")};
  if ((modifiers.negate_a || modifiers.negate_b) && formats::is_integer(instruction.a)) {
    throw Error(where, "imm_scale -1 negates floating operands only, not " +
                           formats::name_of(instruction.a));
  }
  return modifiers;
}

Tensor take(formats::TensorFile& file, std::string_view name, std::size_t dimensions,
            const std::string& where) {
  const Tensor* tensor = file.find(name);
  if (tensor == nullptr) throw Error(where, "tensor '" + std::string(name) + "' is missing");
  if (tensor->shape.size() != dimensions) {
    throw Error(where + ": tensor '" + std::string(name) + "'",
                "shape " + shape_text(tensor->shape) + " has not " + std::to_string(dimensions) +
                    " dimensions");
  }
  return *tensor;
}

void check_shape(const Tensor& tensor, const std::vector<std::int64_t>& shape,
                 const std::string& where) {
  if (tensor.shape == shape) return;
  throw Error(where + ": tensor '" + tensor.name + "'",
              "shape " + shape_text(tensor.shape) + " where a has " + shape_text(shape));
}

/// Tensors [T, K], [T, K], [T] and [T] as a batch with M = N = 1.
Capture make_dot(formats::TensorFile& file, const Metadata& metadata, const std::string& where) {
  Capture capture;
  const Format inputs = formats::require_format(metadata.require("inputs"), where + ": inputs");
  const Format output = formats::require_format(metadata.require("output"), where + ": output");
  Tensor a = take(file, "a", 2, where), b = take(file, "b", 2, where);
  Tensor c = take(file, "c", 1, where), d = take(file, "d", 1, where);
  const std::int64_t count = a.shape[0];
  const std::int64_t k = a.shape[1];
  if (k < 1 || k > max_k) {
    throw Error(where + ": tensor 'a'", "K = " + std::to_string(k),
                "1 to " + std::to_string(max_k));
  }
  check_shape(b, a.shape, where);
  for (const Tensor* tensor : {&c, &d}) check_shape(*tensor, {count}, where);
  capture.instruction = require_dot(metadata.require("arch"), metadata.require("unit"), inputs,
                                    output, static_cast<int>(k), where, metadata.toolkit());
  MatrixInstruction one_element = capture.instruction;
  one_element.shape = {1, 1, static_cast<int>(k)};
  a.shape = {count, 1, k};
  b.shape = {count, k, 1};
  c.shape = d.shape = {count, 1, 1};
  capture.operands = bind_operands(one_element, {a, b, c, d}, ElementType::named, where);
  return capture;
}

Capture make_instruction(formats::TensorFile& file, const Metadata& metadata,
                         const std::string& where) {
  Capture capture;
  capture.instruction = require_instruction(
      metadata.require("arch"), metadata.require("instruction"), where, metadata.toolkit());
  for (const char* name : {"a", "b", "c", "d"}) static_cast<void>(take(file, name, 3, where));
  const Modifiers modifiers = read_modifiers(metadata, capture.instruction, where);
  capture.operands =
      bind_operands(capture.instruction, std::move(file.tensors), ElementType::named, where);
  capture.operands.batch.modifiers = modifiers;
  return capture;
}

/// Position of a code on the format's number line, zero in the middle.
std::int64_t ordinal(const Format& format, std::uint64_t code) {
  const auto magnitude = static_cast<std::int64_t>(code & formats::magnitude_mask(format));
  if ((code & formats::sign_mask(format)) == 0) return magnitude;
  if (!formats::is_integer(format)) return -magnitude;
  return magnitude - static_cast<std::int64_t>(formats::magnitude_mask(format)) - 1;
}

}  // namespace

Capture make_capture(formats::TensorFile file, const std::string& where) {
  const Metadata metadata(file.metadata, where);
  if (const std::string version = metadata.require("capture"); version != "1") {
    throw Error(where, "capture version " + formats::in_quotes(version) + " is not known", "1");
  }
  const std::string kind = metadata.require("kind");
  if (kind == "gemm" || kind == "conv2d") {
    throw Error(
        where,
        "captures of kind '" + kind +
            "' are replayed by a plan: guardbit explain finds it, guardbit verify --plan executes it",
        "instruction, dot");
  }
  if (kind == "function") {
    throw Error(where,
                "captures of kind 'function' have no executions: guardbit verify takes them whole",
                "instruction, dot");
  }
  if (kind != "instruction" && kind != "dot") metadata.refuse("kind", kind, "instruction, dot");
  Capture capture =
      kind == "dot" ? make_dot(file, metadata, where) : make_instruction(file, metadata, where);
  capture.path = where;
  capture.kind = kind;
  capture.arch = metadata.require("arch");
  return capture;
}

Capture read_capture(const std::string& path) {
  Capture capture = make_capture(formats::read_safetensors(path), formats::printable(path));
  capture.path = path;
  return capture;
}

std::map<std::string, std::string> capture_metadata(const MatrixInstruction& instruction,
                                                    std::string_view arch, int toolkit,
                                                    const Modifiers& modifiers) {
  std::map<std::string, std::string> metadata = {
      {"capture", "1"},
      {"kind", "instruction"},
      {"instruction", std::string(std::string_view(instruction.name))},
      {"arch", std::string(arch)}};
  if (arch.starts_with("sm_"))  // only there does a compiler stand between name and machine
    metadata["ptxas"] = version_text(toolkit);
  if (modifiers.negate_a) metadata["imm_scale_a"] = "-1";
  if (modifiers.negate_b) metadata["imm_scale_b"] = "-1";
  if (modifiers.zero_addend) metadata["scale_d"] = "0";
  return metadata;
}

bool same_result(const MatrixInstruction& instruction, std::uint64_t recorded,
                 std::uint64_t computed) {
  if (recorded == computed) return true;
  const bool any_nan = instruction.d == formats::fp64 ||
                       (instruction.steps.end() - 1)->spec.nan == NanPolicy::unspecified;
  return any_nan && formats::decode(instruction.d, recorded).kind == formats::Kind::nan &&
         formats::decode(instruction.d, computed).kind == formats::Kind::nan;
}

std::optional<std::uint64_t> code_distance(const Format& format, std::uint64_t x, std::uint64_t y) {
  for (const std::uint64_t code : {x, y}) {
    if (formats::decode(format, code).kind == formats::Kind::nan) return {};
  }
  const std::int64_t p = ordinal(format, x);
  const std::int64_t q = ordinal(format, y);
  return p > q ? static_cast<std::uint64_t>(p) - static_cast<std::uint64_t>(q)
               : static_cast<std::uint64_t>(q) - static_cast<std::uint64_t>(p);
}

Comparison compare(const MatrixInstruction& instruction, const MatrixBatch& batch,
                   const ConstCodes& recorded, const ConstCodes& computed, std::size_t limit) {
  Comparison result;
  const std::int64_t per_execution = std::int64_t{batch.shape.m} * batch.shape.n;
  const std::int64_t outputs = batch.count * per_execution;
  const auto size = static_cast<std::size_t>(outputs * recorded.container_bytes);
  if (outputs == 0 || std::memcmp(recorded.data, computed.data, size) == 0) return result;
  for (std::int64_t i = 0; i < outputs; ++i) {
    if (same_result(instruction, recorded[i], computed[i])) continue;
    ++result.mismatches;
    if (result.first.size() >= limit) continue;
    const std::int64_t place = i % per_execution;
    result.first.push_back({i / per_execution, static_cast<int>(place / batch.shape.n),
                            static_cast<int>(place % batch.shape.n)});
  }
  return result;
}

}  // namespace guardbit::emulator

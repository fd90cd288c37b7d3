#include "emulator/capture/bound_operands.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "emulator/catalogue/instruction_name.hpp"
#include "formats/files/dtype.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;
using formats::Packing;
using formats::Tensor;

std::string at_tensor(const std::string& where, const Tensor& tensor) {
  return where + ": tensor '" + tensor.name + "'";
}

std::string element_type_name(const Tensor& tensor) {
  const formats::Dtype* dtype = formats::find_dtype(tensor.format, tensor.packing);
  return dtype != nullptr ? std::string(dtype->safetensors) : formats::name_of(tensor.format);
}

/// Formats other than its own in whose words codes of `format` may come.
std::vector<Format> stand_ins(const Format& format, ElementType elements) {
  std::vector<Format> list;
  const int width = formats::bits(format);
  if (formats::is_truncated_fp32(format)) list.push_back(formats::fp32);
  if (width < 8 || format == formats::e8m0) list.push_back(formats::uint8);
  if (format == formats::ue4m3) list.push_back(formats::e4m3);
  const Format word = formats::integer(formats::container_bits(format), false);
  if (elements == ElementType::same_bits && std::find(list.begin(), list.end(), word) == list.end())
    list.push_back(word);
  return list;
}

std::string accepted_names(const Format& format, ElementType elements) {
  std::vector<Format> list = stand_ins(format, elements);
  list.insert(list.begin(), format);
  std::string names;
  for (const Format& f : list) {
    for (const Packing packing : {Packing::container, Packing::dense}) {
      const formats::Dtype* dtype = formats::find_dtype(f, packing);
      if (dtype != nullptr) names += (names.empty() ? "" : ", ") + std::string(dtype->safetensors);
    }
  }
  return names;
}

/// The tensor as codes of `format`, one per container.
Tensor read_as(const Tensor& tensor, const Format& format, ElementType elements,
               const std::string& where) {
  if (tensor.format != format) {
    const std::vector<Format> accepted = stand_ins(format, elements);
    if (std::find(accepted.begin(), accepted.end(), tensor.format) == accepted.end()) {
      throw Error(
          at_tensor(where, tensor),
          "element type " + element_type_name(tensor) + " cannot hold " + formats::name_of(format),
          accepted_names(format, elements));
    }
  }
  Tensor result = formats::with_packing(tensor, Packing::container);
  result.format = format;
  return result;
}

/// "[3, 0, 17]": where a flat index lies.
std::string index_text(const std::vector<std::int64_t>& shape, std::int64_t flat) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return shape_text(index);
}

/// Codes narrower than a byte must not have bits above them.
void check_codes(const Tensor& tensor, int limit, const std::string& what,
                 const std::string& where) {
  const auto bad = std::find_if(tensor.bytes.begin(), tensor.bytes.end(), [limit](std::byte code) {
    return std::to_integer<int>(code) >= limit;
  });
  if (bad == tensor.bytes.end()) return;
  throw Error(
      at_tensor(where, tensor) + " at " + index_text(tensor.shape, bad - tensor.bytes.begin()),
      what + " " + std::to_string(std::to_integer<int>(*bad)) + " is out of range",
      "0 to " + std::to_string(limit - 1));
}

/// The unit ignores the sign bit of UE4M3 scales (NUMERICS 1.6); engines see codes without it.
Tensor without_sign_bit(const Tensor& tensor) {
  std::vector<std::byte> codes(tensor.bytes.begin(), tensor.bytes.end());
  for (std::byte& code : codes) code &= std::byte{0x7F};
  return formats::owning_tensor(tensor.name, tensor.format, tensor.packing, tensor.shape,
                                std::move(codes));
}

/// The elements of one chunk stand at neighbouring k's, so they carry one position.
void check_chunks(const Tensor& e, const Sparsity& sparsity, const std::string& where) {
  const auto chunk = static_cast<std::size_t>(sparsity.chunk);
  for (std::size_t i = 0; i < e.bytes.size(); ++i) {
    if (e.bytes[i] == e.bytes[i - i % chunk]) continue;
    throw Error(at_tensor(where, e) + " at " + index_text(e.shape, static_cast<std::int64_t>(i)),
                "position " + std::to_string(std::to_integer<int>(e.bytes[i])) +
                    " differs from that of its pair, " +
                    std::to_string(std::to_integer<int>(e.bytes[i - i % chunk])));
  }
}

/// Reads the tensors of one batch, one role after the other.
class Binder {
 public:
  Binder(const MatrixInstruction& instruction, std::vector<Tensor> tensors, ElementType elements,
         const std::string& where)
      : instruction_(instruction),
        tensors_(std::move(tensors)),
        elements_(elements),
        where_(where) {}

  BoundBatch bind() {
    MatrixBatch& batch = result_.batch;
    read_shape();
    const Shape& s = batch.shape;
    const std::int64_t t = batch.count;
    const std::int64_t stored = stored_k(instruction_, s.k);
    batch.a = operand("a", instruction_.a, {t, s.m, stored}).value();
    batch.b = operand("b", instruction_.b, {t, s.k, s.n}).value();
    batch.c = operand("c", instruction_.c, {t, s.m, s.n}).value_or(ConstCodes{});
    result_.recorded = operand("d", instruction_.d, {t, s.m, s.n}).value_or(ConstCodes{});
    bind_positions(t, stored);
    bind_scales(t);
    return std::move(result_);
  }

 private:
  const Tensor* find(std::string_view name) const {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const Tensor& x) { return x.name == name; });
    return found == tensors_.end() ? nullptr : &*found;
  }

  const Tensor& require(std::string_view name) const {
    const Tensor* tensor = find(name);
    if (tensor == nullptr) throw Error(where_, "tensor '" + std::string(name) + "' is missing");
    return *tensor;
  }

  /// The number of executions and the dimensions that the instruction leaves open.
  void read_shape() {
    const Tensor& a = require("a");
    const Tensor& b = require("b");
    for (const Tensor* tensor : {&a, &b}) {
      if (tensor->shape.size() != 3) {
        throw Error(at_tensor(where_, *tensor),
                    "shape " + shape_text(tensor->shape) + " has not 3 dimensions");
      }
    }
    Shape& shape = result_.batch.shape;
    shape = instruction_.shape;
    result_.batch.count = a.shape[0];
    ParsedName free_geometry;
    if (shape.m == 0) free_geometry.shape.m = shape.m = dimension(a, 1);
    if (shape.n == 0) free_geometry.shape.n = shape.n = dimension(b, 2);
    if (!accepts_geometry(instruction_, free_geometry)) {
      throw Error(where_, std::string(instruction_.name) + " does not exist with M = " +
                              std::to_string(shape.m) + " and N = " + std::to_string(shape.n));
    }
  }

  int dimension(const Tensor& tensor, std::size_t axis) const {
    const std::int64_t size = tensor.shape[axis];
    if (size > std::numeric_limits<int>::max())
      throw Error(at_tensor(where_, tensor), "too large a dimension");
    return static_cast<int>(size);
  }

  std::optional<ConstCodes> operand(std::string_view name, const Format& format,
                                    const std::vector<std::int64_t>& shape) {
    const Tensor* tensor = find(name);
    if (tensor == nullptr) return {};
    if (tensor->shape != shape) {
      throw Error(at_tensor(where_, *tensor), "shape " + shape_text(tensor->shape) + " where " +
                                                  std::string(instruction_.name) + " needs " +
                                                  shape_text(shape));
    }
    Tensor codes = read_as(*tensor, format, elements_, where_);
    if (format == formats::ue4m3) {
      codes = without_sign_bit(codes);
    } else if (formats::bits(format) < 8) {
      check_codes(codes, 1 << formats::bits(format), formats::name_of(format) + " code", where_);
    }
    result_.tensors.push_back(std::move(codes));
    return codes_of(format, result_.tensors.back().bytes.data());
  }

  void refuse(std::string_view name, const std::string& why) const {
    if (find(name) != nullptr)
      throw Error(at_tensor(where_, *find(name)), std::string(instruction_.name) + " " + why);
  }

  void bind_positions(std::int64_t count, std::int64_t stored) {
    const Sparsity& sparsity = instruction_.sparsity;
    if (sparsity.group_elements == 0) return refuse("e", "is dense and has no positions");
    static_cast<void>(require("e"));
    result_.batch.e = operand("e", formats::uint8, {count, result_.batch.shape.m, stored}).value();
    const Tensor& e = result_.tensors.back();
    check_codes(e, positions(sparsity), "position", where_);
    check_chunks(e, sparsity, where_);
  }

  void bind_scales(std::int64_t count) {
    const BlockScale& scale = instruction_.scale;
    const Shape& s = result_.batch.shape;
    for (const std::string_view name : {"a_scale", "b_scale"}) {
      if (scale.count == 0) {
        refuse(name, "takes no scale factors");
      } else {
        static_cast<void>(require(name));
      }
    }
    if (scale.count == 0) return;
    result_.batch.a_scale = operand("a_scale", scale.format, {count, s.m, scale.count}).value();
    result_.batch.b_scale = operand("b_scale", scale.format, {count, scale.count, s.n}).value();
  }

  const MatrixInstruction& instruction_;
  std::vector<Tensor> tensors_;
  ElementType elements_;
  const std::string& where_;
  BoundBatch result_;
};

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

BoundBatch bind_operands(const MatrixInstruction& instruction, std::vector<Tensor> tensors,
                         ElementType elements, const std::string& where) {
  return Binder(instruction, std::move(tensors), elements, where).bind();
}

MatrixBatch part_of(const MatrixInstruction& instruction, const MatrixBatch& batch,
                    std::int64_t begin, std::int64_t count) {
  MatrixBatch part = batch;
  part.count = count;
  const Shape& s = batch.shape;
  const auto skip = [begin](auto& codes, std::int64_t elements) {
    if (codes.data != nullptr) codes.data += begin * elements * codes.container_bytes;
  };
  const std::int64_t stored = stored_k(instruction, s.k);
  skip(part.a, s.m * stored);
  skip(part.e, s.m * stored);
  skip(part.b, std::int64_t{s.k} * s.n);
  skip(part.c, std::int64_t{s.m} * s.n);
  skip(part.d, std::int64_t{s.m} * s.n);
  skip(part.a_scale, std::int64_t{s.m} * instruction.scale.count);
  skip(part.b_scale, std::int64_t{instruction.scale.count} * s.n);
  return part;
}

}  // namespace guardbit::emulator

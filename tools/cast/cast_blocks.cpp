#include "tools/cast/cast_blocks.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/block_tensor.hpp"
#include "formats/files/array_file.hpp"
#include "formats/files/dtype.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/cast/cast_report.hpp"
#include "tools/cast/cast_run.hpp"
#include "tools/catalogue/format_facts.hpp"

namespace guardbit::tools {

namespace {

using formats::BlockFormat;
using formats::Error;
using formats::Packing;
using formats::Tensor;
using formats::TensorFile;

std::string place_of(const CastOptions& options, const std::string& tensor) {
  return formats::printable(options.input) + ": tensor " + formats::in_quotes(tensor);
}

/// The tensors of blocks, without their bytes.
std::vector<Tensor> parts_of(const formats::BlockTensor& blocks, const BlockFormat& format) {
  std::vector<Tensor> parts = {blocks.elements, blocks.scales};
  const std::string& name = blocks.elements.name;
  parts[1].name = name + scales_suffix;
  if (format.tensor_scale) {
    parts.push_back(
        {name + tensor_scale_suffix, *format.tensor_scale, Packing::container, {}, {}, nullptr});
  }
  return parts;
}

/// Refuses, before any work, what cannot become blocks or would be written twice.
void check_tensors(const CastOptions& options, const BlockFormat& to,
                   const std::vector<Tensor>& tensors) {
  std::set<std::string> names;
  for (const Tensor& tensor : tensors) names.insert(tensor.name);
  for (const Tensor& tensor : tensors) {
    const std::string place = place_of(options, tensor.name);
    block_axis(options, tensor.shape, place);
    if (!formats::is_within_fp32(tensor.format)) {
      throw Error(place, "blocks are made of numbers that FP32 holds, not of " +
                             formats::name_of(tensor.format) +
                             ": cast it --to fp32 first, or choose others with --tensor");
    }
    for (const char* suffix : {scales_suffix, tensor_scale_suffix}) {
      if ((suffix == scales_suffix || to.tensor_scale) && names.contains(tensor.name + suffix)) {
        throw Error(place, "its part " + formats::in_quotes(tensor.name + suffix) +
                               " would have the name of another tensor: choose with --tensor");
      }
    }
  }
}

/// The stored codes of a part, read as that format.
Tensor read_as(const Tensor& stored, const formats::Format& format, const std::string& place) {
  if (!formats::can_be_read_as(stored.format, stored.packing, format)) {
    throw Error(place,
                formats::name_of(stored.format) + " cannot be read as " + formats::name_of(format));
  }
  Tensor tensor = stored;
  tensor.format = format;
  if (stored.packing == Packing::dense || formats::container_bits(format) == formats::bits(format))
    return tensor;
  for (std::size_t i = 0; i < stored.bytes.size(); ++i) {
    if ((std::to_integer<std::uint64_t>(stored.bytes[i]) & ~formats::code_mask(format)) != 0) {
      throw Error(place,
                  "byte " + std::to_string(i) + " is no code of " + formats::name_of(format));
    }
  }
  return tensor;
}

/// The tensor of blocks with the elements `stored`, whose other parts have its name and a suffix.
formats::BlockTensor block_tensor_of(const TensorFile& file, const Tensor& stored,
                                     const CastOptions& options, const BlockFormat& from) {
  const std::string place = place_of(options, stored.name);
  const std::size_t axis = block_axis(options, stored.shape, place);
  const std::string scales_name = stored.name + scales_suffix;
  const Tensor* const scales = file.find(scales_name);
  if (scales == nullptr) {
    throw Error(place, "the file has no scales " + formats::in_quotes(scales_name) +
                           ": choose other tensors with --tensor");
  }
  formats::BlockTensor tensor;
  tensor.elements = read_as(stored, from.element, place);
  const std::string scales_place = place_of(options, scales_name);
  tensor.scales = read_as(*scales, from.scale, scales_place);
  std::vector<std::int64_t> shape = stored.shape;
  shape[axis] = formats::block_count(from, shape[axis]);
  if (scales->shape != shape) {
    throw Error(scales_place,
                "the shape " + shape_text(scales->shape) + " is not " + shape_text(shape) +
                    ", a scale for every " + std::to_string(from.block_size) + " of " +
                    shape_text(stored.shape) + " elements along axis " + std::to_string(axis));
  }
  const std::string tensor_scale_name = stored.name + tensor_scale_suffix;
  const Tensor* const tensor_scale = file.find(tensor_scale_name);
  if (!from.tensor_scale || tensor_scale == nullptr) return tensor;
  const std::string scale_place = place_of(options, tensor_scale_name);
  if (formats::element_count(tensor_scale->shape) != 1)
    throw Error(scale_place,
                "a tensor has one tensor scale, not " + shape_text(tensor_scale->shape));
  const Tensor code = read_as(*tensor_scale, *from.tensor_scale, scale_place);
  tensor.tensor_scale =
      formats::decode(code.format, formats::load_code(code.bytes, code.format, code.packing, 0));
  if (tensor.tensor_scale->kind != formats::Kind::finite || tensor.tensor_scale->negative)
    throw Error(scale_place, "a tensor scale is a finite number above zero");
  return tensor;
}

/// The tensors named, or all that are no part of another one.
std::vector<Tensor> tensors_of_blocks(const TensorFile& file, const CastOptions& options) {
  if (!options.tensors.empty()) return selected_tensors(file, options);
  std::set<std::string> parts;
  for (const Tensor& tensor : file.tensors) {
    if (file.find(tensor.name + scales_suffix) == nullptr) continue;
    parts.insert(tensor.name + scales_suffix);
    parts.insert(tensor.name + tensor_scale_suffix);
  }
  std::vector<Tensor> tensors;
  for (const Tensor& tensor : file.tensors) {
    if (!parts.contains(tensor.name)) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace

int cast_to_blocks(const CastOptions& options, const BlockFormat& to) {
  formats::BlockQuantisationOptions block = block_options(options, to);
  const auto given_scale = given_tensor_scale(options, to);
  formats::FormatOverrides overrides;
  if (!options.from.empty()) overrides.any = require_element_format(options.from, "--from");
  const TensorFile file = formats::read_tensors(options.input, overrides);
  const std::vector<Tensor> tensors = selected_tensors(file, options);
  check_tensors(options, to, tensors);
  const Packing packing = output_packing(options.output, to.element);
  Casting<BlockCast> casting;
  casting.to = std::string(formats::name_of(to));
  const auto axis_of = [&](const Tensor& tensor) {
    return block_axis(options, tensor.shape, place_of(options, tensor.name));
  };
  casting.parts = [&](const Tensor& tensor) {
    return parts_of(formats::described_blocks(tensor, to, axis_of(tensor), packing), to);
  };
  casting.convert = [&](const Tensor& tensor, const std::vector<formats::TensorWriter>& parts,
                        const CastProgress& progress) {
    BlockCast cast;
    cast.from = tensor.format;
    cast.to = casting.to;
    cast.axis = axis_of(tensor);
    cast.tensor = formats::described_blocks(tensor, to, cast.axis, packing);
    block.progress = progress;
    if (to.tensor_scale) {
      const formats::Value scale =
          given_scale ? *given_scale : formats::tensor_scale_of(tensor, to, block.threads);
      block.tensor_scale = cast.tensor.tensor_scale = scale;
      std::array<std::byte, sizeof(std::uint64_t)> code{};
      formats::store_code(code, *to.tensor_scale, Packing::container, 0,
                          formats::encode(*to.tensor_scale, scale));
      const auto size = static_cast<std::size_t>(formats::container_bits(*to.tensor_scale) / 8);
      parts[2].write(0, std::span(code).first(size));
    }
    cast.summary = formats::quantise(tensor, to, cast.axis, parts[0].packing, block, parts[0].write,
                                     parts[1].write);
    return cast;
  };
  return run_cast(options, file, tensors, casting);
}

int cast_from_blocks(const CastOptions& options, const BlockFormat& from) {
  const formats::Format to = require_element_format(options.to, "--to");
  formats::ConversionOptions conversion = conversion_options(options, to);
  refuse_block_options(options, true);
  const TensorFile file = formats::read_tensors(options.input);
  const std::vector<Tensor> tensors = tensors_of_blocks(file, options);
  for (const Tensor& tensor : tensors) block_tensor_of(file, tensor, options, from);
  const Packing packing = output_packing(options.output, to);
  Casting<Cast> casting;
  casting.to = formats::name_of(to);
  const auto described = [&](const Tensor& tensor) {
    return Tensor{tensor.name, to, packing, tensor.shape, {}, nullptr};
  };
  casting.parts = [&](const Tensor& tensor) { return std::vector{described(tensor)}; };
  casting.convert = [&](const Tensor& tensor, const std::vector<formats::TensorWriter>& parts,
                        const CastProgress& progress) {
    const std::size_t axis = block_axis(options, tensor.shape, place_of(options, tensor.name));
    conversion.progress = progress;
    return Cast{described(tensor), std::string(formats::name_of(from)),
                formats::restore(block_tensor_of(file, tensor, options, from), from, axis, to,
                                 parts.front().packing, conversion, parts.front().write)};
  };
  return run_cast(options, file, tensors, casting);
}

}  // namespace guardbit::tools

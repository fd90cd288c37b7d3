#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "formats/block_format.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/block_tensor.hpp"
#include "formats/conversion/counted_conversion.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/byte_writer.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/cast/cast_options.hpp"
#include "tools/cast/cast_report.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"

namespace guardbit::python {

namespace {

using formats::BlockFormat;
using formats::Packing;
using tools::CastOptions;

BlockFormat require_block_format(const std::string& name, const std::string& where) {
  if (const auto found = formats::find_block_format(name)) return *found;
  std::string names;
  for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue)
    names.append(names.empty() ? "" : ", ").append(entry.name);
  throw formats::Error(where, formats::in_quotes(name) + " is no block format", names);
}

/// Formats of elements, scales and the tensor scale, and the elements of a block.
std::tuple<std::string, std::string, std::optional<std::string>, int> parts_of_block_format(
    const std::string& name, const std::string& where) {
  const BlockFormat format = require_block_format(name, where);
  std::optional<std::string> tensor_scale;
  if (format.tensor_scale) tensor_scale = formats::name_of(*format.tensor_scale);
  return {formats::name_of(format.element), formats::name_of(format.scale), tensor_scale,
          format.block_size};
}

std::function<void(std::size_t)> progress_of(const Stop& stop) {
  return [&stop](std::size_t) { stop.check(); };
}

/// Converts x into `out`; the summary.
std::string cast(const Array& x, const Array& out, const CastOptions& options) {
  formats::ConversionOptions conversion = tools::conversion_options(options, out.format);
  const std::span<std::byte> memory = out.output(out.format, x.shape);
  return interruptibly([&](const Stop& stop) {
    conversion.progress = progress_of(stop);
    const formats::Tensor tensor = x.tensor();
    const tools::Cast done = {
        {x.name, out.format, Packing::container, x.shape, {}, nullptr},
        formats::name_of(x.format),
        formats::convert_codes(x.format, Packing::container, tensor.bytes, out.format,
                               Packing::container, memory, static_cast<std::size_t>(x.size()),
                               conversion)};
    return tools::to_json(done).dump();
  });
}

double number_of(const formats::Format& format, const formats::Value& value) {
  return std::bit_cast<double>(
      formats::convert(format, formats::encode(format, value), formats::fp64));
}

/// The shape of the scales of such blocks.
std::vector<std::int64_t> scales_shape(const Array& x, const std::string& to, std::int64_t axis) {
  CastOptions options;
  options.axis = axis;
  const std::size_t along = tools::block_axis(options, x.shape, x.name);
  const formats::BlockTensor blocks =
      formats::described_blocks({x.name, x.format, Packing::container, x.shape, {}, nullptr},
                                require_block_format(to, "to"), along, Packing::container);
  return blocks.scales.shape;
}

/// Quantises x into `elements` and `scales`; the tensor scale and the summary.
std::pair<std::optional<double>, std::string> quantize(const Array& x, const std::string& to,
                                                       const Array& elements, const Array& scales,
                                                       const CastOptions& options) {
  const BlockFormat format = require_block_format(to, "to");
  if (!formats::is_within_fp32(x.format))
    throw formats::Error(x.name, "is " + formats::name_of(x.format) +
                                     ", which FP32 does not hold: cast it to fp32 first");
  const std::size_t axis = tools::block_axis(options, x.shape, x.name);
  formats::BlockQuantisationOptions block = tools::block_options(options, format);
  const auto given_scale = tools::given_tensor_scale(options, format);
  const std::span<std::byte> codes = elements.output(format.element, x.shape);
  const std::span<std::byte> scale_codes =
      scales.output(format.scale, scales_shape(x, to, options.axis.value_or(-1)));
  return interruptibly([&](const Stop& stop) {
    const formats::Tensor tensor = x.tensor();
    tools::BlockCast done;
    done.from = x.format;
    done.to = to;
    done.axis = axis;
    done.tensor = formats::described_blocks(tensor, format, axis, Packing::container);
    std::optional<double> tensor_scale;
    if (format.tensor_scale) {
      const formats::Value scale =
          given_scale ? *given_scale : formats::tensor_scale_of(tensor, format, block.threads);
      block.tensor_scale = done.tensor.tensor_scale = scale;
      tensor_scale = number_of(*format.tensor_scale, scale);
    }
    block.progress = progress_of(stop);
    done.summary = formats::quantise(tensor, format, axis, Packing::container, block,
                                     formats::writer_to(codes), formats::writer_to(scale_codes));
    return std::pair{tensor_scale, tools::to_json(done).dump()};
  });
}

/// The numbers of blocks into `out`; the summary.
std::string dequantize(const Array& elements, const Array& scales,
                       const std::optional<double>& tensor_scale, const std::string& from,
                       const Array& out, const CastOptions& options) {
  const BlockFormat format = require_block_format(from, "format");
  const std::size_t axis = tools::block_axis(options, elements.shape, elements.name);
  formats::ConversionOptions conversion = tools::conversion_options(options, out.format);
  const std::span<std::byte> memory = out.output(out.format, elements.shape);
  const auto expected = scales_shape(elements, from, options.axis.value_or(-1));
  const auto require = [](const Array& x, const formats::Format& of) {
    if (x.format != of)
      throw formats::Error(x.name,
                           "is " + formats::name_of(x.format) + " and not " + formats::name_of(of));
  };
  require(elements, format.element);
  require(scales, format.scale);
  if (scales.shape != expected)
    throw formats::Error(scales.name, tools::shape_text(scales.shape) + " is not " +
                                          tools::shape_text(expected) + ", a scale for every " +
                                          std::to_string(format.block_size) + " of " +
                                          tools::shape_text(elements.shape) + " elements");
  formats::BlockTensor blocks;
  if (tensor_scale) {
    if (!format.tensor_scale) throw formats::Error("tensor_scale", from + " has no tensor scale");
    blocks.tensor_scale =
        formats::decode(*format.tensor_scale,
                        formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(*tensor_scale),
                                         *format.tensor_scale));
    if (blocks.tensor_scale->kind != formats::Kind::finite || blocks.tensor_scale->negative)
      throw formats::Error("tensor_scale", "is a finite number above zero");
  }
  return interruptibly([&](const Stop& stop) {
    conversion.progress = progress_of(stop);
    blocks.elements = elements.tensor();
    blocks.scales = scales.tensor();
    const tools::Cast done = {
        {elements.name, out.format, Packing::container, elements.shape, {}, nullptr},
        from,
        formats::restore(blocks, format, axis, out.format, Packing::container, conversion,
                         formats::writer_to(memory))};
    return tools::to_json(done).dump();
  });
}

}  // namespace

void bind_formats(nb::module_& module) {
  nb::class_<CastOptions>(module, "CastOptions")
      .def(nb::init<>())
      .def_rw("to", &CastOptions::to)
      .def_rw("rounding", &CastOptions::rounding)
      .def_rw("overflow", &CastOptions::overflow)
      .def_rw("scale", &CastOptions::scale)
      .def_rw("seed", &CastOptions::seed)
      .def_rw("scale_rule", &CastOptions::scale_rule)
      .def_rw("tensor_scale", &CastOptions::tensor_scale)
      .def_rw("axis", &CastOptions::axis)
      .def_rw("threads", &CastOptions::threads);
  module.def("cast", cast, nb::arg("x"), nb::arg("out"), nb::arg("options"));
  module.def("quantize", quantize, nb::arg("x"), nb::arg("to"), nb::arg("elements"),
             nb::arg("scales"), nb::arg("options"));
  module.def("dequantize", dequantize, nb::arg("elements"), nb::arg("scales"),
             nb::arg("tensor_scale").none(), nb::arg("from_"), nb::arg("out"), nb::arg("options"));
  module.def("scales_shape", scales_shape, nb::arg("x"), nb::arg("to"), nb::arg("axis"));
  module.def("parts_of_block_format", parts_of_block_format, nb::arg("name"), nb::arg("where"));
  module.def("is_block_format",
             [](const std::string& name) { return formats::find_block_format(name).has_value(); });
  module.def(
      "format_name",
      [](const std::string& name, const std::string& where) {
        return formats::name_of(tools::require_element_format(name, where));
      },
      nb::arg("name"), nb::arg("where"));
  module.def("code_bytes", [](const std::string& name) {
    return formats::container_bits(formats::require_format(name, "format")) / 8;
  });
  module.def("formats", [] { return tools::to_json(tools::select_formats({})).dump(); });
}

}  // namespace guardbit::python

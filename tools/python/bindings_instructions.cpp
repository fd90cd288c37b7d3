#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/capture/bound_operands.hpp"
#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/gemm/code_matrix.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/catalogue/instruction_facts.hpp"
#include "tools/products/instruction_run.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"

namespace guardbit::python {

namespace {

using emulator::MatrixInstruction;

MatrixInstruction require(const std::string& arch, const std::string& name,
                          const std::string& toolkit) {
  return emulator::require_instruction(arch, name, "run",
                                       emulator::require_toolkit(toolkit, "toolkit"));
}

/// The shape of D: that of its executions.
std::vector<std::int64_t> result_shape(const MatrixInstruction& instruction, const Array& a,
                                       const Array& b) {
  if (a.shape.size() != b.shape.size() || (a.shape.size() != 2 && a.shape.size() != 3))
    throw formats::Error("run",
                         "a and b need shapes [T, M, K] and [T, K, N], or [M, K] and [K, N]");
  const std::size_t last = a.shape.size() - 1;
  std::vector<std::int64_t> shape = a.shape;
  shape[last - 1] = instruction.shape.m != 0 ? instruction.shape.m : a.shape[last - 1];
  shape[last] = instruction.shape.n != 0 ? instruction.shape.n : b.shape[last];
  return shape;
}

/// Executes an instruction on operands, named as MatrixBatch names them, into `out`; the engine.
std::string run(const std::string& arch, const std::string& name, const std::string& toolkit,
                const std::vector<Array>& operands, bool negate_a, bool negate_b, bool ignore_c,
                const std::string& engine_name, int threads, const Array& out) {
  const MatrixInstruction instruction = require(arch, name, toolkit);
  const emulator::Engine& engine = emulator::require_engine(engine_name, instruction);
  emulator::Modifiers modifiers;
  modifiers.negate_a = negate_a;
  modifiers.negate_b = negate_b;
  modifiers.zero_addend = ignore_c;
  if ((negate_a || negate_b || ignore_c) && !tools::takes_modifiers(instruction))
    throw formats::Error("run", "negate_a, negate_b and ignore_c are taken by wgmma and tcgen05");
  tools::require_modifiers(instruction, modifiers);
  const std::span<std::byte> memory =
      out.output(instruction.d, result_shape(instruction, operands[0], operands[1]));
  run_interruptibly([&](const Stop&) {
    std::vector<formats::Tensor> tensors;
    for (const Array& operand : operands) {
      tensors.push_back(operand.tensor());
      if (tensors.back().shape.size() == 2)
        tensors.back().shape.insert(tensors.back().shape.begin(), 1);
    }
    const tools::InstructionRun done =
        tools::run_instruction(instruction, engine, std::move(tensors), modifiers, threads, "run");
    std::ranges::copy(done.tensors.back().bytes, memory.begin());
  });
  return std::string(engine.name);
}

/// Sums over K beside block scales, each an ascending chain of the instruction from +0: a
/// [T, M, K], b [T, K, N], scales [T, M, blocks] and [T, blocks, N], into `out` [T, M, N] of the
/// instruction's result; the engine.
std::string multiply_blocks(const std::string& arch, const std::string& name,
                            const std::string& toolkit, const Array& a, const Array& b,
                            const Array& a_scale, const Array& b_scale,
                            const std::string& engine_name, int threads, const Array& out) {
  const MatrixInstruction instruction = require(arch, name, toolkit);
  const emulator::CodeMatrix of_a = a.matrix(), of_b = b.matrix(), scales_a = a_scale.matrix(),
                             scales_b = b_scale.matrix();
  const std::int64_t batch = of_a.batch, m = of_a.rows, n = of_b.columns, k = of_a.columns;
  emulator::require_product(instruction, k, "run");
  const std::int64_t blocks = emulator::scales_along(instruction, k);
  const auto require_operand = [&](const Array& array, const emulator::CodeMatrix& matrix,
                                   const char* operand, std::int64_t rows, std::int64_t columns) {
    const formats::Format format = tools::operand_format(instruction, operand);
    if (matrix.format != format)
      throw formats::Error(array.name, "is " + formats::name_of(matrix.format) + " where " + name +
                                           " takes " + formats::name_of(format));
    const std::vector<std::int64_t> needed = {batch, rows, columns};
    if (matrix.batch != batch || matrix.rows != rows || matrix.columns != columns)
      throw formats::Error(array.name, "shape " + emulator::shape_text(array.shape) + " is not " +
                                           emulator::shape_text(needed));
  };
  require_operand(a, of_a, "a", m, k);
  require_operand(b, of_b, "b", k, n);
  require_operand(a_scale, scales_a, "a_scale", m, blocks);
  require_operand(b_scale, scales_b, "b_scale", blocks, n);
  const emulator::Engine& engine = emulator::require_engine(engine_name, instruction);
  const std::span<std::byte> memory = out.output(instruction.d, {batch, m, n});
  run_interruptibly([&](const Stop& stop) {
    const std::function<bool()> is_stopped = [&] { return stop.asked(); };
    const std::size_t entry_bytes = memory.size() / static_cast<std::size_t>(batch);
    for (std::int64_t g = 0; g < batch; ++g) {
      emulator::MatrixProduct product;
      product.m = m;
      product.n = n;
      product.k = k;
      product.a = of_a.matrix(g);
      product.b = of_b.matrix(g);
      product.a_scale = scales_a.matrix(g);
      product.b_scale = scales_b.matrix(g);
      product.modifiers.zero_addend = true;
      product.d = {emulator::codes_of(instruction.d,
                                      memory.data() + static_cast<std::size_t>(g) * entry_bytes),
                   n};
      product.stop = &is_stopped;
      emulator::multiply(engine, instruction, product, threads);
      stop.check();
    }
  });
  return std::string(engine.name);
}

}  // namespace

void bind_instructions(nb::module_& module) {
  module.def("run", run, nb::arg("arch"), nb::arg("name"), nb::arg("toolkit"), nb::arg("operands"),
             nb::arg("negate_a"), nb::arg("negate_b"), nb::arg("ignore_c"), nb::arg("engine"),
             nb::arg("threads"), nb::arg("out"));
  module.def("multiply_blocks", multiply_blocks, nb::arg("arch"), nb::arg("name"),
             nb::arg("toolkit"), nb::arg("a"), nb::arg("b"), nb::arg("a_scale"), nb::arg("b_scale"),
             nb::arg("engine"), nb::arg("threads"), nb::arg("out"));
  module.def(
      "page_of",
      [](const std::string& arch) { return std::string(emulator::require_page(arch, "arch")); },
      nb::arg("arch"));
  module.def(
      "operand_formats",
      [](const std::string& arch, const std::string& name, const std::string& toolkit) {
        const MatrixInstruction x = require(arch, name, toolkit);
        nlohmann::ordered_json formats;
        for (const char* const operand : {"a", "b", "c", "e", "a_scale", "b_scale"})
          formats[operand] = formats::name_of(tools::operand_format(x, operand));
        formats["d"] = formats::name_of(x.d);
        return formats.dump();
      },
      nb::arg("arch"), nb::arg("name"), nb::arg("toolkit"));
  module.def(
      "result_shape",
      [](const std::string& arch, const std::string& name, const std::string& toolkit,
         const Array& a,
         const Array& b) { return result_shape(require(arch, name, toolkit), a, b); },
      nb::arg("arch"), nb::arg("name"), nb::arg("toolkit"), nb::arg("a"), nb::arg("b"));
  module.def("instructions", [] {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const MatrixInstruction& x : emulator::catalogue())
      list.push_back(tools::instruction_columns().json(x));
    return list.dump();
  });
  module.def("machines", [] {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const emulator::Arch& x : emulator::architectures())
      list.push_back({{"arch", x.name}, {"title", x.title}, {"alias_of", x.alias_of}});
    return list.dump();
  });
  module.def("engines", [] {
    std::vector<std::string> names;
    for (const emulator::Engine& engine : emulator::engines()) names.emplace_back(engine.name);
    return names;
  });
}

}  // namespace guardbit::python

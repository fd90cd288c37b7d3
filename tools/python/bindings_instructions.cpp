#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
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

}  // namespace

void bind_instructions(nb::module_& module) {
  module.def("run", run, nb::arg("arch"), nb::arg("name"), nb::arg("toolkit"), nb::arg("operands"),
             nb::arg("negate_a"), nb::arg("negate_b"), nb::arg("ignore_c"), nb::arg("engine"),
             nb::arg("threads"), nb::arg("out"));
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

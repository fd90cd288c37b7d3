#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/probe/probe.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/plot/sum_tree_picture.hpp"
#include "tools/products/probe_report.hpp"
#include "tools/products/verify_capture.hpp"
#include "tools/products/verify_report.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"
#include "tools/python/report.hpp"

namespace guardbit::python {

namespace {

using emulator::BlackBox;
using emulator::Question;

/// Codes of that shape in containers of the format, as bytes of Python.
nb::bytes bytes_of(const formats::Format& format, const std::vector<std::uint64_t>& codes) {
  const formats::Tensor tensor = formats::tensor_of_codes(
      "", format, formats::Packing::container, {static_cast<std::int64_t>(codes.size())}, codes);
  return nb::bytes(tensor.bytes.data(), tensor.bytes.size());
}

/// Asks the function of the caller: codes of a [T, K], b [T, K] and, with an addend, c [T] as
/// bytes; the answer is an Array of T codes.
std::vector<std::uint64_t> ask(const nb::callable& function, const BlackBox& box,
                               std::span<const Question> questions) {
  const nb::gil_scoped_acquire locked;
  std::vector<std::uint64_t> a, b, c;
  for (const Question& question : questions) {
    a.insert(a.end(), question.a.begin(), question.a.end());
    b.insert(b.end(), question.b.begin(), question.b.end());
    c.push_back(question.c);
  }
  const nb::object answer = function(questions.size(), bytes_of(box.a, a), bytes_of(box.b, b),
                                     box.has_addend ? nb::object(bytes_of(box.c, c)) : nb::none());
  const Array array = nb::cast<Array>(answer);
  if (array.format != box.d || array.size() != static_cast<std::int64_t>(questions.size()))
    throw formats::Error("probe", "the function answered " + std::to_string(array.size()) +
                                      " results in " + formats::name_of(array.format) + " to " +
                                      std::to_string(questions.size()) + " questions in " +
                                      formats::name_of(box.d));
  return formats::codes_of(array.tensor());
}

/// What was found, and the instruction as text (empty: none).
std::pair<Report, std::string> probe(const nb::callable& function, const std::string& unit,
                                     const std::string& a, const std::string& b,
                                     const std::optional<std::string>& c, const std::string& d,
                                     int k, std::uint64_t seed) {
  BlackBox box;
  box.a = tools::require_element_format(a, "a");
  box.b = tools::require_element_format(b, "b");
  box.d = tools::require_element_format(d, "d");
  box.has_addend = c.has_value();
  box.c = c ? tools::require_element_format(*c, "c") : box.d;
  box.k = k;
  if (k < 1 || k > emulator::most_leaves)
    throw formats::Error("k", std::to_string(k) + " is out of range",
                         "1 to " + std::to_string(emulator::most_leaves));
  return interruptibly([&](const Stop& stop) {
    BlackBox asked = box;
    asked.answer = [&](std::span<const Question> questions) {
      stop.check();
      return ask(function, asked, questions);
    };
    const emulator::ProbeReport report = emulator::probe(asked, seed);
    asked.a = report.a;
    asked.b = report.b;
    asked.c = report.c;
    asked.d = report.d;
    std::ostringstream text;
    tools::print_probe(text, unit, asked, report);
    Report found = {tools::probe_json(unit, asked, report).dump(), text.str()};
    if (!emulator::leaves(report.tree).empty())
      found.draw = [tree = report.tree, k](const tools::ChartOptions&) {
        return tools::sum_tree_picture(tree, k);
      };
    return std::pair{found, report.explained ? tools::spec_of(report) : std::string()};
  });
}

Report verify(const std::vector<std::string>& paths, const std::string& plan,
              const std::string& engine, std::size_t most_reports, int threads) {
  return interruptibly([&](const Stop& stop) {
    tools::VerifyReport report;
    const tools::VerifySettings settings = {
        .plan = plan, .engine = engine, .most_reports = most_reports, .threads = threads};
    std::ostringstream text;
    for (const std::string& path : paths) {
      try {
        tools::verify_file(
            path, settings, [&stop] { return stop.asked(); }, report);
        tools::print_file(text, report.files.back(), report.files.size() == 1);
      } catch (const formats::Error& error) {
        report.failed.push_back({path, error.what()});
        text << error.what() << '\n';
      }
      stop.check();
    }
    for (const std::string& remark : report.remarks) text << remark << '\n';
    tools::print_summary(text, report);
    return Report{tools::to_json(report).dump(), text.str()};
  });
}

}  // namespace

void bind_probe(nb::module_& module) {
  module.def("probe", probe, nb::arg("function"), nb::arg("unit"), nb::arg("a"), nb::arg("b"),
             nb::arg("c").none(), nb::arg("d"), nb::arg("k"), nb::arg("seed"));
  module.def("verify", verify, nb::arg("paths"), nb::arg("plan"), nb::arg("engine"),
             nb::arg("most_reports"), nb::arg("threads"));
}

}  // namespace guardbit::python

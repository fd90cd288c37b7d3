#include "tools/python/report.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "formats/support/error.hpp"
#include "tools/plot/picture_file.hpp"

namespace guardbit::python {

namespace nb = nanobind;

namespace {

/// The picture as SVG, and into a file where a path is given.
std::string plot(const Report& report, const tools::PlotOptions& options) {
  if (!report.draw) throw formats::Error("plot", "there is nothing to draw");
  if (options.asked()) options.require_valid();
  const tools::Drawing drawing = report.draw(options.chart());
  if (options.asked()) tools::write_picture(options.path, drawing);
  return drawing.svg();
}

}  // namespace

void bind_report(nb::module_& module) {
  using tools::PlotOptions;
  nb::class_<PlotOptions>(module, "PlotOptions")
      .def(nb::init<>())
      .def_rw("path", &PlotOptions::path)
      .def_rw("width", &PlotOptions::width)
      .def_rw("height", &PlotOptions::height)
      .def_rw("x", &PlotOptions::x)
      .def_rw("y", &PlotOptions::y)
      .def_rw("ranges", &PlotOptions::ranges);
  nb::class_<Report>(module, "Report")
      .def_ro("json", &Report::json)
      .def_ro("text", &Report::text)
      .def_prop_ro("has_picture", [](const Report& x) { return static_cast<bool>(x.draw); })
      .def("plot", plot, nb::arg("options"));
}

}  // namespace guardbit::python

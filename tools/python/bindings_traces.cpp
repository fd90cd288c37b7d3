#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "formats/files/memory_files.hpp"
#include "formats/support/error.hpp"
#include "tools/plot/chart.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"
#include "tools/python/report.hpp"
#include "tools/scaler/replay_settings.hpp"
#include "tools/scaler/scaler_picture.hpp"
#include "tools/trace/recipe_comparison.hpp"
#include "tools/trace/trace_pass.hpp"
#include "tools/trace/trace_plots.hpp"

namespace guardbit::python {

namespace {

/// Files and arrays, whichever there are.
struct Source {
  std::vector<std::string> words;
  std::vector<Array> arrays;

  /// Calls `work` with words that name all of it.
  template <class Work>
  auto with_words(const Work& work) const {
    std::vector<std::string> all = words;
    std::optional<formats::MemoryFile> memory;
    if (!arrays.empty()) {
      formats::TensorFile content;
      for (const Array& array : arrays) content.tensors.push_back(array.tensor());
      memory.emplace(std::move(content));
      all.push_back(memory->name());
    }
    return work(all);
  }
};

template <class Results>
Report report_of(const Results& results, void (*print)(std::ostream&, const Results&),
                 const std::function<tools::Drawing(const tools::ChartOptions&)>& draw) {
  std::ostringstream text;
  print(text, results);
  return {to_json(results).dump(), text.str(), draw};
}

Report trace(const Source& source, const tools::TraceSettings& settings) {
  return interruptibly([&](const Stop& stop) {
    return source.with_words([&](const std::vector<std::string>& words) {
      const tools::TraceResults results = tools::trace(words, settings, [&stop] { stop.check(); });
      return report_of<tools::TraceResults>(results, tools::print_trace,
                                            [results](const tools::ChartOptions& options) {
                                              return tools::trace_picture(results, options);
                                            });
    });
  });
}

Report compare_recipes(const Source& source, const tools::RecipeSettings& settings) {
  return interruptibly([&](const Stop& stop) {
    return source.with_words([&](const std::vector<std::string>& words) {
      const tools::RecipeResults results =
          tools::compared_recipes(words, settings, [&stop] { stop.check(); });
      return report_of<tools::RecipeResults>(
          results, tools::print_recipes, [results](const tools::ChartOptions& options) {
            if (results.total().signal.nonzero == 0)
              throw formats::Error("plot", "every number is zero, so there is no noise to draw");
            return tools::chart(tools::sqnr_figure(results), options);
          });
    });
  });
}

Report report_of(const std::vector<tools::Replay>& replays, bool is_one) {
  const auto draw = [replays](const tools::ChartOptions& options) {
    return tools::chart(tools::scale_figure(replays), options);
  };
  if (is_one) return report_of<tools::Replay>(replays.front(), tools::print_replay, draw);
  nlohmann::ordered_json document = {{"scalers", nlohmann::ordered_json::array()}};
  for (const tools::Replay& replay : replays) document["scalers"].push_back(to_json(replay));
  std::ostringstream text;
  tools::print_comparison(text, replays);
  return {document.dump(), text.str(), draw};
}

/// Of a log, or of a trace; `all`: by every preset.
Report replay(const Source& source, const tools::ReplaySettings& settings, bool all) {
  return interruptibly([&](const Stop&) {
    const std::string log = source.arrays.empty() && source.words.size() == 1
                                ? tools::log_file(source.words.front())
                                : std::string();
    if (!log.empty() && tools::is_log(log)) {
      if (all)
        throw formats::Error("replay",
                             "a log says what overflowed at its own scales only; give a trace");
      return report_of({tools::replay_of_log(log, settings)}, true);
    }
    return source.with_words([&](const std::vector<std::string>& words) {
      return all ? report_of(tools::replays_of_trace(words, settings), false)
                 : report_of({tools::replay_of_trace(words, settings)}, true);
    });
  });
}

Report schedule(const std::string& pattern, const tools::ReplaySettings& settings, bool all) {
  return all ? report_of(tools::replays_of_pattern(pattern, settings), false)
             : report_of({tools::replay_of_pattern(pattern, settings)}, true);
}

}  // namespace

void bind_traces(nb::module_& module) {
  using tools::RecipeSettings;
  using tools::ReplaySettings;
  using tools::TraceSettings;
  nb::class_<Source>(module, "Source")
      .def(
          "__init__",
          [](Source* self, std::vector<std::string> words, std::vector<Array> arrays) {
            new (self) Source{std::move(words), std::move(arrays)};
          },
          nb::arg("words"), nb::arg("arrays"));
  nb::class_<TraceSettings>(module, "TraceSettings")
      .def(nb::init<>())
      .def_rw("formats", &TraceSettings::formats)
      .def_rw("scales", &TraceSettings::scales)
      .def_rw("policy", &TraceSettings::policy)
      .def_rw("layout", &TraceSettings::layout)
      .def_rw("source_format", &TraceSettings::from)
      .def_rw("tolerance", &TraceSettings::tolerance)
      .def_rw("threads", &TraceSettings::threads)
      .def_rw("exact_product", &TraceSettings::exact_product)
      .def_rw("histogram", &TraceSettings::histogram)
      .def_rw("keep_going", &TraceSettings::keep_going);
  nb::class_<RecipeSettings>(module, "RecipeSettings")
      .def(nb::init<>())
      .def_rw("recipes", &RecipeSettings::recipes)
      .def_rw("scales", &RecipeSettings::scales)
      .def_rw("layout", &RecipeSettings::layout)
      .def_rw("role", &RecipeSettings::role)
      .def_rw("source_format", &RecipeSettings::from)
      .def_rw("histories", &RecipeSettings::histories)
      .def_rw("margin", &RecipeSettings::margin)
      .def_rw("threads", &RecipeSettings::threads);
  nb::class_<ReplaySettings>(module, "ReplaySettings")
      .def(nb::init<>())
      .def_rw("columns", &ReplaySettings::columns)
      .def_rw("preset", &ReplaySettings::preset)
      .def_rw("mode", &ReplaySettings::mode)
      .def_rw("source_format", &ReplaySettings::from)
      .def_rw("format", &ReplaySettings::format)
      .def_rw("init_scale", &ReplaySettings::init_scale, nb::arg().none())
      .def_rw("min_scale", &ReplaySettings::min_scale, nb::arg().none())
      .def_rw("max_scale", &ReplaySettings::max_scale, nb::arg().none())
      .def_rw("growth_factor", &ReplaySettings::growth_factor, nb::arg().none())
      .def_rw("backoff_factor", &ReplaySettings::backoff_factor, nb::arg().none())
      .def_rw("growth_interval", &ReplaySettings::growth_interval, nb::arg().none())
      .def_rw("hysteresis", &ReplaySettings::hysteresis, nb::arg().none())
      .def_rw("growth_test", &ReplaySettings::growth_test)
      .def_rw("growth_tracker", &ReplaySettings::growth_tracker)
      .def_rw("alarm_skips", &ReplaySettings::alarm_skips)
      .def_rw("consecutive_hysteresis", &ReplaySettings::consecutive_hysteresis);
  module.def("trace", trace, nb::arg("source"), nb::arg("settings"));
  module.def("compare_recipes", compare_recipes, nb::arg("source"), nb::arg("settings"));
  module.def("replay", replay, nb::arg("source"), nb::arg("settings"), nb::arg("all"));
  module.def("schedule", schedule, nb::arg("pattern"), nb::arg("settings"), nb::arg("all"));
}

}  // namespace guardbit::python

#include "tools/report/experiment_record.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "formats/files/atomic_output.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/own_file.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/version.hpp"
#include "formats/support/words.hpp"
#include "tools/console/read_json.hpp"

namespace guardbit::tools {

namespace {

using experiments::Finding;
using experiments::Reference;
using nlohmann::ordered_json;

constexpr const char* kind_of_file = "guardbit experiment record";

/// JSON has no infinity and no NaN.
ordered_json value_to_json(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double value_of(const ordered_json& j) {
  if (j.is_number()) return j.get<double>();
  if (j.is_null()) return std::numeric_limits<double>::quiet_NaN();  // of a curve
  const std::string word = j.get<std::string>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (word == "inf" || word == "-inf") return word == "inf" ? infinity : -infinity;
  return std::numeric_limits<double>::quiet_NaN();
}

/// The enumerator that this word names.
template <class Enum>
Enum named(const ordered_json& word) {
  const auto text = word.get<std::string>();
  if (const auto found = formats::find_word<Enum>(text)) return *found;
  throw formats::Error("result", formats::in_quotes(text) + " is not known");
}

Finding finding_of(const ordered_json& j) {
  Finding f{j.at("key").get<std::string>(), j.at("unit").get<std::string>(),
            value_of(j.at("measured"))};
  if (!j.contains("reference")) return f;
  f.reference = Reference{.value = value_of(j.at("reference")),
                          .tolerance = value_of(j.at("tolerance")),
                          .tolerance_reason = j.at("tolerance_reason").get<std::string>(),
                          .source = j.at("source").get<std::string>(),
                          .certainty = named<experiments::Certainty>(j.at("certainty")),
                          .relation = named<Reference::Relation>(j.at("relation")),
                          .undecidable = j.value("undecidable", std::string())};
  return f;
}

experiments::Figure figure_of(const ordered_json& j) {
  experiments::Figure figure{j.at("title").get<std::string>(), j.at("x_label").get<std::string>(),
                             j.at("y_label").get<std::string>(), j.at("log_x").get<bool>(),
                             j.at("log_y").get<bool>()};
  for (const ordered_json& c : j.at("curves")) {
    experiments::Curve curve{
        c.at("name").get<std::string>(),
        {},
        {},
        c.at("points_only").get<bool>() ? experiments::Look::points : experiments::Look::line};
    // Records of older versions have no more.
    if (c.contains("look"))
      curve.look =
          formats::require_word<experiments::Look>("look", c["look"].get<std::string>(), "result");
    curve.is_reference = c.value("reference", false);
    const ordered_json &x = c.at("x"), &y = c.at("y");
    if (x.size() != y.size()) throw formats::Error("result", "a curve's x and y differ in number");
    for (std::size_t i = 0; i < x.size(); ++i) curve.add(value_of(x[i]), value_of(y[i]));
    figure.curves.push_back(std::move(curve));
  }
  figure.categories = j.value("categories", std::vector<std::string>());
  for (const experiments::Curve& c : figure.curves)
    for (const double x : c.x)
      if (!figure.categories.empty() &&
          !(x >= 0 && x < static_cast<double>(figure.categories.size()) && x == std::rint(x)))
        throw formats::Error("result", "a curve's x is no row of its figure");
  return figure;
}

ordered_json to_json(const Finding& f) {
  ordered_json j = {{"key", f.key},
                    {"unit", f.unit},
                    {"measured", value_to_json(f.measured)},
                    {"verdict", formats::word_of(f.verdict())}};
  if (!f.reference) return j;
  j["reference"] = value_to_json(f.reference->value);
  j["relation"] = formats::word_of(f.reference->relation);
  j["tolerance"] = value_to_json(f.reference->tolerance);
  j["tolerance_reason"] = f.reference->tolerance_reason;
  j["source"] = f.reference->source;
  j["certainty"] = formats::word_of(f.reference->certainty);
  if (!f.reference->undecidable.empty()) j["undecidable"] = f.reference->undecidable;
  return j;
}

}  // namespace

RunIdentity identity_of(const experiments::Experiment& experiment,
                        const experiments::Settings& settings, std::uint64_t seed) {
  static const std::string program = [] {
    // The library's hash takes eight bytes at a time; a Fingerprint takes a tenth of a second.
    const formats::MappedFile file = formats::map_file(formats::own_file());
    const std::string_view bytes(reinterpret_cast<const char*>(file.bytes.data()),
                                 file.bytes.size());
    return experiments::fingerprint_text(std::hash<std::string_view>{}(bytes));
  }();
  return {std::string(experiment.name), std::string(formats::version()), program, seed, settings};
}

void write_record(const std::string& path, const ExperimentRecord& record) {
  ordered_json j = {{"file", kind_of_file},
                    {"experiment", record.identity.experiment},
                    {"version", record.identity.version},
                    {"program", record.identity.program},
                    {"seed", record.identity.seed},
                    {"complete", record.complete}};
  j["parameters"] = ordered_json::object();
  for (const auto& [name, values] : record.identity.settings.all()) j["parameters"][name] = values;
  j["formats"] = record.formats;
  j["plans"] = record.plans;
  j["points"] = ordered_json::object();
  for (const auto& [key, point] : record.points) {
    ordered_json values = ordered_json::array();
    for (const double x : point.values) values.push_back(value_to_json(x));
    j["points"][key] = {{"inputs", experiments::fingerprint_text(point.inputs)},
                        {"values", values}};
  }
  j["result"] = record.result;
  formats::write_file(path, j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

ExperimentRecord read_record(const std::string& path) {
  const std::string where = formats::printable(path);
  const std::string text = formats::read_text(path);
  ExperimentRecord record;
  try {
    const ordered_json j = ordered_json::parse(text, limited_depth(where));
    if (j.at("file") != kind_of_file) throw formats::Error(where, "is not an experiment's record");
    record.identity.experiment = j.at("experiment").get<std::string>();
    record.identity.version = j.at("version").get<std::string>();
    record.identity.program = j.at("program").get<std::string>();
    record.identity.seed = j.at("seed").get<std::uint64_t>();
    record.complete = j.at("complete").get<bool>();
    for (const auto& [name, values] : j.at("parameters").items()) {
      auto words = values.get<std::vector<std::string>>();
      if (words.empty()) throw formats::Error(where, "parameter without values");
      record.identity.settings.set(name, std::move(words));
    }
    record.formats = j.at("formats").get<std::set<std::string>>();
    record.plans = j.at("plans").get<std::set<std::string>>();
    for (const auto& [key, point] : j.at("points").items()) {
      experiments::PointResult& result = record.points[key];
      result.inputs = std::stoull(point.at("inputs").get<std::string>(), nullptr, 16);
      for (const ordered_json& value : point.at("values")) result.values.push_back(value_of(value));
    }
    record.result = j.at("result");
  } catch (const nlohmann::json::exception&) {
    throw formats::Error(where, "is not an experiment's record");
  } catch (const std::logic_error&) {
    throw formats::Error(where, "is not an experiment's record");
  }
  return record;
}

nlohmann::ordered_json to_json(const experiments::Experiment& experiment,
                               const experiments::Outcome& outcome) {
  ordered_json measured = ordered_json::object(), reference = ordered_json::object(),
               tolerance = ordered_json::object(), findings = ordered_json::array();
  for (const Finding& f : outcome.findings) {
    measured[f.key] = value_to_json(f.measured);
    if (f.reference) {
      reference[f.key] = f.reference->value;
      tolerance[f.key] = f.reference->tolerance;
    }
    findings.push_back(to_json(f));
  }
  ordered_json j = {{"name", experiment.name},
                    {"slug", experiment.slug},
                    {"question", experiment.question},
                    {"verdict", formats::word_of(outcome.verdict())},
                    {"measured", measured},
                    {"reference", reference},
                    {"tolerance", tolerance},
                    {"findings", findings},
                    {"notes", outcome.notes}};
  if (const std::string why = outcome.why(); !why.empty()) j["why"] = why;
  const experiments::Figure& figure = outcome.figure;
  if (figure.curves.empty()) return j;
  ordered_json curves = ordered_json::array();
  for (const experiments::Curve& c : figure.curves)
    curves.push_back({{"name", c.name},
                      {"points_only", c.look == experiments::Look::points},
                      {"look", formats::word_of(c.look)},
                      {"reference", c.is_reference},
                      {"x", c.x},
                      {"y", c.y}});
  j["figure"] = {{"title", figure.title}, {"x_label", figure.x_label}, {"y_label", figure.y_label},
                 {"log_x", figure.log_x}, {"log_y", figure.log_y},     {"curves", curves}};
  if (!figure.categories.empty()) j["figure"]["categories"] = figure.categories;
  return j;
}

experiments::Outcome outcome_of(const ordered_json& result) {
  experiments::Outcome outcome;
  for (const ordered_json& f : result.at("findings")) outcome.findings.push_back(finding_of(f));
  outcome.notes = result.at("notes").get<std::vector<std::string>>();
  if (result.contains("figure")) outcome.figure = figure_of(result["figure"]);
  return outcome;
}

}  // namespace guardbit::tools

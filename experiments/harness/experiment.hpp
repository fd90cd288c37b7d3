#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/harness/settings.hpp"

// An experiment as data: its question, its parameters, what it measures and what is expected of it.
namespace guardbit::experiments {

/// How we know a number that a measurement is compared with.
enum class Certainty : std::uint8_t {
  /// on hardware, by this project's own runs
  measured,
  /// in the source that is named
  read,
  /// from the source that is named, which was not read again
  recalled,
  /// from the definitions; the experiment's method says how
  derived,
};
constexpr auto words(Certainty) { return std::array{"measured", "read", "recalled", "derived"}; }

enum class Verdict : std::uint8_t { reproduced, differs, undecidable };
constexpr auto words(Verdict) { return std::array{"reproduced", "differs", "undecidable"}; }

/// What a measured number should be.
struct Reference {
  enum class Relation : std::uint8_t { equals, at_most, at_least };
  friend constexpr auto words(Relation) { return std::array{"equals", "at most", "at least"}; }

  double value = 0;
  /// of the difference
  double tolerance = 0;
  /// where the tolerance comes from; empty where it is 0
  std::string tolerance_reason = {};
  std::string source = {};
  Certainty certainty = Certainty::derived;
  Relation relation = Relation::equals;
  /// Why no measurement here can decide it (data that were not published, say); empty: it can.
  std::string undecidable = {};
};

/// One measured number, and what it should be.
struct Finding {
  /// what is measured: stable, and unique in its experiment
  std::string key;
  std::string unit;
  double measured = 0;
  std::optional<Reference> reference = {};

  Verdict verdict() const;
};

/// How the points of a curve are drawn. Steps and bars last from their x to that of the next point.
enum class Look : std::uint8_t { line, points, steps, bars };
constexpr auto words(Look) { return std::array{"line", "points", "steps", "bars"}; }

/// One series of a plot.
struct Curve {
  /// "what, which": parts that other curves have too look alike, in all plots
  std::string name;
  std::vector<double> x = {}, y = {};
  Look look = Look::line;
  /// Not computed here: published or recorded numbers, bounds. Drawn open or dashed.
  bool is_reference = false;

  void add(double at, double value) {
    x.push_back(at);
    y.push_back(value);
  }
};

struct Figure {
  /// labels name their units
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<Curve> curves = {};
  /// Where there are any, x is an index of them, and each is a row of dots: for few numbers.
  std::vector<std::string> categories = {};
};

/// What came out of a run.
struct Outcome {
  std::vector<Finding> findings;
  /// without curves where there is nothing to draw
  Figure figure;
  /// what the numbers mean; sentences
  std::vector<std::string> notes;
  /// recordings that were asked for and are not there
  std::vector<std::string> missing = {};

  void lacks(const std::string& recording, std::string sentence) {
    missing.push_back(recording);
    notes.push_back(std::move(sentence));
  }

  /// Differs if any finding does. Otherwise reproduced if any figure that somebody measured or
  /// published is: that what theory demands holds reproduces nothing.
  Verdict verdict() const;
  /// Why the verdict is undecidable, and what was not there; empty where neither is the case.
  std::string why() const;
};

class Run;

/// A question that one run answers.
struct Experiment {
  /// E08
  std::string_view name;
  /// fp8_accumulation_width, which names its file
  std::string_view slug;
  /// one sentence
  std::string_view question;
  /// what is computed, sentences
  std::string_view method;
  /// the reference in words, with its source
  std::string_view expected;
  std::vector<Parameter> parameters;
  Outcome (*run)(Run& run) = nullptr;
};

}  // namespace guardbit::experiments

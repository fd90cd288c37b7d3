#include <algorithm>

#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/suite/suite.hpp"
#include "experiments/suite/unit_products.hpp"

namespace guardbit::experiments {

namespace e33 {
namespace {

/// Where zeros are put to reach a multiple of the tile.
enum class Padding : std::uint8_t { behind, before, channels };

/// 0, 1, ... k - 1 with -1 for each zero. `channels`: each three k's, as a picture's colours have
/// them, are filled up to four.
std::vector<std::int64_t> padded(std::int64_t k, std::int64_t tile, Padding padding) {
  std::vector<std::int64_t> order;
  const std::int64_t missing = (tile - k % tile) % tile;
  if (padding == Padding::before) order.assign(static_cast<std::size_t>(missing), -1);
  for (std::int64_t i = 0; i < k; ++i) {
    order.push_back(i);
    if (padding == Padding::channels && i % 3 == 2) order.push_back(-1);
  }
  // A whole tile more, so that there are zeros even where the shape fits.
  if (padding == Padding::behind)
    order.insert(order.end(), static_cast<std::size_t>(missing + tile), -1);
  return order;
}

std::vector<double> measured(Run& run, const UnitUnderTest& unit, std::int64_t k) {
  const Settings& s = run.settings();
  const std::int64_t size = s.integer("MN"), tile = s.integer("tile");
  const auto problem = random_problem(run, unit.inputs, size, size, k, Distribution::normal);
  const emulator::CodeMatrix plain = run.multiply(unit.plan, problem);
  std::vector<double> result;
  double largest = 0;
  for (const Padding padding : {Padding::behind, Padding::before, Padding::channels}) {
    const auto other = reordered(problem, padded(k, tile, padding));
    const emulator::CodeMatrix d = run.multiply(unit.plan, other);
    result.push_back(changed_outputs(d, plain));
    if (unit.exact) continue;
    const auto exact = values_of(run.multiply(exact_plan(), other));
    largest = std::max(largest,
                       largest_share(values_of(d), exact, allowed_errors(run, unit.plan, other)));
  }
  result.push_back(largest);
  return result;
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto lengths = s.integers("K");
  const double outputs = static_cast<double>(s.integer("MN") * s.integer("MN"));
  run.announce(s.words("unit").size() * lengths.size());
  Outcome outcome;
  outcome.figure = {"E33: zeros before K, up to a multiple of the tile", "K (products in each sum)",
                    "outputs whose bits change (%)", true};
  for (const UnitUnderTest& unit : units_under_test()) {
    if (std::ranges::find(s.words("unit"), unit.name) == s.words("unit").end()) continue;
    Curve curve{unit.name};
    for (const std::int64_t k : lengths) {
      const std::string key = unit.name + " K=" + std::to_string(k);
      const auto& found = run.point(key, [&] { return measured(run, unit, k); });
      curve.add(static_cast<double>(k), 100 * found[1] / outputs);
      outcome.findings.push_back(
          {key + ": outputs that zeros behind K change", "", found[0],
           Reference{.source =
                         "a block of zero products keeps its addend, which is on its own grid"}});
      Finding before{key + ": outputs that zeros before K change", "", found[1]};
      Finding channels{key + ": outputs that a zero after every third k changes", "", found[2]};
      if (unit.exact || unit.multiply_adds) {
        const Reference none{.source = unit.exact ? "integer sums are exact"
                                                  : "fma(0, 0, x) is x for every x but -0"};
        before.reference = channels.reference = none;
      }
      outcome.findings.push_back(before);
      outcome.findings.push_back(channels);
      if (unit.exact) continue;
      outcome.findings.push_back({key + ": largest error / bound", "", found[3],
                                  Reference{.value = 1,
                                            .source = "worst-case analysis of the unit's blocks",
                                            .relation = Reference::Relation::at_most}});
    }
    outcome.figure.curves.push_back(curve);
  }
  outcome.notes.emplace_back(
      "A library that pads where another does not, or whose convolution fills channels up, "
      "can differ in bits from one product of the same numbers: "
      "zeros move the others into other blocks. "
      "Zeros at the end never do.");
  return outcome;
}

}  // namespace
}  // namespace e33

Experiment tile_padding() {
  using namespace e33;
  using Kind = Parameter::Kind;
  return {
      .name = "E33",
      .slug = "tile_padding",
      .question = "Do the zeros that fill a matrix up to whole tiles change bits?",
      .method =
          "One product with K as it is, with zeros behind K (and a tile of them more), with zeros before K, "
          "and with a zero after every third k, as convolutions that fill three channels up to four have them: "
          "outputs whose bits differ from the first.",
      .expected =
          "Zeros behind K change nothing; "
          "elsewhere they change nothing in integers and in chains of multiply-adds, "
          "but move products into other blocks of a tensor core (derived). "
          "Errors stay within their bounds.",
      .parameters = {{"K", "products in each sum", "96:128:4,1000", "100,128", Kind::integer, true,
                      1, 16384},
                     {"tile", "what K is filled up to a multiple of", "64", "", Kind::integer,
                      false, 1, 4096},
                     {"MN", "rows and columns", "64", "32", Kind::integer, false, 1, 1024},
                     {"unit", "", unit_names, "", Kind::word, true, 0, 0, unit_names}},
      .run = run,
  };
}

}  // namespace guardbit::experiments

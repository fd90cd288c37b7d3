#include "emulator/plan_search/variants.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <span>
#include <sstream>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "emulator/plan_search/missing_elements.hpp"
#include "emulator/plan_search/plan_evidence.hpp"

namespace guardbit::emulator {

namespace {

/// One output as it was recorded, and what its exact value is the sum of.
struct Terms {
  /// recorded less exact
  double error = 0;
  double recorded = 0;
  /// alpha * A * B
  double product = 0;
  /// beta * C
  double c = 0;
  double bias = 0;
  /// [k]: what the first k elements of K give of `product`
  std::vector<double> prefix;
};

double value(const CodeMatrix& x, std::int64_t at) { return scalar::decoded(x.format, x[at]); }

/// The terms of each batch entry of the sample, which holds one output each; without infinities and
/// NaNs.
std::vector<Terms> terms_of(const GemmProblem& sample, const CodeMatrix& recorded,
                            const Epilogue& epilogue) {
  const CodeMatrix products = nearly_exact(sample, epilogue, false, 1);
  const CodeMatrix results = nearly_exact(sample, epilogue, true, 1);
  std::vector<Terms> list;
  for (std::int64_t g = 0; g < recorded.size(); ++g) {
    Terms x;
    x.recorded = value(recorded, g);
    x.product = value(products, g);
    const double result = value(results, g);
    x.error = x.recorded - result;
    if (!sample.c.empty()) x.c = epilogue.beta * value(sample.c, g);
    x.bias = result - x.product - x.c;
    x.prefix.assign(1, 0);
    for (std::int64_t k = 0; k < sample.k(); ++k)
      x.prefix.push_back(x.prefix.back() + scalar::decoded(sample.a.format, sample.a(g, 0, k)) *
                                               scalar::decoded(sample.b.format, sample.b(g, k, 0)));
    // Alpha and the scales of rows and columns are factors of all products.
    const double factor = x.product / x.prefix.back();
    if (!std::isfinite(x.error) || !std::isfinite(factor)) continue;
    for (double& sum : x.prefix) sum *= factor;
    list.push_back(std::move(x));
  }
  return list;
}

/// The sum of squared errors after `change` of each exact value, over the sum before; 1 if nothing
/// was wrong.
double share_left(const std::vector<Terms>& list, const auto& change) {
  double all = 0, left = 0;
  for (const Terms& x : list) {
    const double rest = x.error - change(x);
    all += x.error * x.error;
    left += rest * rest;
  }
  return all == 0 ? 1 : left / all;
}

/// As missing_ranges.
std::vector<MissingRange> ranges_of(const std::vector<Terms>& list, std::int64_t k) {
  constexpr std::size_t most = 8;
  std::vector<MissingRange> found;
  const auto look = [&](std::int64_t begin, std::int64_t end) {
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    const double share =
        share_left(list, [&](const Terms& x) { return x.prefix[at(begin)] - x.prefix[at(end)]; });
    if (found.size() == most && share >= found.back().share) return;
    if (found.size() == most) found.pop_back();
    const auto place = std::find_if(found.begin(), found.end(),
                                    [&](const MissingRange& x) { return share < x.share; });
    found.insert(place, {{begin, end}, share});
  };
  const std::int64_t step = std::max<std::int64_t>(8, (k / 512 + 7) / 8 * 8);
  for (std::int64_t begin = 1; begin < k; ++begin) look(begin, k);
  for (std::int64_t begin = 0; begin < k; begin += step)
    for (std::int64_t end = begin + step; end < k; end += step) look(begin, end);
  return found;
}

std::string decimal(double x) {
  std::ostringstream text;
  text << std::setprecision(4) << x;
  return text.str();
}

/// Offers every variant and keeps the one with the smallest share of squared errors left.
class Variants {
 public:
  Variants(const GemmCapture& capture, std::vector<Terms> terms)
      : capture_(capture), terms_(std::move(terms)) {}

  std::optional<Variant> best() {
    const auto offer = [&](double share, const std::function<Variant()>& make) {
      if (share >= least_) return;
      least_ = share;
      make_ = make;
    };
    offer_addends(offer);
    offer_factors(offer);
    const std::int64_t k = capture_.problem.k();
    for (const MissingRange& x : ranges_of(terms_, k))
      offer(x.share, [this, x] { return without(x.range); });
    offer_transposed(offer);
    if (!make_) return {};
    return make_();
  }

 private:
  Variant named(std::string name) const { return {std::move(name), capture_}; }

  void offer_addends(const auto& offer) const {
    const double beta = capture_.beta;
    const bool has_c = !capture_.problem.c.empty() && beta != 0;
    if (has_c) {
      offer(share_left(terms_, [](const Terms& x) { return -x.c; }), [this] {
        Variant v = named("C is left out");
        v.capture.beta = 0;
        return v;
      });
    }
    if (has_c && beta != 1) {
      offer(share_left(terms_, [beta](const Terms& x) { return x.c / beta - x.c; }), [this] {
        Variant v = named("beta is taken as 1");
        v.capture.beta = 1;
        return v;
      });
    }
    if (capture_.problem.bias.empty()) return;
    offer(share_left(terms_, [](const Terms& x) { return -x.bias; }), [this] {
      Variant v = named("the bias is left out");
      v.capture.problem.bias = {};
      return v;
    });
  }

  void offer_factors(const auto& offer) const {
    double both = 0, square = 0;
    for (const Terms& x : terms_) {
      both += (x.error + x.product) * x.product;
      square += x.product * x.product;
    }
    if (square == 0 || capture_.alpha == 0) return;
    // The factor that a person would have written: few digits, or a multiple of 1/256.
    double alpha = 0;
    std::istringstream(decimal(both / square * capture_.alpha)) >> alpha;
    const double rounded = std::round(alpha * 256) / 256;
    if (std::fabs(rounded - alpha) < 1e-3 * std::fabs(alpha)) alpha = rounded;
    const double change = alpha / capture_.alpha - 1;
    offer(share_left(terms_, [change](const Terms& x) { return change * x.product; }),
          [this, alpha] {
            Variant v = named("wrong alpha: the product is about " + decimal(alpha) +
                              " times A * B, not " + decimal(capture_.alpha));
            v.capture.alpha = alpha;
            return v;
          });
  }

  Variant without(const KRange& range) const {
    const std::int64_t k = capture_.problem.k();
    Variant v = named(missing_text(range, k) + " everywhere");
    v.capture.problem = without_elements(capture_.problem, {range});
    return v;
  }

  void offer_transposed(const auto& offer) const {
    const GemmProblem& problem = capture_.problem;
    if (problem.m() != problem.n()) return;
    Variant v = named("the whole result is transposed");
    for (std::int64_t g = 0; g < problem.a.batch; ++g)
      for (std::int64_t i = 0; i < problem.m(); ++i)
        for (std::int64_t j = 0; j < problem.n(); ++j)
          v.capture.d.set(v.capture.d.index(g, i, j), capture_.d(g, j, i));
    const std::vector<Output> outputs = scattered_outputs(capture_.d, outputs_looked_at);
    const std::vector<Terms> turned =
        terms_of(select(problem, std::span<const Output>(outputs)),
                 select(v.capture.d, std::span<const Output>(outputs)), epilogue_of(capture_));
    double all = 0, left = 0;
    for (const Terms& x : terms_) all += x.error * x.error;
    for (const Terms& x : turned) left += x.error * x.error;
    if (all == 0 || turned.size() != terms_.size()) return;
    offer(left / all, [v] { return v; });
  }

 public:
  static constexpr std::int64_t outputs_looked_at = 32;
  static Epilogue epilogue_of(const GemmCapture& capture) {
    Epilogue e;
    e.alpha = capture.alpha;
    e.beta = capture.beta;
    return e;
  }

 private:
  const GemmCapture& capture_;
  std::vector<Terms> terms_;
  double least_ = 1.0 / 16;
  std::function<Variant()> make_;
};

}  // namespace

std::vector<MissingRange> missing_ranges(const GemmProblem& outputs, const CodeMatrix& recorded,
                                         const Epilogue& epilogue) {
  return ranges_of(terms_of(outputs, recorded, epilogue), outputs.k());
}

std::optional<Variant> likely_variant(const GemmCapture& capture) {
  constexpr std::size_t fewest = 8;
  if (capture.kind != "gemm" || capture.problem.scale_k != 0) return {};
  const std::vector<Output> outputs = scattered_outputs(capture.d, Variants::outputs_looked_at);
  std::vector<Terms> terms =
      terms_of(select(capture.problem, std::span<const Output>(outputs)),
               select(capture.d, std::span<const Output>(outputs)), Variants::epilogue_of(capture));
  if (terms.size() < fewest) return {};
  return Variants(capture, std::move(terms)).best();
}

}  // namespace guardbit::emulator

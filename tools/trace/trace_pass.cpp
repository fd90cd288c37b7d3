#include "tools/trace/trace_pass.hpp"

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "experiments/scaling/recipe_pass.hpp"
#include "experiments/traces/magnitude_counts.hpp"
#include "formats/codec.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/console/terminal.hpp"
#include "tools/trace/trace_sidecar.hpp"

namespace guardbit::tools {

namespace {

/// Cells for each format that the tensors have.
class CellsByFormat {
 public:
  explicit CellsByFormat(const TraceQuestions& questions) : questions_(questions) {}

  const experiments::MagnitudeCells& operator()(const formats::Format& from) {
    auto& cells = made_[formats::name_of(from)];
    if (!cells) cells = std::make_unique<experiments::MagnitudeCells>(from, questions_.storings);
    return *cells;
  }

 private:
  const TraceQuestions& questions_;
  std::map<std::string, std::unique_ptr<experiments::MagnitudeCells>> made_;
};

class Pass {
 public:
  Pass(const TraceSettings& options, TraceResults& results, const std::function<void()>& pause)
      : options_(options), results_(results), pause_(pause), cells_(results.questions) {}

  void operator()(const std::string& file) {
    formats::FormatOverrides overrides;
    if (!options_.from.empty()) overrides.any = require_element_format(options_.from, "--from");
    const formats::TensorStreams content = formats::open_tensors(file, overrides);
    for (const auto& [name, why] : content.left_out)
      results_.skipped.emplace_back(std::string(file).append(": ").append(name), why);
    std::size_t total = 0;
    for (const formats::StreamedTensor& stream : content.tensors)
      total += static_cast<std::size_t>(formats::element_count(stream.tensor.shape));
    const bool has_recipes = !results_.questions.recipes.empty();
    ProgressLine progress(formats::printable(file), has_recipes ? 2 * total : total);
    const Sidecar sidecar(file, content.metadata);
    const std::size_t first_traced = results_.tensors.size();
    std::vector<const formats::StreamedTensor*> counted;
    std::size_t before = 0;
    for (const formats::StreamedTensor& stream : content.tensors) {
      const formats::Tensor& tensor = stream.tensor;
      if (tensor.format.encoding != formats::Encoding::floating) {
        results_.skipped.emplace_back(
            file + ": " + tensor.name,
            formats::name_of(tensor.format) + " is not a floating-point format");
      } else {
        try {
          count(file, stream, sidecar, [&](std::size_t done) {
            pause_();
            progress.update(before + done);
          });
          counted.push_back(&stream);
        } catch (const formats::Error& error) {
          if (!options_.keep_going) throw;
          results_.skipped.emplace_back(file + ": " + tensor.name, error.what());
        }
      }
      before +=
          static_cast<std::size_t>(formats::element_count(tensor.shape)) * (has_recipes ? 2 : 1);
    }
    if (results_.sums) note_updates(formats::printable(file), first_traced, counted);
  }

 private:
  /// Weights and updates of one step, tensor and rank in a file: what the updates do.
  void note_updates(const std::string& where, std::size_t first_traced,
                    const std::vector<const formats::StreamedTensor*>& counted) {
    const auto traced = [&](std::size_t i) -> const TracedTensor& {
      return results_.tensors[first_traced + i];
    };
    using Key = std::tuple<std::optional<std::uint64_t>, std::optional<std::uint64_t>, std::string>;
    std::map<Key, std::size_t> weights;
    const auto key = [&](std::size_t i) {
      const experiments::TraceName& m = traced(i).meaning;
      return Key(m.step, m.rank, m.tensor);
    };
    for (std::size_t i = 0; i < counted.size(); ++i) {
      if (traced(i).meaning.role == "weight") weights.emplace(key(i), i);
    }
    for (std::size_t i = 0; i < counted.size(); ++i) {
      if (traced(i).meaning.role != "update") continue;
      const auto found = weights.find(key(i));
      if (found == weights.end()) continue;
      const formats::StreamedTensor& update = *counted[i];
      const formats::StreamedTensor& weight = *counted[found->second];
      if (update.tensor.format != formats::fp32 || weight.tensor.format != formats::fp32 ||
          update.tensor.shape != weight.tensor.shape)
        continue;
      TracedUpdate noted{traced(i).meaning.tensor,
                         traced(i).meaning.step,
                         traced(found->second).statistics.squares,
                         traced(i).statistics.squares,
                         {}};
      noted.effect = effect_of(where, weight, update);
      results_.updates.push_back(std::move(noted));
    }
  }

  experiments::UpdateEffect effect_of(const std::string& where,
                                      const formats::StreamedTensor& weight,
                                      const formats::StreamedTensor& update) const {
    std::vector<formats::Format> kept;
    for (std::size_t f = 0; f < results_.questions.formats.size(); ++f)
      kept.push_back(results_.questions.storings[results_.questions.storing(f, 0)].to);
    const formats::Tensor weights = formats::whole_tensor(where, weight);
    experiments::UpdateEffect effect = experiments::update_effect({}, {}, kept);
    update.read([&](std::span<const std::byte> bytes, std::size_t first) {
      pause_();
      effect.add(
          experiments::update_effect(weights.bytes.subspan(4 * first, bytes.size()), bytes, kept));
    });
    return effect;
  }

  void count(const std::string& file, const formats::StreamedTensor& stream, const Sidecar& sidecar,
             const std::function<void(std::size_t)>& progress) {
    const formats::Tensor& tensor = stream.tensor;
    const experiments::MagnitudeCells& cells = cells_(tensor.format);
    experiments::MagnitudeCounts counts(cells.size());
    TracedTensor traced;
    stream.read([&](std::span<const std::byte> bytes, std::size_t first) {
      const formats::Tensor window = formats::window_of(tensor, bytes, first);
      experiments::MagnitudeCounts part = experiments::count_magnitudes(
          cells, window, options_.threads, [&](std::size_t done) { progress(first + done); },
          results_.sums ? experiments::Sums::exact : experiments::Sums::none);
      if (part.first_nonfinite && !counts.first_nonfinite) {
        const std::uint64_t code = formats::load_code(
            bytes, tensor.format, tensor.packing, static_cast<std::size_t>(*part.first_nonfinite));
        traced.first_is_nan = formats::decode(tensor.format, code).kind == formats::Kind::nan;
      }
      if (part.first_nonfinite) *part.first_nonfinite += first;
      counts.add(part);
    });
    traced.file = file;
    traced.name = tensor.name;
    traced.format = formats::name_of(tensor.format);
    traced.shape = tensor.shape;
    traced.meaning = meaning_of(file, tensor.name);
    sidecar.complete(tensor.name, traced.meaning, traced.loss_scale);
    traced.statistics =
        experiments::statistics_of(cells, counts, results_.questions.storings.size());
    traced.first_nonfinite = counts.first_nonfinite;
    traced.columns = tensor.shape.size() < 2 ? 0 : static_cast<std::uint64_t>(tensor.shape.back());
    if (!results_.questions.recipes.empty())
      traced.statistics.recipes = stored(stream, [&](std::size_t done) {
        progress(static_cast<std::size_t>(traced.statistics.elements) + done);
      });
    results_.tensors.push_back(std::move(traced));
  }

  experiments::RecipeStatistics stored(const formats::StreamedTensor& stream,
                                       const std::function<void(std::size_t)>& progress) const {
    std::vector<experiments::RecipeState> none;  // no recipe here remembers anything
    experiments::StoredTensor stored =
        experiments::store_tensor(results_.questions.recipes, stream, results_.questions.layout,
                                  none, options_.threads, progress);
    experiments::RecipeStatistics statistics{std::move(stored.signal), {}};
    statistics.outcomes.reserve(stored.outcomes.size());
    for (experiments::RecipeOutcome& outcome : stored.outcomes)
      statistics.outcomes.emplace_back(std::move(outcome));
    return statistics;
  }

  const TraceSettings& options_;
  TraceResults& results_;
  const std::function<void()>& pause_;
  CellsByFormat cells_;
};

}  // namespace

void require_tensors(const TraceResults& results, bool keep_going) {
  if (!results.tensors.empty() || results.skipped.empty()) return;
  const auto& [what, why] = results.skipped.front();
  if (keep_going) throw formats::Error("trace", "nothing was read: " + formats::printable(why));
  throw formats::Error(formats::printable(what),
                       why + ", and there is no other tensor (--from says what codes are)");
}

namespace {

TraceResults trace_files_named(const std::vector<std::string>& files, const TraceSettings& settings,
                               const std::function<void()>& pause) {
  if (!(settings.tolerance >= 0 && settings.tolerance <= 1))
    throw formats::Error("--tolerance", "not a share", "0 to 1");
  TraceResults results;
  if (!settings.histogram) {
    results.questions =
        trace_questions(settings.formats, settings.scales, settings.policy, settings.exact_product);
    results.questions.layout = layout_of(settings.layout);
  }
  results.sums = !settings.histogram;
  results.policy = settings.policy;
  results.exact_product = settings.exact_product;
  results.tolerance = settings.tolerance;
  Pass pass(settings, results, pause);
  for (const std::string& file : files) {
    try {
      pass(file);
    } catch (const formats::Error& error) {
      if (!settings.keep_going) throw;
      results.skipped.emplace_back(file, error.what());
    }
  }
  return results;
}

}  // namespace

TraceResults trace(const std::vector<std::string>& words, const TraceSettings& settings,
                   const std::function<void()>& pause) {
  TraceResults results = trace_files_named(trace_files(words), settings, pause);
  require_tensors(results, settings.keep_going);
  return results;
}

TraceResults trace_file(const std::string& file, const TraceSettings& settings,
                        const std::function<void()>& pause) {
  return trace_files_named({file}, settings, pause);
}

}  // namespace guardbit::tools

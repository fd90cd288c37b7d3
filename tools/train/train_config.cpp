#include "tools/train/train_config.hpp"

#include <stdexcept>

// toml++ asserts that the name of a table begins like a key, which a wrong file decides ([%]). Its
// assertions throw here, in every build; what is thrown becomes an error of the file.
namespace guardbit::tools {
struct TomlAssertion : std::logic_error {
  TomlAssertion() : std::logic_error("not TOML") {}
};
[[noreturn]] static void throw_toml_assertion() { throw TomlAssertion(); }
}  // namespace guardbit::tools
#define TOML_ASSERT(expr) ((expr) ? void() : guardbit::tools::throw_toml_assertion())
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/plan.hpp"
#include "experiments/scaling/loss_scaler.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parameter_error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"

namespace guardbit::tools {

namespace {

using experiments::training::ModelShape;
using experiments::training::OptimizerRules;
using experiments::training::PrecisionRecipe;
using formats::Error;
using formats::Format;

/// A table of the file, whose keys are all asked for once, and errors that name its lines.
class Section {
 public:
  Section(const std::string& file, const toml::table& root, std::string name)
      : file_(file), name_(std::move(name)) {
    const toml::node* const node = root.get(name_);
    if (node == nullptr) return;
    table_ = node->as_table();
    if (table_ == nullptr) throw Error(where(*node), "'" + name_ + "' is not a table");
  }

  void read(const char* key, std::int64_t& value, std::int64_t least = 0) {
    const toml::node* const node = find(key);
    if (node == nullptr) return;
    const auto number = node->value_exact<std::int64_t>();
    constexpr std::int64_t most = 1'000'000'000;
    if (!number || *number < least || *number > most)
      throw Error(where(*node),
                  name_ + "." + key +
                      (number ? " is " + std::to_string(*number) : " is not a whole number"),
                  std::to_string(least) + " to " + std::to_string(most));
    value = *number;
  }
  void read(const char* key, double& value) {
    const toml::node* const node = find(key);
    if (node == nullptr) return;
    const auto number = node->value<double>();
    if (!node->is_number() || !number || !std::isfinite(static_cast<float>(*number)))
      throw Error(where(*node), name_ + "." + key + " is not a number");
    value = *number;
  }
  void read(const char* key, float& value) {
    double number = static_cast<double>(value);
    read(key, number);
    value = static_cast<float>(number);
  }
  void read(const char* key, std::string& value) {
    const toml::node* const node = find(key);
    if (node == nullptr) return;
    const auto text = node->value_exact<std::string>();
    if (!text) throw Error(where(*node), name_ + "." + key + " is not a text");
    value = *text;
  }
  void read(const char* key, bool& value) {
    const toml::node* const node = find(key);
    if (node == nullptr) return;
    const auto truth = node->value_exact<bool>();
    if (!truth) throw Error(where(*node), name_ + "." + key + " is not true or false");
    value = *truth;
  }
  void read(const char* key, Format& value) {
    std::string text;
    read(key, text);
    if (!text.empty()) value = formats::require_format(text, where_of(key));
  }
  bool exists() const { return table_ != nullptr; }
  /// One of the words, as its index.
  std::optional<std::size_t> choice(const char* key, const std::vector<std::string_view>& words) {
    std::string text;
    read(key, text);
    if (text.empty()) return std::nullopt;
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == text) return i;
      list += (i == 0 ? "" : ", ") + std::string(words[i]);
    }
    throw Error(where_of(key), formats::unknown_name(name_ + "." + key, text, words), list);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(const char* key, Enum& value) {
    const auto& words = formats::words_of<Enum>;
    if (const auto chosen = choice(key, {words.begin(), words.end()}))
      value = static_cast<Enum>(*chosen);
  }
  template <class T>
  std::optional<std::vector<T>> list(const char* key) {
    const toml::node* const node = find(key);
    if (node == nullptr) return std::nullopt;
    const toml::array* const array = node->as_array();
    std::vector<T> values;
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      const auto value = array->get(i)->value_exact<T>();
      if (value) values.push_back(*value);
    }
    if (array == nullptr || values.size() != array->size() || values.empty())
      throw Error(where(*node), name_ + "." + key + " is not a list of such values");
    return values;
  }

  /// Error for keys that nobody asked for.
  void finish() const {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      const std::string_view name = key.str();
      if (!asked_.contains(std::string(name)))
        throw Error(where(node),
                    formats::unknown_name("key", name, {asked_.begin(), asked_.end()}) + " in [" +
                        name_ + "]",
                    keys());
    }
  }
  std::string where_of(const char* key) const {
    const toml::node* const node = table_ == nullptr ? nullptr : table_->get(key);
    return node == nullptr ? file_ : where(*node);
  }

 private:
  const toml::node* find(const char* key) {
    asked_.insert(key);
    return table_ == nullptr ? nullptr : table_->get(key);
  }
  std::string where(const toml::node& node) const {
    return file_ + " line " + std::to_string(node.source().begin.line);
  }
  std::string keys() const {
    std::string list;
    for (const std::string& key : asked_) list += (list.empty() ? "" : ", ") + key;
    return list;
  }

  std::string file_, name_;
  const toml::table* table_ = nullptr;
  std::set<std::string> asked_;
};

void read_data(Section section, TrainConfig::Data& data) {
  const std::vector<std::string_view> kinds = {"digits", "idx", "text", "spiral", "teacher"};
  if (const auto kind = section.choice("kind", kinds)) data.kind = kinds[*kind];
  section.read("path", data.path);
  section.read("training", data.training, 1);
  section.read("test", data.test, 1);
  section.read("inputs", data.inputs, 1);
  section.read("classes", data.classes, 2);
  section.read("mean", data.mean);
  section.read("deviation", data.deviation);
  section.finish();
  const bool needs_path = data.kind == "idx" || data.kind == "text";
  if (needs_path && data.path.empty())
    throw Error(
        section.where_of("kind"),
        "[data] needs a path: of " + std::string(data.kind == "idx" ? "a folder" : "a text"));
}

void read_model(Section section, ModelShape& model) {
  section.read("kind", model.kind);
  const auto sizes = [&](const char* key, std::vector<std::int64_t>& to) {
    const auto list = section.list<std::int64_t>(key);
    if (!list) return;
    if (std::any_of(list->begin(), list->end(), [](auto x) { return x < 1 || x > 65536; }))
      throw Error(section.where_of(key), std::string(key) + " holds a size that is none",
                  "1 to 65536");
    to = *list;
  };
  sizes("filters", model.filters);
  sizes("hidden", model.hidden);
  section.read("columns", model.columns, 1);
  section.read("heads", model.heads, 1);
  section.read("blocks", model.blocks, 1);
  section.read("time", model.time, 1);
  section.finish();
}

void read_optimizer(Section section, OptimizerRules& rules) {
  section.read("kind", rules.kind);
  rules.momentum = rules.kind == OptimizerRules::Kind::sgd ? 0.9F : 0.0F;
  rules.learning_rate = rules.kind == OptimizerRules::Kind::sgd ? 0.02F : 0.001F;
  section.read("learning_rate", rules.learning_rate);
  section.read("momentum", rules.momentum);
  section.read("weight_decay", rules.weight_decay);
  section.read("beta1", rules.beta1);
  section.read("beta2", rules.beta2);
  section.read("epsilon", rules.epsilon);
  section.read("first", rules.first);
  section.read("second", rules.second);
  const auto rounding = [&](const char* key, formats::Rounding& to) {
    using enum formats::Rounding;
    const auto chosen =
        section.choice(key, {formats::word_of(nearest_even), formats::word_of(stochastic)});
    if (chosen) to = *chosen == 0 ? nearest_even : stochastic;
  };
  rounding("state_rounding", rules.state_rounding);
  rounding("weight_rounding", rules.weight_rounding);
  section.read("keeping", rules.keeping);
  section.finish();
}

/// A dynamic scaler, or a scale that stays.
struct ScalerChoice {
  std::optional<experiments::ScalerRules> rules;
  double fixed_scale = 1;
};

void read_scaler_factors(Section& section, experiments::ScalerRules& rules) {
  const std::string name(rules.name);
  const experiments::ScalerRules usual = rules;
  section.read("growth", rules.growth);
  if (rules.fixed_factor && rules.growth != usual.growth)
    throw Error(section.where_of("growth"), name + " always takes 2");
  section.read("backoff", rules.backoff);
  if (rules.divides && rules.backoff != usual.backoff)
    throw Error(section.where_of("backoff"), name + " divides by the growth factor");
  std::int64_t hysteresis = rules.hysteresis;
  section.read("hysteresis", hysteresis, 1);
  rules.hysteresis = static_cast<int>(hysteresis);
  if (const auto counted = section.choice("hysteresis_counts", {"all", "consecutive"}))
    rules.clean_step_refills = *counted == 1;
  double floor = rules.floor.value_or(-1), ceiling = -1;
  section.read("floor", floor);
  if (floor >= 0) rules.floor = floor;
  section.read("ceiling", ceiling);
  if (ceiling >= 0) {
    rules.ceiling_rule = experiments::Ceiling::clamp;
    rules.ceiling = ceiling;
  }
}

/// The rules' own test; the file's keys are the rules' fields.
void require_scaler(const Section& section, const experiments::ScalerRules& rules) {
  try {
    experiments::check(rules);
  } catch (const formats::ParameterError& error) {
    throw Error(section.where_of(error.parameter().c_str()),
                "scaler." + error.parameter() + ": " + error.problem());
  }
}

ScalerChoice read_scaler(Section section) {
  std::vector<std::string_view> presets = {"static"};
  for (const experiments::ScalerRules& known : experiments::scaler_presets)
    presets.push_back(known.name);
  const auto chosen = section.choice("preset", presets);
  ScalerChoice choice;
  if (chosen && *chosen == 0) {
    section.read("initial", choice.fixed_scale);
    if (!(choice.fixed_scale > 0)) throw Error(section.where_of("initial"), "a scale is above 0");
    section.finish();
    return choice;
  }
  experiments::ScalerRules rules = experiments::scaler_presets.at(chosen ? *chosen - 1 : 0);
  section.read("initial", rules.initial);
  section.read("interval", rules.interval, 1);
  read_scaler_factors(section, rules);
  section.finish();
  require_scaler(section, rules);
  choice.rules = rules;
  return choice;
}

/// Its keys, and what they change in recipes that train with fake quantisation.
void read_quantisation(Section section, TrainConfig& config) {
  TrainConfig::Quantisation& q = config.quantisation;
  q.is_asked_for = section.exists();
  experiments::training::FakeQuantisation rules;
  std::string word, arch;
  section.read("estimator", word);
  if (!word.empty())
    rules.estimator = formats::require_word<experiments::StraightThrough>(
        "straight-through estimator", word, section.where_of("estimator"));
  section.read("average", rules.average);
  if (!(rules.average > 0 && rules.average <= 1))
    throw Error(section.where_of("average"), "quantisation.average is a share", "0 to 1");
  section.read("from", q.from);
  if (const auto bits = section.list<std::int64_t>("bits")) {
    q.bits.clear();
    for (const std::int64_t b : *bits) {
      if (b != 8 && b != 4)
        throw Error(section.where_of("bits"), "no instruction has integers of so many bits",
                    "8, 4");
      q.bits.push_back(static_cast<int>(b));
    }
  }
  if (const auto words = section.list<std::string>("calibrators"))
    for (const std::string& calibrator : *words)
      q.calibrators.push_back(formats::require_word<experiments::Calibrator>(
          "calibrator", calibrator, section.where_of("calibrators")));
  if (q.calibrators.empty()) {
    const auto& all = formats::enumerators_of<experiments::Calibrator>;
    q.calibrators.assign(all.begin(), all.end());
  }
  std::string quirks = "modelopt";
  section.read("quirks", quirks);
  q.quirks = experiments::parse_quirks(quirks, section.where_of("quirks"));
  section.read("calibration", q.calibration, 1);
  std::string rule;
  section.read("requantise", rule);
  if (!rule.empty())
    q.execution.rule = formats::require_word<experiments::RequantisationRule>(
        "rule", rule, section.where_of("requantise"));
  section.read("arch", arch);
  if (!arch.empty()) q.execution.arch = emulator::require_page(arch, section.where_of("arch"));
  section.read("prune", q.prunes);
  section.finish();
  for (PrecisionRecipe& recipe : config.recipes) {
    if (!recipe.quantisation) continue;
    q.is_asked_for = true;
    rules.bits = recipe.quantisation->bits;
    recipe.quantisation = rules;
  }
  if (q.is_asked_for && config.model.kind == ModelShape::Kind::gpt)
    throw Error(section.where_of("estimator"), "integers are for networks of these kinds",
                "cnn, mlp");
  std::ostringstream text;
  text << "estimator " << static_cast<int>(rules.estimator) << ", average " << rules.average
       << ", from '" << q.from << "'";
  q.text = text.str();
}

void read_recipes(Section training, Section unit, const ScalerChoice& scaler, TrainConfig& config) {
  std::vector<std::string> names = {"fp32"};
  if (const auto list = training.list<std::string>("recipes")) names = *list;
  std::string arch;
  unit.read("arch", arch);
  std::int64_t history = 0;
  unit.read("history", history, 1);
  for (const std::string& name : names) {
    const bool is_simt = name == "fp32" || name == "eigen" || name.ends_with("_qat");
    PrecisionRecipe recipe = experiments::training::require_recipe(name, is_simt ? "" : arch,
                                                                   training.where_of("recipes"));
    if (recipe.scaler) {
      recipe.scaler = scaler.rules;
      recipe.fixed_scale = scaler.fixed_scale;
    }
    if (history > 0) recipe.delayed.history = static_cast<std::size_t>(history);
    for (std::size_t i = 0; i < experiments::training::passes; ++i) {
      const char* const pass = words(experiments::training::Pass{}).at(i);
      std::string plan;
      unit.read(pass, plan);
      if (!plan.empty() && !is_simt)
        recipe.plans.at(i) = emulator::parse_plan(plan, unit.where_of(pass));
    }
    for (const PrecisionRecipe& other : config.recipes)
      if (other.name == name) throw Error(training.where_of("recipes"), "names " + name + " twice");
    config.recipes.push_back(std::move(recipe));
  }
  training.read("batch", config.batch, 1);
  training.read("epochs", config.epochs, 1);
  training.read("steps", config.steps, 1);
  training.read("checkpoint_every", config.checkpoint_every, 1);
  training.read("trace_every", config.trace_every, 1);
  auto seed = static_cast<std::int64_t>(config.seed);
  training.read("seed", seed);
  config.seed = static_cast<std::uint64_t>(seed);
  training.finish();
  unit.finish();
}

/// What decides bits: the file's values in TOML's own order of keys, without how long to train and
/// what to write.
std::string deciding_text(toml::table root) {
  root.erase("quantisation");  // QAT recipes have a text of their own
  if (toml::table* const training = root["training"].as_table()) {
    for (const char* key : {"recipes", "epochs", "steps", "checkpoint_every", "trace_every"})
      training->erase(key);
  }
  std::ostringstream text;
  text << toml::default_formatter(root);
  return text.str();
}

}  // namespace

TrainConfig read_train_config(const std::string& path) {
  const formats::MappedFile file = formats::map_file(path);
  const std::string where = formats::printable(path);
  toml::table root;
  try {
    root = toml::parse(
        std::string_view(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()));
  } catch (const toml::parse_error& error) {
    std::string_view what = error.description();
    constexpr std::string_view parser = "Error while parsing ";
    if (what.starts_with(parser)) what.remove_prefix(parser.size());
    std::string text(what);
    if (text.find("could not determine value type") != std::string::npos)
      text = "what follows '=' is no value: a string in quotes, a number, true, false or a list";
    throw Error(where + " line " + std::to_string(error.source().begin.line),
                formats::printable(text));
  } catch (const TomlAssertion&) {
    throw Error(where, "not TOML: the name of a table is no key");
  }
  const std::vector<std::string_view> sections = {"data",   "model", "training",    "optimizer",
                                                  "scaler", "unit",  "quantisation"};
  for (const auto& [key, node] : root) {
    if (std::find(sections.begin(), sections.end(), key.str()) == sections.end())
      throw Error(where + " line " + std::to_string(node.source().begin.line),
                  formats::unknown_name("section", key.str(), sections),
                  "data, model, training, optimizer, scaler, unit, quantisation");
  }
  TrainConfig config;
  read_data({where, root, "data"}, config.data);
  if (config.data.kind == "spiral" || config.data.kind == "teacher")
    config.model.kind = ModelShape::Kind::mlp;
  if (config.data.kind == "text") config.model.kind = ModelShape::Kind::gpt;
  read_model({where, root, "model"}, config.model);
  read_optimizer({where, root, "optimizer"}, config.optimizer);
  const auto scaler = read_scaler({where, root, "scaler"});
  read_recipes({where, root, "training"}, {where, root, "unit"}, scaler, config);
  read_quantisation({where, root, "quantisation"}, config);
  config.text = deciding_text(root);
  config.source.assign(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  return config;
}

namespace {

/// One of MNIST's files, as it is or as it is distributed.
std::string plain_or_packed(const std::string& path) {
  std::error_code error;
  std::string packed = path + ".gz";
  if (!std::filesystem::exists(path, error) && std::filesystem::exists(packed, error))
    return packed;
  return path;
}

}  // namespace

experiments::training::Dataset load_data(TrainConfig& config) {
  namespace training = experiments::training;
  const TrainConfig::Data& data = config.data;
  training::Dataset result;
  const std::uint64_t seed = config.seed;
  if (data.kind == "text") {
    result = training::read_text(data.path, config.model.time);
  } else if (data.kind == "spiral") {
    result.classes = data.classes;
    result.training = training::draw_spiral(data.training, data.classes, seed, false);
    result.test = training::draw_spiral(data.test, data.classes, seed, true);
  } else if (data.kind == "teacher") {
    result.classes = data.classes;
    result.training = training::draw_teacher(data.training, data.inputs, data.classes, seed, false);
    result.test = training::draw_teacher(data.test, data.inputs, data.classes, seed, true);
  } else {
    const auto images = [&](const char* name, std::int64_t count, std::uint64_t stream) {
      const std::string start = data.path + "/" + name;
      return training::examples_of(
          data.kind == "idx" ? training::read_images(plain_or_packed(start + "-images-idx3-ubyte"),
                                                     plain_or_packed(start + "-labels-idx1-ubyte"))
                             : training::draw_digits(count, stream),
          data.mean, data.deviation);
    };
    result.training = images("train", data.training, 2 * seed);
    result.test = images("t10k", data.test, 2 * seed + 1);
    for (const training::Examples* x : {&result.training, &result.test})
      for (const std::int32_t label : x->labels)
        result.classes = std::max<std::int64_t>(result.classes, label + 1);
  }
  const bool wants_text = config.model.kind == ModelShape::Kind::gpt;
  if (wants_text != (data.kind == "text"))
    throw Error("[model]", "gpt reads text, and nothing else does");
  const bool wants_images = config.model.kind == ModelShape::Kind::cnn;
  if (wants_images && result.training.inputs.shape.size() != 4)
    throw Error("[model]", "cnn reads images: data digits or idx");
  config.model.classes = result.classes;
  if (wants_images) {
    config.model.height = result.training.inputs.shape[1];
    config.model.width = result.training.inputs.shape[2];
  } else if (!wants_text) {
    for (training::Examples* x : {&result.training, &result.test})
      x->inputs.shape = {x->count(), x->inputs.size() / x->count()};
    config.model.inputs = result.training.inputs.columns();
  }
  return result;
}

}  // namespace guardbit::tools

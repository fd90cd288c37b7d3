#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/text.hpp"
#include "gpu/conversions/conversion_digest.hpp"
#include "gpu/conversions/conversion_forms.hpp"
#include "gpu/cuda/conversion/device_conversions.hpp"
#include "gpu/cuda/device/device.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/terminal.hpp"
#include "tools/console/threads_option.hpp"
#include "tools/gpu/gpu_commands.hpp"

namespace guardbit::tools {

namespace {

using gpu::ConversionForm;
using gpu::ConversionMismatch;
using gpu::ConversionRule;

struct Options {
  std::vector<std::string> names;
  bool all = false;
  bool list = false;
  bool json = false;
  bool on_cpu = false;
  std::string on = "device";
  std::string output;
  int threads = 0;
};

/// Mismatches of one form that are shown, and written to JSON.
constexpr std::size_t most_shown = 3, most_written = 16;

/// What was found about one form.
struct Outcome {
  ConversionForm form;
  gpu::ConversionComparison result;
};

std::string digits(std::uint64_t word, int count) {
  std::string text(static_cast<std::size_t>(count), '0');
  for (std::size_t i = text.size(); i-- > 0; word >>= 4) text[i] = "0123456789abcdef"[word & 15];
  return text;
}

std::string register_text(const formats::Format& f, int elements, std::uint64_t word) {
  return "0x" + digits(word, formats::container_bits(f) / 4 * elements);
}

/// "1.5" or "1.5, nan": the elements of a register, the lower one first.
std::string numbers_text(const formats::Format& f, int elements, std::uint64_t word) {
  std::string text;
  for (int i = 0; i < elements; ++i) {
    const std::uint64_t code = word >> (i * formats::container_bits(f));
    const std::uint64_t bits = (code >> formats::container_shift(f)) & formats::code_mask(f);
    text += (i == 0 ? "" : ", ") + formats::shortest_text(f, bits);
  }
  return text;
}

std::vector<std::uint64_t> elements_of(const ConversionRule& rule,
                                       const gpu::ConversionInput& input) {
  if (rule.elements == 2) return {input.low, input.high};
  return {input.low};
}

std::string input_text(const ConversionRule& rule, const gpu::ConversionInput& input) {
  std::string text;
  for (const std::uint64_t code : elements_of(rule, input)) {
    text += (text.empty() ? "" : ", ") + register_text(rule.source, 1, code) + " (" +
            formats::shortest_text(rule.source, code & formats::code_mask(rule.source)) + ")";
  }
  return text;
}

void print_mismatches(const Outcome& outcome) {
  const ConversionRule& rule = outcome.form.rule;
  const auto answer = [&](std::uint64_t word) {
    return register_text(rule.destination, rule.elements, word) + " (" +
           numbers_text(rule.destination, rule.elements, word) + ")";
  };
  const auto& examples = outcome.result.examples;
  for (std::size_t i = 0; i < std::min(most_shown, examples.size()); ++i) {
    std::cout << "    input " << input_text(rule, examples[i].input) << ": device "
              << answer(examples[i].device) << ", model " << answer(examples[i].model) << '\n';
  }
}

nlohmann::ordered_json to_json(const ConversionRule& rule, const ConversionMismatch& mismatch) {
  nlohmann::ordered_json input = nlohmann::ordered_json::array();
  for (const std::uint64_t code : elements_of(rule, mismatch.input))
    input.push_back(register_text(rule.source, 1, code));
  return {{"input", input},
          {"device", register_text(rule.destination, rule.elements, mismatch.device)},
          {"model", register_text(rule.destination, rule.elements, mismatch.model)}};
}

nlohmann::ordered_json to_json(const Outcome& outcome, bool on_cpu) {
  const ConversionRule& rule = outcome.form.rule;
  nlohmann::ordered_json row = {{"name", outcome.form.name},
                                {"inputs", std::uint64_t{1} << gpu::input_bits(rule)},
                                {"exhaustive", gpu::is_exhaustive(rule)}};
  if (!on_cpu) row["mismatches"] = outcome.result.mismatches;
  row["digest"] = digits(gpu::total_digest(outcome.result.digests), 16);
  if (gpu::input_bits(rule) > 16) {
    for (const std::uint32_t slice : gpu::recorded_slices)
      row["slices"][digits(slice, 4)] = digits(outcome.result.digests[slice], 16);
  }
  if (!outcome.result.examples.empty()) {
    row["first_mismatch"] = to_json(rule, outcome.result.examples.front());
    for (const ConversionMismatch& example : outcome.result.examples)
      row["examples"].push_back(to_json(rule, example));
  }
  if (!on_cpu) row["seconds"] = outcome.result.seconds;
  return row;
}

std::string document(const std::vector<Outcome>& outcomes, const gpu::Device& device, bool on_cpu) {
  nlohmann::ordered_json out;
  if (on_cpu) {
    out["device"] = "model on the CPU";
  } else {
    out["device"] = {{"name", device.name},
                     {"capability", device.capability},
                     {"driver", device.driver},
                     {"toolkit", device.toolkit}};
  }
  // One conversion a line: the file is kept and compared.
  std::string text = out.dump().substr(0, out.dump().size() - 1) + ",\"conversions\":[";
  for (const Outcome& outcome : outcomes)
    text += (&outcome == outcomes.data() ? "\n" : ",\n") + to_json(outcome, on_cpu).dump();
  return text + "\n]}\n";
}

void print_list() {
  Table table("llrl");
  table.add({"conversion", "to", "from", "inputs"});
  for (const ConversionForm& form : gpu::conversion_forms()) {
    table.add({std::string(form.name), formats::name_of(form.rule.destination),
               formats::name_of(form.rule.source), gpu::input_count_text(form.rule)});
  }
  table.print(std::cout);
  std::cout << "\nptxas 13.0 has these for sm_100a only:\n";
  for (const std::string_view name : gpu::conversions_of_sm_100a()) std::cout << name << '\n';
}

/// The digests of a form by the model, which takes minutes where there are 2^32 inputs.
gpu::ConversionComparison ask_model(const ConversionForm& form, int threads,
                                    const Interruption& interruption) {
  ProgressLine progress(std::string(form.name), std::size_t{1} << gpu::input_bits(form.rule));
  gpu::ConversionComparison result;
  result.digests = gpu::model_digests(form.rule, threads, [&](std::uint64_t done) {
    interruption.check();
    progress.update(done);
  });
  return result;
}

void print_line(const Outcome& outcome, bool on_cpu) {
  std::cout << outcome.form.name << "  " << gpu::input_count_text(outcome.form.rule) << "  "
            << digits(gpu::total_digest(outcome.result.digests), 16);
  if (!on_cpu) {
    std::cout << "  "
              << (outcome.result.mismatches == 0
                      ? "0 mismatches"
                      : paint(counted(outcome.result.mismatches, "mismatch", "es"), Colour::red));
  }
  std::cout << std::endl;
  print_mismatches(outcome);
}

std::vector<Outcome> ask(const Options& options, const std::vector<ConversionForm>& forms,
                         const Interruption& interruption) {
  std::vector<Outcome> outcomes;
  std::vector<Outcome> by_rule;  // many names mean the same to the model
  for (const ConversionForm& form : forms) {
    interruption.check();
    if (options.on_cpu) {
      const auto same = std::find_if(by_rule.begin(), by_rule.end(), [&](const Outcome& other) {
        return other.form.rule == form.rule;
      });
      if (same == by_rule.end()) {
        by_rule.push_back({form, ask_model(form, options.threads, interruption)});
        outcomes.push_back(by_rule.back());
      } else {
        outcomes.push_back({form, same->result});
      }
    } else {
      outcomes.push_back({form, gpu::compare_conversion(form, most_written)});
    }
    if (!options.json) print_line(outcomes.back(), options.on_cpu);
  }
  return outcomes;
}

int summarise(const std::vector<Outcome>& outcomes, const Options& options) {
  std::uint64_t inputs = 0;
  int differing = 0;
  double seconds = 0;
  for (const Outcome& outcome : outcomes) {
    inputs += std::uint64_t{1} << gpu::input_bits(outcome.form.rule);
    differing += outcome.result.mismatches != 0 ? 1 : 0;
    seconds += outcome.result.seconds;
  }
  if (!options.json) {
    std::cout << outcomes.size() << " conversions, " << inputs << " inputs";
    if (!options.on_cpu)
      std::cout << ", " << counted(differing, "conversion") << " with mismatches, " << seconds
                << " s on the device";
    std::cout << '\n';
  }
  return differing == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (options.list) {
    print_list();
    return 0;
  }
  if (options.all == !options.names.empty())
    throw formats::Error("gpu convert", "give names of conversions, or --all");
  const std::vector<ConversionForm> forms =
      gpu::find_conversions(options.all ? std::vector<std::string>{"*"} : options.names);
  if (!options.output.empty()) const formats::AtomicOutput writable(options.output);
  const gpu::Device device = options.on_cpu ? gpu::Device{} : gpu::require_device();
  const Interruption interruption;
  const std::vector<Outcome> outcomes = ask(options, forms, interruption);
  const std::string text = document(outcomes, device, options.on_cpu);
  if (options.json) std::cout << text;
  if (!options.output.empty()) {
    formats::write_file(options.output, text);
  }
  return summarise(outcomes, options);
}

}  // namespace

void add_gpu_convert(CLI::App& gpu, int& status) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = gpu.add_subcommand(
      "convert", "Compare PTX cvt with the model over every input, on the device");
  command->add_option("NAME", options->names,
                      "Conversions as PTX spells them; * stands for any text");
  command->add_flag("--all", options->all, "Every conversion that this architecture has");
  command->add_flag("--list", options->list, "List the conversions and how many inputs each has");
  command->add_option("--on", options->on, "Compare on the device, or compute the model's digests")
      ->check(CLI::IsMember({"device", "cpu"}))
      ->capture_default_str();
  add_threads_option(*command, options->threads);
  command->add_option("-o,--output", options->output, "Write JSON to this file too")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exits with 1 when the device and the model differ. The digest is that of the device's own\n"
      "answers (with --on cpu: of the model's), and equal digests mean equal answers.\n"
      "Example: guardbit gpu convert 'cvt.rn*.f16.f32' cvt.rn.satfinite.e4m3x2.f32");
  command->callback([options, &status] {
    options->on_cpu = options->on == "cpu";
    status = run(*options);
  });
}

}  // namespace guardbit::tools

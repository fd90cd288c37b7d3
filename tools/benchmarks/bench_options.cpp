#include "tools/benchmarks/bench_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

namespace guardbit::tools {

std::optional<std::array<int, 3>> product_size(const std::string& word) {
  std::vector<std::string> numbers = CLI::detail::split(word, 'x');
  if (numbers.size() == 1) numbers.resize(3, word);
  if (numbers.size() != 3) return {};
  std::array<int, 3> size{};
  for (std::size_t i = 0; i < 3; ++i) {
    const char* const end = numbers[i].data() + numbers[i].size();
    const auto [stop, error] = std::from_chars(numbers[i].data(), end, size[i]);
    if (error != std::errc{} || stop != end || size[i] < 1 || size[i] > 65536) return {};
  }
  return size;
}

void add_bench_options(CLI::App& command, BenchOptions& options) {
  const auto list = [&](const std::string& name, auto& values, const std::string& help) {
    return command.add_option(name, values, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--only", options.only, "Only benchmarks whose name holds one of these words")
      ->type_name("WORD,...");
  list("--kind", options.kinds, "Only these kinds of benchmarks")
      ->type_name("KIND,...")
      ->check(
          CLI::IsMember({"gemm", "convert", "replay", "memory", "trace", "function", "operator"}));
  list("--size", options.sizes, "M = N = K of the matrix products, or each of them")
      ->type_name("N|MxNxK,...")
      ->check(CLI::Validator(
          [](const std::string& word) {
            return product_size(word) ? "" : "'" + word + "' is not N or MxNxK, of 1 to 65536 each";
          },
          ""));
  list("--engine", options.engines, "Only these engines")->type_name("NAME,...");
  std::vector<std::string> families(data_words.begin(), data_words.end());
  std::string family_list;
  for (const std::string& word : families) family_list += (family_list.empty() ? "" : ", ") + word;
  families.emplace_back("all");
  list("--data", options.data, "Operands: " + family_list + " or all")
      ->type_name("FAMILY,...")
      ->check(CLI::IsMember(families));
  list("--threads", options.threads, "Threads of the emulated products; Eigen has one")
      ->type_name("N,...")
      ->check(CLI::Range(1, 1024));
  CLI::Option* const instruction = command.add_option(
      "--instruction", options.instruction, "Products by this instruction of the catalogue");
  CLI::Option* const arch =
      command.add_option("--arch", options.arch, "The machine of --instruction");
  instruction->needs(arch);
  arch->needs(instruction);
  command.add_option("--repetitions", options.repetitions, "Of each benchmark; the best counts")
      ->check(CLI::Range(1, 1000));
  command.add_option("--time", options.seconds, "Seconds that a repetition lasts at least")
      ->check(CLI::Range(0.0, 600.0));
  command.add_flag("--full", options.full,
                   "All sizes, data and thread counts: about twenty minutes");
  command.add_flag("--curves", options.curves,
                   "How time grows with M, N, K, threads, spread of exponents, specials and zeros");
  command.add_flag("--list", options.list, "Print the names of the benchmarks and measure nothing");
  command.add_option("--compare", options.compare, "Compare two files that --json printed")
      ->type_name("OLD NEW")
      ->expected(2);
  command.add_flag("--json", options.json, "Print JSON");
  command.footer(
      "Rates are the best of the repetitions, operands in memory and packing included. Every group\n"
      "of benchmarks runs with its yardsticks in random turns: Eigen on one thread, memcpy, a read.\n"
      "Eigen is compiled for the widest vectors (ratio) and with -march=native (to native, which\n"
      "goals are set for). \"of peak\" is to FP32 (or FP64) multiply-adds in registers, one thread.\n"
      "Example: guardbit bench --only hopper_f16,int8 --size 512,1024");
}

std::vector<std::string> given_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    if (option->get_items_expected_max() == 0) {
      words.push_back(name);
      continue;
    }
    for (const std::string& word : option->results())
      words.push_back(std::string(name).append("=").append(word));
  }
  return words;
}

}  // namespace guardbit::tools

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::run_shell;
using tests::TemporaryFolder;

/// What bash would offer at the end of that line, in the folder. `by_words` leaves the line out and
/// gives only its words, as they stand in COMP_WORDS.
std::vector<std::string> completions(const TemporaryFolder& folder, const std::string& line,
                                     bool by_words = false) {
  const std::string how = by_words ? "COMP_WORDS=($line); [[ $line == *' ' ]] && COMP_WORDS+=('')\n"
                                     "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                                   : "COMP_LINE=$line COMP_POINT=${#line}\n";
  const CommandResult result =
      run_shell(folder, "set -u; source <(guardbit completion bash); cd \"$folder\"; line='" +
                            line + "'\n" + how + "_guardbit; printf '%s\\n' \"${COMPREPLY[@]}\"");
  INFO(line);
  CHECK(result.error.empty());
  std::istringstream lines(result.out);
  std::vector<std::string> words;
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  return words;
}

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST_CASE("completion: commands, options and closed lists of values") {
  const TemporaryFolder folder;
  for (const bool by_words : {false, true}) {
    CHECK(completions(folder, "guardbit f", by_words) == Words{"formats", "function"});
    CHECK(has(completions(folder, "guardbit ", by_words), "verify"));
    CHECK(completions(folder, "guardbit show 1 --form", by_words) == Words{"--format"});
    CHECK(completions(folder, "guardbit show 1 -f e4", by_words) == Words{"e4m3", "e4m3fnuz"});
    CHECK(completions(folder, "guardbit cast x --rounding near", by_words) ==
          Words{"nearest_even", "nearest_away"});
    CHECK(has(completions(folder, "guardbit cast x --overflow py", by_words), "pytorch"));
    CHECK(completions(folder, "guardbit formats nv", by_words) == Words{"nvfp4"});
    CHECK(completions(folder, "guardbit list --basis m", by_words) == Words{"measured"});
    CHECK(completions(folder, "guardbit verify --engine ref", by_words) == Words{"reference"});
    CHECK(completions(folder, "guardbit completion ", by_words) == Words{"bash", "zsh", "fish"});
    // Below the first level, too.
    CHECK(completions(folder, "guardbit scaler re", by_words) == Words{"replay"});
    CHECK(completions(folder, "guardbit scaler replay x --pre", by_words) == Words{"--preset"});
    CHECK(completions(folder, "guardbit scaler replay x --preset py", by_words) ==
          Words{"pytorch"});
    CHECK(completions(folder, "guardbit recipe compare --layout r", by_words) == Words{"rows"});
    CHECK(completions(folder, "guardbit recipe compare --recipes mxfp8_e4m3", by_words).size() > 1);
    CHECK(completions(folder, "guardbit explain --activation gelu_t", by_words) ==
          Words{"gelu_tanh"});
    CHECK(has(completions(folder, "guardbit help ", by_words), "verify"));
    CHECK(completions(folder, "guardbit man expl", by_words) == Words{"explain"});
  }
  CHECK(completions(folder, "guardbit show 1 --format=e4") == Words{"e4m3", "e4m3fnuz"});
}

TEST_CASE("completion: block formats only where they are taken") {
  const TemporaryFolder folder;
  CHECK_FALSE(has(completions(folder, "guardbit show 1 --format "), "nvfp4"));
  for (const std::string place : {"formats", "cast x --to", "cast x --from"})
    CHECK(has(completions(folder, "guardbit " + place + " "), "nvfp4"));
}

TEST_CASE("completion: architectures and instructions") {
  const TemporaryFolder folder;
  const Words archs = completions(folder, "guardbit list --arch ");
  for (const emulator::Arch& arch : emulator::architectures())
    CHECK(has(archs, std::string(arch.name)));
  const Words run = completions(folder, "guardbit run ");
  for (const emulator::MatrixInstruction& instruction : emulator::catalogue()) {
    const std::string name{std::string_view(instruction.name)};
    INFO(name);
    CHECK(has(run, name));
  }
  CHECK(completions(folder, "guardbit run mma.sync.aligned.m16n8k16.row.col.f32.f16").size() == 1);
  // bash has already read the part up to the colons.
  const Words sparse = completions(folder, "guardbit run mma.sp::ordered_metadata.sync.al");
  REQUIRE_FALSE(sparse.empty());
  CHECK(sparse[0].starts_with("ordered_metadata.sync.aligned."));
  CHECK(completions(folder, "guardbit run mma.x --as") == Words{"--as-capture"});
}

TEST_CASE("completion: zsh and fish load what is printed for them, at every level", "[tool]") {
  const TemporaryFolder folder;
  const auto has_program = [&](const std::string& name) {
    return run_shell(folder, "command -v " + name).status == 0;
  };
  if (has_program("fish")) {
    const auto offered = [&](const std::string& line) {
      const CommandResult result = run_shell(
          folder,
          "HOME=$folder fish -c \"$command completion fish | source; complete -C '" + line + "'\"");
      INFO(line << ": " << result.error);
      CHECK(result.status == 0);
      return result.out;
    };
    CHECK(tests::holds(offered("guardbit sca"), "scaler\tDynamic loss scalers"));
    CHECK(tests::holds(offered("guardbit scaler re"), "replay\t"));
    CHECK(tests::holds(offered("guardbit scaler replay --pre"), "--preset\t"));
    CHECK(tests::holds(offered("guardbit scaler replay --preset py"), "pytorch"));
    CHECK_FALSE(tests::holds(offered("guardbit scaler replay --"), "--rounding"));
  } else {
    WARN("SKIPPED: fish is not installed");
  }
  if (has_program("zsh")) {
    // The functions of zsh's own completion are replaced by ones that print what they are given.
    const auto offered = [&](const std::string& words, const std::string& prefix) {
      const CommandResult result = run_shell(
          folder,
          "$command completion zsh >$folder/_guardbit; zsh -f -c 'compdef() { true }; "
          "_files() { echo FILES }; compadd() { echo $@ }; _describe() { echo ${(P)argv[-1]} }; "
          "source $0/_guardbit; words=(guardbit " +
              words + "); CURRENT=${#words}; PREFIX=" + prefix + "; _guardbit' $folder");
      INFO(words << ": " << result.error);
      CHECK(result.error.empty());
      CHECK(result.status == 0);
      return result.out;
    };
    CHECK(tests::holds(offered("s", "s"), "scaler:Dynamic loss scalers"));
    CHECK(tests::holds(offered("scaler r", "r"), "replay:"));
    CHECK(tests::holds(offered("scaler replay --p", "--p"), "--preset:"));
    CHECK(tests::holds(offered("scaler replay --preset p", "p"), "pytorch"));
    CHECK(tests::holds(offered("cast x", "x"), "FILES"));
  } else {
    WARN("SKIPPED: zsh is not installed");
  }
}

TEST_CASE("man: a page for every command, from its help") {
  const TemporaryFolder folder;
  REQUIRE(run_shell(folder, "guardbit man -o $folder/man").status == 0);
  const std::string names = run_shell(folder, "ls $folder/man").out;
  for (const char* const page : {"guardbit.1\n", "guardbit-cast.1\n", "guardbit-scaler-replay.1\n"})
    CHECK(tests::holds(names, page));
  const std::string page = tests::read_text(folder.path("man/guardbit-scaler-replay.1"));
  CHECK(page.starts_with(".TH GUARDBIT-SCALER-REPLAY 1"));
  CHECK(tests::holds(page, "\\-\\-growth\\-interval N"));
  CHECK(tests::holds(page, "guardbit\\-scaler(1)"));
  CHECK(tests::run_command({"man", "scaler", "replay"}).out == page);
  const CommandResult wrong = tests::run_command({"man", "scaler", "relpay"});
  CHECK(wrong.status == 2);
  CHECK(tests::holds(wrong.error, "did you mean replay"));
}

TEST_CASE("help: the help of any command") {
  CHECK(tests::run_command({"help", "scaler", "replay"}).out ==
        tests::run_command({"scaler", "replay", "--help"}).out);
  CHECK(tests::run_command({"help"}).out == tests::run_command({"--help"}).out);
  CHECK(tests::run_command({"help", "scalr"}).status == 2);
}

TEST_CASE("completion: files where files stand") {
  const TemporaryFolder folder;
  tests::write_text(folder.path("my file.npy"), "");
  for (const std::string line :
       {"verify my", "verify other.safetensors my", "cast my", "cast x -o my", "run i --a my",
        "run i --b-scale my", "run i -o my"}) {
    INFO(line);
    CHECK(completions(folder, "guardbit " + line) == Words{"my file.npy"});
  }
}

}  // namespace

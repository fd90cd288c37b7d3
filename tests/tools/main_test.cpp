#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/shell.hpp"
#include "tools/console/sign_of_life.hpp"

namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::run_shell;
using tests::TemporaryFolder;

const std::vector<std::string> commands = {"formats", "show",       "cast", "list", "run",
                                           "verify",  "completion", "man",  "help"};

TEST_CASE("every command explains itself with an example") {
  const CommandResult all = run_command({"--help"});
  CHECK(all.status == 0);
  CHECK(holds(all.out, "Example: guardbit "));
  for (const std::string& name : commands) {
    INFO(name);
    CHECK(holds(all.out, "\n  " + name + " "));
    const CommandResult help = run_command({name, "--help"});
    CHECK(help.status == 0);
    CHECK(help.error.empty());
    CHECK(holds(help.out, "Usage: guardbit " + name));
    CHECK(holds(help.out, "Example: "));
  }
  const CommandResult version = run_command({"--version"});
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("guardbit "));
}

TEST_CASE("A dash is standard input and standard output") {
  const TemporaryFolder folder;
  const CommandResult made = run_shell(
      folder,
      "cd $folder\n"
      "printf '[[0,1,1024,true,512],[1,1,512,false,512]]' >log.json\n"
      "guardbit scaler replay - <log.json >from_input && guardbit scaler replay log.json >from_file\n"
      "cmp from_input from_file || exit 3\n"
      "x=" +
          tests::in_source("tests/golden/traces/digits_mlp_grad_out.npz") +
          "\n"
          "guardbit cast - --to fp16 -o - <$x 2>said | guardbit cast - --to fp32 -o back.safetensors >/dev/null || exit 4\n"
          "guardbit cast $x --to fp16 -o half.safetensors >said_of_file\n"
          "cmp said said_of_file || exit 5\n"
          "guardbit cast half.safetensors --to fp32 -o other.safetensors >/dev/null\n"
          "cmp back.safetensors other.safetensors || exit 6\n"
          "guardbit trace - --formats fp16 --scales 0 <half.safetensors >/dev/null || exit 7\n"
          "guardbit recipe compare - --recipes fp16 <$x >/dev/null || exit 8\n");
  INFO(made.out << made.error);
  CHECK(made.status == 0);
}

TEST_CASE("a command line that says nothing known gives one line with what comes near") {
  struct Case {
    std::vector<std::string> words;
    std::string part;
  };
  for (const Case& c : std::vector<Case>{
           {{}, "valid: formats, show"},
           {{""}, "valid: formats, show"},
           {{"shwo", "1"}, "did you mean show?"},
           {{"--versio"}, "did you mean --version?"},
           {{"-x"}, "unknown option '-x'"},
           {{"formats", "--jsn"}, "did you mean --json? (see 'guardbit formats --help')"},
           {{"show", "--jsn"}, "did you mean --json?"},
           {{"show", "1", "--formt=fp16"}, "did you mean --format?"},
           {{"show", "-info"}, "unknown option '-info'"},
           {{"show"}, "VALUE is required"},
           {{"show", "1", "--format"}, "--format"},
           {{"show", "1", "--format", ""}, "--format"},
           {{"cast", "a.npy", "b.npy", "--to", "fp16", "-o", "c.npy"}, "'b.npy'"},
           {{"cast", "a.npy", "--to", "fp16", "-o", ""}, "--output"},
           {{"show", std::string(100000, 'x')}, "more than 20000 characters"},
           {{"show", std::string(10000, 'x')}, "is not a number"},
           {{std::string(100000, 'x')}, "unknown command"},
           {{"show", "1\n2"}, "is not a number"},
           {{"probe", "--exec", "x", "--m", "--json"}, "--m: '--json' is not a number"},
           {{"probe", "--exec", "x", "--m", "0"}, "--m: '0' is out of range (valid: 1 to 1024)"},
           {{"list", "--basis", "guesed"}, "--basis: unknown word 'guesed'"},
           {{"list", "--basis", "inferrd"}, "did you mean inferred? (valid: measured, documented"},
           {{"list", "--json=x"}, "--json: takes no value of its own"},
           {{"compare", "a", "b", "--alpha"}, "--alpha: needs FLOAT"},
           {{"compare", "a", "b", "--y", "cubic"}, "(valid: lin, log)"}}) {
    const CommandResult result = run_command(c.words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.size() < 5000);
    CHECK(holds(result.error, c.part));
  }
}

TEST_CASE("a standard output that takes nothing gives one line and status 2") {
  const TemporaryFolder folder;
  for (const std::string words : {"formats", "show 1", "list", "completion bash", "--help"}) {
    for (const std::string target : {"> /dev/full", ">&-"}) {
      const CommandResult result = run_shell(folder, "guardbit " + words + " " + target);
      INFO(words << target << result.error);
      CHECK(result.status == 2);
      CHECK(is_one_error_line(result.error));
    }
  }
  CHECK(run_shell(folder, "guardbit show 1 2>&- <&-").status == 0);
  CHECK(run_shell(folder, "guardbit show 0x 2>&- >&-").status == 2);
}

TEST_CASE("Signs of life name the command, then its work, and how long it has taken") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int standard_error = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  {
    const tools::SignOfLife sign("probe", std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    tools::set_present_work("asking", false);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }
  tools::set_present_work("", false);
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  close(ends[1]);
  std::string text(4096, '\0');
  text.resize(
      static_cast<std::size_t>(std::max<ssize_t>(read(ends[0], text.data(), text.size()), 0)));
  close(ends[0]);
  INFO(text);
  CHECK(text.starts_with("guardbit: probe: at work, 0 s\n"));
  CHECK(text.ends_with("guardbit: asking, 0 s\n"));
}

TEST_CASE("A command that takes long gives signs of life where there is no terminal", "[sweep]") {
  const TemporaryFolder folder;
  // The program to probe answers after ten seconds, with nothing that could be used.
  const CommandResult result =
      run_shell(folder,
                "cd $folder\n"
                "printf '#!/bin/sh\\nsleep 10\\n' >slow.sh; chmod +x slow.sh\n"
                "guardbit probe --exec ./slow.sh --a fp16 --d fp32 --k 4 >/dev/null\n");
  INFO(result.error);
  CHECK(result.status == 2);
  CHECK(result.error.starts_with("guardbit: "));
  CHECK(holds(result.error, ", 9 s\n"));
}

}  // namespace

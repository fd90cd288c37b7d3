#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;

/// The command must say what is wrong with the file, and neither read it nor crash.
void check_refused(const std::vector<std::string>& words, const std::string& why) {
  const CommandResult result = run_command(words);
  std::string command;
  for (const std::string& word : words) command.append(" ").append(word);
  INFO(command << ": " << result.error);
  CHECK(result.status == 2);
  CHECK(is_one_error_line(result.error));
  CHECK(tests::holds(result.error, why));
}

TEST_CASE("JSON that nests deep is refused by whoever reads it") {
  const TemporaryFolder folder;
  constexpr std::size_t levels = 200'000;  // each takes at least 64 bytes of a stack of 8 MiB
  const std::string nested = std::string(levels, '[') + std::string(levels, ']');
  const std::string file = folder.path("nested.json");
  tests::write_text(file, nested);
  check_refused({"scaler", "replay", file}, "nests deeper");
  check_refused({"bench", "--compare", file, file}, "nests deeper");
  check_refused({"trace", "merge", file, file}, "nests deeper");
  check_refused({"experiment", "list", "--markdown", "--results", file}, "nests deeper");
  check_refused({"experiment", "run", "--record", file}, "nests deeper");
  tests::write_text(file, "\n" + nested + "\n[1]\n");  // as lines of JSON
  check_refused({"scaler", "replay", file}, "nests deeper");
  const std::string head_of_results = R"({"kind":"results","command":"trace","part":1,"parts":1,)";
  tests::write_text(file,
                    head_of_results + R"("question":)" + nested + R"(,"pieces":["a"]})" + "\n");
  check_refused({"trace", "merge", file, file}, "nests deeper");
  tests::write_text(file, head_of_results + R"("question":0,"pieces":["a"]})" + "\n" +
                              R"({"piece":0,"rank":0,"result":)" + nested + "}\n");
  check_refused({"trace", "merge", file}, "nests deeper");

  const std::string tensors = folder.path("step1.npy");
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
  head.insert(0, {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(head.size()), 0});
  tests::write_text(tensors, head + std::string(4, '\0'));
  CHECK(run_command({"trace", tensors}).status == 0);
  tests::write_text(tensors + ".json", "{\"step\": " + nested + "}");
  check_refused({"trace", tensors}, "nests deeper");
}

TEST_CASE("a folder or nonsense in the place of a file gives a line without a library's words",
          "[long]") {
  const TemporaryFolder folder;
  const std::string nonsense = folder.path("nonsense.json"), inner = folder.path("inner");
  tests::write_text(nonsense, "{\"a\": }");
  std::filesystem::create_directory(inner);
  for (const std::string& place : {inner, nonsense})
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"verify", place},
             {"scaler", "replay", place + (place == nonsense ? "" : "/../")},
             {"trace", "merge", place},
             {"bench", "--compare", place, place},
             {"experiment", "run", "--record", place},
             {"experiment", "list", "--markdown", "--results", place},
             {"run", "x", "--spec", place, "--arch", "y"},
             {"train", place},
             {"compare", place, place}}) {
      const CommandResult result = run_command(words);
      INFO(words[0] << ' ' << words[1] << ": " << result.error);
      CHECK(result.status == 2);
      CHECK(is_one_error_line(result.error));
      for (const char* const theirs : {"[json.exception", "basic_", "std::", "what()"})
        CHECK_FALSE(tests::holds(result.error, theirs));
    }
  tests::write_text(folder.path("step1.npy"), "\x93NUMPY");
  check_refused({"verify", folder.path("step1.npy")}, "this is a .npy file");
}

TEST_CASE("what is no JSON and no TOML is said without the parser's names of its parts") {
  const TemporaryFolder folder;
  const std::string header = "{\"a\":]}";
  tests::write_text(folder.path("x.safetensors"),
                    std::string{static_cast<char>(header.size())} + std::string(7, '\0') + header);
  tests::write_text(folder.path("x.json"), "[[0,1,}");
  tests::write_text(folder.path("x.toml"), "[data]\nkind = [1,\n");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"trace", folder.path("x.safetensors")},
                                             {"scaler", "replay", folder.path("x.json")},
                                             {"trace", "merge", folder.path("x.json")},
                                             {"train", folder.path("x.toml")}}) {
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK_FALSE(tests::holds(result.error, "while parsing"));
    CHECK((tests::holds(result.error, "unexpected '") || tests::holds(result.error, "array: ")));
  }
}

TEST_CASE("names too long to be a file's are refused in our words") {
  const std::string name(5000, 'a');
  check_refused({"plan", "--call", "mm", "--m", "4", "--n", "4", "--k", "4", "--dtype", "fp16",
                 "--book", name},
                "...: cannot be read: File name too long");
  check_refused({"function", "expf", "-o", "out.npy", name},
                "is no number, and no such file is there");
}

TEST_CASE("a tensor that is named where a whole file is read is said to be one") {
  const std::string file = tests::in_source("tests/golden/traces/digits_mlp_grad_out.npz");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"trace", file + ":x"}, {"cast", file + ":x", "--to", "fp16", "-o", "y.npz"}})
    check_refused(words, "digits_mlp_grad_out.npz is one, of which no tensor can be named here)");
  check_refused({"trace", "nowhere.npz:x"}, "cannot be read: No such file or directory\n");
}

TEST_CASE("a recorded call that is no JSON is refused without its parser's words") {
  const TemporaryFolder folder;
  std::string file = tests::read_text(tests::in_source("tests/golden/atlas/unknown.safetensors"));
  // Of the same length: the header's stands before it.
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = file.find(from);
    REQUIRE(at != std::string::npos);
    REQUIRE(from.size() == to.size());
    file.replace(at, from.size(), to);
  };
  replace(R"(\"op\": \")", R"(\"op\": (()");
  tests::write_text(folder.path("x.safetensors"), file);
  check_refused({"verify", folder.path("x.safetensors"), "--predict"},
                "call in its metadata cannot be read: ");
  CHECK_FALSE(tests::holds(run_command({"verify", folder.path("x.safetensors"), "--predict"}).error,
                           "json.exception"));
}

/// Files on which fuzzing once found something, all of which are to be refused.
void check_regressions(const std::string& target, const std::vector<std::string>& command) {
  const std::filesystem::path folder(tests::in_source("tests/fuzz/regressions/") + target);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::vector<std::string> words = command;
    words.push_back(entry.path().string());
    check_refused(words, entry.path().filename().string());
    ++files;
  }
  CHECK(files > 0);
}

TEST_CASE("Inputs that fuzzing found are refused") { check_regressions("train_config", {"train"}); }

}  // namespace

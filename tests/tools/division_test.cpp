#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/command.hpp"

// Parts of work on many files, and what puts them together.
namespace guardbit::tests {
namespace {

const std::string divided_recordings = "tests/golden/";

using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words five_traces() {
  const std::string trace = divided_recordings + "traces/";
  return {trace + "digits_mlp_grad_out.npz", trace + "torch_mixed.pt", trace + "torch_protocol4.pt",
          trace + "transformer_fp16.safetensors", trace + "datasets.h5"};
}

Words captures_of(const std::string& folder, const Words& names) {
  Words files;
  for (const std::string& name : names) files.push_back(divided_recordings + folder + "/" + name);
  return files;
}

/// The files of three parts, last part first.
Words parts_of(const TemporaryFolder& folder, const Words& command) {
  Words files;
  for (const std::string number : {"3", "1", "2"}) {
    const std::string file = folder.path("part" + number);
    const CommandResult part =
        run_command(joined(command, {"--part", number + "/3", "--results", file}));
    INFO(part.error);
    CHECK(part.status == 0);
    files.push_back(file);
  }
  return files;
}

}  // namespace

TEST_CASE("Parts of a trace are put together to the bytes of one process", "[long][division]") {
  const TemporaryFolder folder;
  for (const Words& how : {Words{}, Words{"--formats", "fp16,mxfp8_e4m3"}, Words{"--histogram"},
                           Words{"--keep-going", divided_recordings + "traces/torch_legacy.pt"}}) {
    const TemporaryFolder parts;
    const Words command = joined(joined({"trace"}, five_traces()), how);
    const Words files = parts_of(parts, command);
    for (const Words& as : {Words{}, Words{"--json"}}) {
      const CommandResult one = run_command(joined(command, as));
      const CommandResult merged = run_command(joined(joined({"trace", "merge"}, files), as));
      CHECK(one.status == 0);
      CHECK(merged.status == 0);
      CHECK(merged.out == one.out);
    }
  }
}

TEST_CASE("Parts of a replay are put together to the bytes of one process", "[long][division]") {
  const TemporaryFolder folder;
  const Words files = captures_of(
      "operators", {"pointwise.safetensors", "layers.safetensors", "batch_norms.safetensors"});
  const Words command = joined({"replay"}, files);
  const Words parts = parts_of(folder, command);
  for (const Words& as : {Words{}, Words{"--json"}}) {
    const CommandResult one = run_command(joined(command, as));
    const CommandResult merged = run_command(joined(joined({"replay", "merge"}, parts), as));
    CHECK(merged.status == one.status);
    CHECK(merged.out == one.out);
    CHECK_FALSE(one.out.empty());
  }
  const CommandResult page =
      run_command(joined(joined({"replay", "merge"}, parts), {"--report", folder.path("page")}));
  CHECK(page.status == 0);
  run_command(joined(command, {"--report", folder.path("one")}));
  CHECK(read_text(folder.path("page")) == read_text(folder.path("one")));
}

TEST_CASE("Damaged results of a replay are refused in one line", "[division]") {
  const TemporaryFolder folder;
  const std::string kept = folder.path("kept"), damaged = folder.path("damaged");
  const Words files = captures_of("operators", {"pointwise.safetensors"});
  REQUIRE(run_command(joined(joined({"replay"}, files), {"--results", kept})).status == 0);
  const std::string whole = read_text(kept);
  const std::pair<std::string, std::string> damages[] = {
      {"\"status\":\"exact\"", "\"status\":\"good\""},
      {"\"ops\":[", "\"ops\":[\"another\","},
      {"\"piece\":0", "\"piece\":1e30"},
      {"\"piece\":0", "\"piece\":1"},
      {"\"part\":1", "\"part\":5"},
      {"\"calls\":[{", "\"calls\":[7,{"}};
  for (const auto& [from, to] : damages) {
    CAPTURE(to);
    std::string text = whole;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write_text(damaged, text.replace(at, from.size(), to));
    const CommandResult result = run_command({"replay", "merge", damaged});
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
  }
}

TEST_CASE("Kept results of another shape are refused in one line", "[division]") {
  const TemporaryFolder folder;
  const std::string kept = folder.path("kept"), damaged = folder.path("damaged");
  for (const Words& command :
       {joined({"trace"}, five_traces()),
        joined({"explain"}, captures_of("gemm", {"mm_fp32_33x17x100.safetensors"})),
        Words{"experiment", "run", "E01", "E02", "--quick"}}) {
    CAPTURE(command[0]);
    std::filesystem::remove(kept);
    REQUIRE(run_command(joined(command, {"--results", kept})).status == 0);
    std::string text = read_text(kept);
    const std::size_t at = text.find("\"result\":{");
    REQUIRE(at != std::string::npos);
    text.insert(text.find('\n', at), "}");
    text.insert(at + 9, "{\"x\":");
    write_text(damaged, text);
    const CommandResult result = run_command({command[0], "merge", damaged});
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK_THAT(result.error, contains_text("not what guardbit writes"));
  }
}

TEST_CASE("A binade that is no number is refused in one line", "[division]") {
  const TemporaryFolder folder;
  const std::string kept = folder.path("kept");
  REQUIRE(run_command(joined({"trace"}, joined(five_traces(), {"--results", kept}))).status == 0);
  std::string text = read_text(kept);
  const std::size_t at = text.find("\"-", text.find("\"binades\":{"));
  REQUIRE(at != std::string::npos);
  text[at + 1] = ')';
  write_text(kept, text);
  const CommandResult result = run_command({"trace", "merge", kept});
  CHECK(result.status == 2);
  CHECK(is_one_error_line(result.error));
  CHECK_THAT(result.error, contains_text("binade: ')"));
}

TEST_CASE("Parts of explanations are put together, with those that cannot be read", "[division]") {
  const TemporaryFolder folder;
  write_text(folder.path("bad.safetensors"), "nonsense");
  const Words files = joined(captures_of("gemm", {"mm_fp32_33x17x100.safetensors"}),
                             {folder.path("bad.safetensors")});
  const Words command = joined({"explain"}, files);
  const Words parts = parts_of(folder, command);
  const CommandResult one = run_command(joined(command, {"--json"}));
  const CommandResult merged = run_command(joined(joined({"explain", "merge"}, parts), {"--json"}));
  CHECK(one.status == 2);
  CHECK(merged.status == 2);
  CHECK(merged.out == one.out);
  CHECK(merged.error == one.error);
  CHECK(is_one_error_line(one.error));
}

TEST_CASE("Results are kept, torn lines are done again, other work is refused",
          "[long][division]") {
  const TemporaryFolder folder;
  const std::string kept = folder.path("kept");
  const Words command = joined({"trace"}, five_traces());
  const Words keeping = joined(command, {"--results", kept, "--json"});
  const CommandResult one = run_command(joined(command, {"--json"}));
  CHECK(run_command(keeping).out == one.out);
  const std::string whole = read_text(kept);
  const auto lines = std::count(whole.begin(), whole.end(), '\n');
  CHECK(lines == 6);
  // As a process leaves it that was killed while it wrote the third result.
  std::size_t third = 0;
  for (int line = 0; line < 3; ++line) third = whole.find('\n', third) + 1;
  write_text(kept, whole.substr(0, third + 40));
  const CommandResult missing = run_command({"trace", "merge", kept});
  CHECK(missing.status == 2);
  CHECK(is_one_error_line(missing.error));
  CHECK_THAT(missing.error, contains_text("3 of 5 results missing"));
  CHECK(run_command(keeping).out == one.out);
  CHECK(read_text(kept) == whole);
  // Results that are there are not computed again.
  std::string changed = whole;
  changed.replace(changed.find("\"zeros\":"), 8, "\"zeros\":9");
  write_text(kept, changed);
  CHECK(run_command(keeping).out != one.out);

  for (const Words& other : {Words{"--scales", "0:8:8"}, Words{"--part", "1/2"}}) {
    const CommandResult refused = run_command(joined(joined(command, {"--results", kept}), other));
    CHECK(refused.status == 2);
    CHECK(is_one_error_line(refused.error));
  }
  write_text(folder.path("right"), whole);
  const CommandResult differs = run_command({"trace", "merge", kept, folder.path("right")});
  CHECK(differs.status == 2);
  CHECK_THAT(differs.error, contains_text("differs from that of"));
  CHECK(run_command({"replay", "merge", kept}).status == 2);
  CHECK(run_command(joined(command, {"--part", "1/2"})).status == 2);
  CHECK(run_command(joined(command, {"--part", "3/2", "--results", kept})).status == 2);
  CHECK(run_command({"trace", "merge", "--part", "1/2", kept}).status == 2);
}

TEST_CASE("Every part has its share of the files, and a part may have none", "[division]") {
  const TemporaryFolder folder;
  const Words command = joined({"trace"}, five_traces());
  Words files;
  std::size_t results = 0;
  for (int part = 1; part <= 7; ++part) {
    files.push_back(folder.path(std::to_string(part)));
    const CommandResult result = run_command(
        joined(command, {"--part", std::to_string(part) + "/7", "--results", folder.path("%p")}));
    CHECK(result.status == 0);
    const std::string text = read_text(files.back());
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    CHECK(lines - 1 <= 1);
    results += lines - 1;
  }
  CHECK(results == five_traces().size());
  CHECK(run_command(joined(joined({"trace", "merge"}, files), {"--json"})).out ==
        run_command(joined(command, {"--json"})).out);
}

TEST_CASE("Parts of experiments are put together", "[division]") {
  const TemporaryFolder folder;
  const Words command = {"experiment", "run", "E02", "E01", "E13", "--quick"};
  const Words parts = parts_of(folder, command);
  const CommandResult merged =
      run_command(joined(joined({"experiment", "merge"}, parts), {"--json"}));
  const CommandResult one = run_command(joined(command, {"--json"}));
  REQUIRE(merged.status == 0);
  auto a = nlohmann::json::parse(merged.out), b = nlohmann::json::parse(one.out);
  for (auto* const all : {&a, &b})
    for (auto& result : (*all)["experiments"]) CHECK(result.erase("seconds") == 1);
  CHECK(a == b);
  CHECK(a["experiments"].size() == 3);
}

}  // namespace guardbit::tests

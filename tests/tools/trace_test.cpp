#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;

const std::string golden = tests::in_source("tests/golden/traces/digits_mlp_grad_out.npz");

json trace(std::vector<std::string> words) {
  words.insert(words.begin(), "trace");
  words.emplace_back("--json");
  return tests::json_of(words);
}

void write_tensors(const std::string& path, const std::string& name,
                   const std::vector<float>& values) {
  formats::write_tensors(path, {}, std::vector{tests::tensor_of(name, values)});
}

/// Of all tensors of a step, in hundredths of a percent of the numbers other than zero.
long hundredths(const json& document, int step, const std::string& format,
                const std::string& scale) {
  std::uint64_t lost = 0;
  std::uint64_t nonzero = 0;
  for (const json& tensor : document["tensors"]) {
    if (tensor["step"] != step) continue;
    nonzero += tensor["elements"].get<std::uint64_t>() - tensor["zeros"].get<std::uint64_t>();
    lost += tensor["formats"][format]["underflow"][scale].get<std::uint64_t>();
  }
  return std::lround(10000.0 * static_cast<double>(lost) / static_cast<double>(nonzero));
}

TEST_CASE("trace: underflow of a recorded run, as NumPy counted it") {
  const json document = trace({golden, "--scales", "0:24:8", "--formats", "fp16,bf16"});
  CHECK(document["tensors"].size() == 16);
  const auto row = [&](int step) {
    std::vector<long> values;
    for (const char* scale : {"0", "8", "16", "24"})
      values.push_back(hundredths(document, step, "fp16", scale));
    values.push_back(hundredths(document, step, "bf16", "0"));
    return values;
  };
  CHECK(row(200) == std::vector<long>{3756, 1164, 149, 3, 0});
  CHECK(row(599) == std::vector<long>{8773, 6466, 2759, 520, 0});
  CHECK(document["roles"].contains("grad_out"));
  CHECK(document["total"]["elements"] == 119104);
}

TEST_CASE("trace: a vector counted by hand") {
  const TemporaryFolder folder;
  const std::string file = folder.path("x.safetensors");
  const float inf = std::numeric_limits<float>::infinity();
  write_tensors(file, "step3.x.grad",
                {0.0F, -0.0F, 0x1p-25F, std::nextafter(-0x1p-25F, -1.0F), 0x1p-29F, 65519.0F,
                 65520.0F, -464.0F, 465.0F, 0x1p-140F, inf, std::nanf("")});
  const json tensor = trace({file, "--scales", "0:4:4"})["tensors"][0];
  CHECK(tensor["name"] == "step3.x.grad");
  CHECK(tensor["elements"] == 12);
  CHECK(tensor["zeros"] == 2);
  CHECK(tensor["subnormals"] == 1);
  CHECK(tensor["infs"] == 1);
  CHECK(tensor["nans"] == 1);
  CHECK(tensor["amax"] == 65520.0);
  CHECK(tensor["amin_nonzero"] == 0x1p-140);
  CHECK(tensor["step"] == 3);
  CHECK(tensor["role"] == "wgrad");
  CHECK(tensor["first_nonfinite"] == 10);
  const json& all = tensor["formats"];
  CHECK(all["fp16"]["underflow"] == json{{"0", 3}, {"4", 2}});
  CHECK(all["fp16"]["overflow"] == json{{"0", 1}, {"4", 2}});
  CHECK(all["bf16"]["underflow"] == json{{"0", 1}, {"4", 1}});
  CHECK(all["bf16"]["overflow"] == json{{"0", 0}, {"4", 0}});
  CHECK(all["e4m3"]["underflow"] == json{{"0", 4}, {"4", 4}});
  CHECK(all["e4m3"]["overflow"] == json{{"0", 3}, {"4", 4}});
  CHECK(all["e5m2"]["overflow"] == json{{"0", 2}, {"4", 2}});
  for (const char* policy : {"nvidia", "saturate", "ieee"})
    CHECK(trace({file, "--scales", "0:4:4", "--policy", policy})["tensors"][0] == tensor);
}

TEST_CASE("trace: a histogram counts the same numbers without formats") {
  const json full = trace({golden});
  const json brief = trace({golden, "--histogram"});
  REQUIRE(brief["tensors"].size() == full["tensors"].size());
  for (std::size_t i = 0; i < full["tensors"].size(); ++i) {
    for (const char* key : {"name", "elements", "zeros", "subnormals", "infs", "nans", "amax",
                            "amin_nonzero", "binades", "percentiles_log2"})
      CHECK(brief["tensors"][i][key] == full["tensors"][i][key]);
    CHECK_FALSE(brief["tensors"][i].contains("sum_abs"));
    CHECK_FALSE(brief["tensors"][i].contains("formats"));
  }
  CHECK(run_command({"trace", golden, "--histogram"}).out.find("safe") == std::string::npos);
  CHECK(run_command({"trace", golden, "--histogram", "--csv"}).status == 2);
  const TemporaryFolder folder;
  tests::write_text(folder.path("part.json"), brief.dump());
  CHECK(trace({"merge", folder.path("part.json")})["total"] == brief["total"]);
}

TEST_CASE("trace: all-NaN, empty and integer tensors are counted or named") {
  const TemporaryFolder folder;
  write_tensors(folder.path("a.npy"), "a", {std::nanf(""), std::nanf("")});
  write_tensors(folder.path("b.npy"), "b", {});
  const std::vector<std::uint64_t> codes = {1, 2};
  const std::vector integers = {
      formats::tensor_of_codes("c", formats::int32, formats::Packing::container, {2}, codes)};
  formats::write_tensors(folder.path("c.npy"), {}, integers);
  const json document = trace({folder.path(".")});
  REQUIRE(document["tensors"].size() == 2);
  CHECK(document["tensors"][0]["nans"] == 2);
  CHECK(document["tensors"][0]["amax"].is_null());
  CHECK(document["tensors"][1]["elements"] == 0);
  CHECK(document["skipped"].size() == 1);
  CHECK(trace({folder.path("[ab].npy")})["tensors"].size() == 2);
  CHECK(run_command({"trace", folder.path("b.npy")}).status == 0);
}

TEST_CASE("trace: steps and ranks, sums by each, and a recommendation in words") {
  const TemporaryFolder folder;
  std::vector<formats::Tensor> tensors;
  for (const int step : {100, 200})
    for (const int rank : {0, 1})
      for (const char* const name : {"fc1", "fc2"}) {
        std::vector<float> values(64);
        for (std::size_t i = 0; i < 64; ++i)
          values[i] =
              std::ldexp(1.0F + static_cast<float>(i) / 64, name == std::string("fc1") ? -10 : -40);
        if (step == 200 && rank == 1 && name == std::string("fc2")) values[9] = INFINITY;
        tensors.push_back(tests::tensor_of("step" + std::to_string(step) + "/rank_" +
                                               std::to_string(rank) + "/" + name + ".weight.grad",
                                           values));
      }
  const std::string file = folder.path("t.safetensors");
  formats::write_tensors(file, {{"loss_scale", "65536"}}, tensors);
  const CommandResult text = run_command({"trace", file, "--formats", "fp16,mxfp8_e4m3"});
  for (const char* const part :
       {"  step  rank  elements", "by step  tensors", "by rank  tensors", "by tensor",
        "first infinity: step 200, rank 1, step200/rank_1/fc2.weight.grad, index 9",
        "left out of these: step 200, rank 1,", "recommendation", "Use fp16 with the scale 2^16",
        "The recorded loss scale, 2^16,", "1 tensor holds infinities or NaNs"}) {
    INFO(part << "\n" << text.out);
    CHECK(tests::holds(text.out, part));
  }
  // The finite tensors have an SQNR.
  CHECK(tests::holds(text.out, "keeps most: SQNR"));
  const json advice = trace({file, "--formats", "fp16"})["recommendation"];
  CHECK(advice["format"] == "fp16");
  CHECK(advice["scale_log2"] == 16);
  CHECK(advice["safe"] == true);
  REQUIRE(run_command({"trace", file, "--report", folder.path("t.html")}).status == 0);
  const std::string page = tests::read_text(folder.path("t.html"));
  CHECK(tests::holds(page, "<th>tensor</th><th>step</th><th>rank</th>"));
  CHECK(tests::holds(page, "Recommendation"));
}

TEST_CASE("trace: tensors of one name in several files are told apart") {
  const TemporaryFolder folder;
  const auto file_of = [&](const std::string& name) {
    const std::string file = folder.path(name);
    const std::vector<formats::Tensor> tensors = {tests::tensor_of("w", {1.0F, 0.5F})};
    formats::write_tensors(file, {}, tensors);
    return file;
  };
  const std::string one = file_of("g_step3_rank1.safetensors"),
                    two = file_of("g_step4_rank1.safetensors");
  const CommandResult steps = run_command({"trace", one, two});
  INFO(steps.out);
  CHECK(tests::holds(steps.out, "tensor  step  rank  elements"));
  CHECK(tests::holds(steps.out, "w          3     1         2"));
  const std::string first = file_of("first.safetensors"), second = file_of("second.safetensors");
  const CommandResult files = run_command({"trace", first, second});
  INFO(files.out);
  CHECK(tests::holds(files.out, first));
  CHECK(tests::holds(files.out, second));
  CHECK(!tests::holds(run_command({"trace", first}).out, first));
}

TEST_CASE("trace: the report's underflow by step is that of all ranks together") {
  const TemporaryFolder folder;
  std::vector<formats::Tensor> tensors;
  for (const char* const step : {"step1/", "step2/"})
    for (const int rank : {0, 1})
      tensors.push_back(
          tests::tensor_of(step + std::string("rank_") + std::to_string(rank) + "/fc.weight.grad",
                           std::vector<float>(64, rank == 0 ? 0x1p-40F : 1.0F)));
  const std::string file = folder.path("t.safetensors"), page = folder.path("t.html");
  formats::write_tensors(file, {}, tensors);
  REQUIRE(
      run_command({"trace", file, "--formats", "fp16", "--scales", "0", "--report", page}).status ==
      0);
  const std::string html = tests::read_text(page);
  const std::size_t table = html.find("Underflow by tensor and step");
  REQUIRE(table != std::string::npos);
  const std::string cells = html.substr(table, html.find("</table>", table) - table);
  CHECK(tests::holds(cells, ">50.00%"));
  CHECK_FALSE(tests::holds(cells, ">100.00%"));
  CHECK_FALSE(tests::holds(cells, ">0.00%"));
}

TEST_CASE("trace: a file of integers alone is no trace") {
  const TemporaryFolder folder;
  const std::vector<std::uint64_t> codes = {1, 2};
  formats::write_tensors(folder.path("i.npy"), {},
                         std::vector{formats::tensor_of_codes(
                             "i", formats::int32, formats::Packing::container, {2}, codes)});
  const CommandResult result = run_command({"trace", folder.path("i.npy")});
  CHECK(result.status == 2);
  CHECK(tests::holds(result.error, "int32 is not a floating-point format"));
}

TEST_CASE("trace: bad input is one line, or a stated skip") {
  const TemporaryFolder folder;
  write_tensors(folder.path("x.npy"), "x", {1.0F});
  tests::write_text(folder.path("bad.npy"), "\x93NUMPY");
  const std::vector<std::vector<std::string>> refused = {
      {folder.path("bad.npy")},
      {folder.path("missing.npy")},
      {folder.path("none*.npy")},
      {folder.path("x.npy"), "--scales", "4:0"},
      {folder.path("x.npy"), "--scales", "0:8:0"},
      {folder.path("x.npy"), "--scales", "one"},
      {folder.path("x.npy"), "--scales", "0:99999"},
      {folder.path("x.npy"), "--formats", "fp61"},
      {folder.path("x.npy"), "--formats", "int8"},
      {folder.path("x.npy"), "--formats", "e2m1"},  // PyTorch has no such cast
      {folder.path("x.npy"), "--policy", "torch"},
      {folder.path("x.npy"), "--json", "--csv"},
  };
  for (std::vector<std::string> words : refused) {
    words.insert(words.begin(), "trace");
    const CommandResult result = run_command(words);
    CAPTURE(words, result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
  }
  const json kept = trace({folder.path("bad.npy"), folder.path("x.npy"), "--keep-going"});
  CHECK(kept["tensors"].size() == 1);
  CHECK(kept["skipped"].size() == 1);
}

TEST_CASE("trace: CSV has a row per tensor, format and scale") {
  const CommandResult result =
      run_command({"trace", golden, "--csv", "--scales", "0,8", "--formats", "fp16"});
  CHECK(result.status == 0);
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1 + 16 * 2);
}

TEST_CASE("trace: parts merge to what the whole says, in any order") {
  const TemporaryFolder folder;
  const std::vector<float> values = {0x1p-30F, -3.0F, 0.0F, 1e5F, 0x1p-149F, 0x1.8p-27F};
  write_tensors(folder.path("whole.safetensors"), "s1.x.grad", values);
  write_tensors(folder.path("a.safetensors"), "s1.x.grad", {values.begin(), values.begin() + 2});
  write_tensors(folder.path("b.safetensors"), "s1.x.grad", {values.begin() + 2, values.end()});
  for (const char* name : {"whole", "a", "b"})
    tests::write_text(
        folder.path(std::string(name) + ".json"),
        trace({folder.path(std::string(name) + ".safetensors"), "--scales", "0:8:4"}).dump());
  json whole = trace({"merge", folder.path("whole.json")});
  json forward = trace({"merge", folder.path("a.json"), folder.path("b.json")});
  const json backward = trace({"merge", folder.path("b.json"), folder.path("a.json")});
  CHECK(forward == backward);
  for (json* document : {&whole, &forward}) {
    (*document)["tensors"][0].erase("file");
    (*document)["tensors"][0].erase("shape");
  }
  CHECK(forward == whole);

  tests::write_text(folder.path("other.json"),
                    trace({folder.path("a.safetensors"), "--scales", "0"}).dump());
  tests::write_text(folder.path("broken.json"), "{\"trace\":1}");
  for (const char* name : {"other.json", "broken.json", "missing.json"}) {
    const CommandResult result =
        run_command({"trace", "merge", folder.path("a.json"), folder.path(name)});
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
  }
  CHECK(run_command({"trace", "merge"}).status == 2);
  CHECK(run_command({"trace", "merge", folder.path("a.json"), folder.path("a.json")}).status == 2);
}

TEST_CASE("trace: updates beside their weights, and roles from step to step") {
  const TemporaryFolder folder;
  const auto vector = [](const std::string& name, const std::vector<float>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return formats::owning_tensor(name, formats::fp32, formats::Packing::container,
                                  {static_cast<std::int64_t>(values.size())}, std::move(bytes));
  };
  const std::vector tensors = {
      vector("step1.fc1.weight", {3.0F, -4.0F, 0.0F, 1.0F}),
      vector("step1.fc1.weight.update", {0x1p-11F, 0.0F, 0x1p-30F, 0x1p-11F}),
      vector("step1.fc2.weight", {1.0F}), vector("step2.fc1.weight", {6.0F, 8.0F, 0.0F, 0.0F}),
      vector("step2.fc1.weight.update", {0.0F, 1.0F, 0.0F, 0.0F})};
  formats::write_tensors(folder.path("x.safetensors"), {}, tensors);
  const std::vector<std::string> words = {folder.path("x.safetensors"), "--formats", "fp16,bf16",
                                          "--scales", "0"};
  const json document = trace(words);
  REQUIRE(document["updates"].size() == 2);
  const json& first = document["updates"][0];
  CHECK(first["tensor"] == "fc1.weight");
  CHECK(first["step"] == 1);
  CHECK(first["changes"] == 3);
  CHECK(first["stale"] == json{{"fp16", 3}, {"bf16", 2}});  // 2^-30 is FP16's zero
  CHECK(document["updates"][1]["ratio"] == 0.1);
  CHECK(document["updates"][1]["stale"] == json{{"fp16", 0}, {"bf16", 0}});
  const json& trend = document["trends"]["weight"];
  CHECK(trend["steps"] == json{1, 2});
  CHECK(trend["amax"] == json{4, 8});
  CHECK(trend["formats"]["fp16"]["recommended"] == json{0, 0});
  tests::write_text(folder.path("a.json"), document.dump());
  tests::write_text(folder.path("same.json"), document.dump());
  const json merged = trace({"merge", folder.path("a.json"), folder.path("same.json")});
  CHECK(merged["updates"][0]["changes"] == 6);
  CHECK(merged["updates"][1]["ratio"] == 0.1);
  std::vector<std::string> view = {"trace"};
  view.insert(view.end(), words.begin(), words.end());
  const std::string text = run_command(view).out;
  CHECK(text.find("update/weight") != std::string::npos);
  CHECK(text.find("over steps") != std::string::npos);
}

TEST_CASE("trace: a sidecar says what names do not") {
  const TemporaryFolder folder;
  write_tensors(folder.path("step7.rank_2.safetensors"), "fc1", {1.0F});
  json tensor = trace({folder.path("step7.rank_2.safetensors")})["tensors"][0];
  CHECK(tensor["step"] == 7);
  CHECK(tensor["rank"] == 2);
  CHECK(tensor["role"].is_null());
  tests::write_text(folder.path("step7.rank_2.safetensors.json"),
                    R"({"loss_scale": 65536, "step": 8, "tensors": {"fc1": {"role": "act"}}})");
  tensor = trace({folder.path("step7.rank_2.safetensors")})["tensors"][0];
  CHECK(tensor["step"] == 8);
  CHECK(tensor["loss_scale"] == 65536);
  CHECK(tensor["role"] == "act");
  tests::write_text(folder.path("step7.rank_2.safetensors.json"), R"({"step": "eight"})");
  CHECK(run_command({"trace", folder.path("step7.rank_2.safetensors")}).status == 2);
}

TEST_CASE("trace: the report stands by itself and escapes names") {
  const TemporaryFolder folder;
  const std::string page = folder.path("report.html");
  write_tensors(folder.path("x.safetensors"), "step1.<script>x", {1.0F, 0x1p-30F});
  CHECK(run_command({"trace", folder.path("x.safetensors"), golden, "--report", page}).status == 0);
  const std::string html = tests::read_text(page);
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("&lt;script&gt;x") != std::string::npos);
  CHECK(html.find("http") == std::string::npos);
  CHECK(html.find("nan") == std::string::npos);
  std::size_t drawings = 0;
  for (std::size_t at = html.find("<svg"); at != std::string::npos; at = html.find("<svg", at + 1))
    ++drawings;
  // Three, for wide and for narrow screens.
  CHECK(drawings == 6);
  CHECK(run_command({"trace", golden, "--report", folder.path("no/such.html")}).status == 2);
}

}  // namespace

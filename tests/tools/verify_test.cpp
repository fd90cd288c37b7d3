#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"

namespace {

using guardbit::tests::CommandResult;
using guardbit::tests::holds;
using guardbit::tests::is_one_error_line;
using guardbit::tests::read_text;
using guardbit::tests::run_command;
using guardbit::tests::TemporaryFolder;
using guardbit::tests::write_text;
using nlohmann::json;

const std::string golden = "tests/golden/";
const std::string capture =
    golden + "mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.safetensors";
const std::string wgmma =
    golden + "wgmma/wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3.safetensors";

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const char* folder : {"mma.sp", "mma.sync", "wgmma", "wmma", "x86"}) {
    for (const auto& entry : std::filesystem::directory_iterator(golden + folder)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A safetensors file in parts.
struct Parts {
  json header;
  std::string data;
};

Parts take_apart(const std::string& path) {
  const std::string content = read_text(path);
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  return {json::parse(content.substr(8, length)), content.substr(8 + length)};
}

void put_together(const std::string& path, const Parts& parts) {
  const std::string text = parts.header.dump();
  const std::uint64_t length = text.size();
  std::string content(8, '\0');
  std::memcpy(content.data(), &length, sizeof length);
  write_text(path, content + text + parts.data);
}

/// The capture with one bit of element `index` of d flipped.
void flip(const std::string& from, const std::string& to, std::size_t index,
          std::size_t element_bytes, int bit) {
  Parts parts = take_apart(from);
  const std::size_t begin = parts.header["d"]["data_offsets"][0];
  char& byte = parts.data.at(begin + index * element_bytes + static_cast<std::size_t>(bit / 8));
  byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  put_together(to, parts);
}

TEST_CASE("every golden recording verifies, with one line each and a total") {
  std::vector<std::string> words = golden_files();
  const std::size_t count = words.size();
  words.insert(words.begin(), "verify");
  const CommandResult result = run_command(words);
  CHECK(result.status == 0);
  CHECK(result.error.empty());
  CHECK(static_cast<std::size_t>(std::count(result.out.begin(), result.out.end(), '\n')) ==
        count + 2);
  CHECK(holds(result.out, std::to_string(count) + " files, "));
  CHECK(holds(result.out, " 0 mismatches, "));
}

TEST_CASE("the reference engine agrees, on one thread as well") {
  CHECK(run_command({"verify", capture, wgmma, "--engine", "reference", "--threads", "1"}).status ==
        0);
}

TEST_CASE("a flipped bit of d is found and nothing else") {
  const TemporaryFolder folder;
  const std::string changed = folder.path("changed.safetensors");
  for (const int bit : {0, 17, 31}) {
    flip(capture, changed, 7 * 128 + 5 * 8 + 3, 4, bit);
    const CommandResult result = run_command(
        {"verify", golden + "mma.sync/mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32.safetensors",
         changed, "--json"});
    CHECK(result.status == 1);
    const json report = json::parse(result.out);
    CHECK(report["mismatches"] == 1);
    CHECK(report["files"][0]["mismatches"] == 0);
    CHECK(report["files"][1]["mismatches"] == 1);
    REQUIRE(report["reports"].size() == 1);
    const json& element = report["reports"][0];
    CHECK(element["file"] == changed);
    CHECK(element["execution"] == 7);
    CHECK(element["row"] == 5);
    CHECK(element["column"] == 3);
    CHECK(element["expected"]["code"] != element["got"]["code"]);
    if (bit != 31) CHECK(element["ulp"] == (1U << bit));
  }
}

TEST_CASE("a mismatch is explained, and the printed command explains it again") {
  const TemporaryFolder folder;
  const std::string changed = folder.path("it's changed.safetensors");
  flip(wgmma, changed, 2 * 512 + 63 * 8 + 7, 4, 12);
  const CommandResult result = run_command({"verify", changed});
  CHECK(result.status == 1);
  for (const std::string part :
       {"execution 2, row 63, column 7 of wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
        "expected", "got", "ulp apart", "addend", "exact sum", "kept sum", "grid 2^", "F = 13",
        "reproduce: guardbit verify '"}) {
    INFO(part << "\n" << result.out);
    CHECK(holds(result.out, part));
  }
  const CommandResult again =
      run_command({"verify", changed, "--execution", "2", "--row", "63", "--column", "7"});
  CHECK(again.status == 1);
  CHECK(holds(again.out, "1 output, 1 mismatch,"));
  const std::string report = result.out.substr(result.out.find("  execution 2"));
  CHECK(holds(again.out, report.substr(0, report.find("reproduce"))));
}

TEST_CASE("one element is explained whether or not it differs") {
  const CommandResult result =
      run_command({"verify", capture, "--execution", "4", "--row", "3", "--column", "5"});
  CHECK(result.status == 0);
  CHECK(holds(result.out, "equal"));
  CHECK(holds(result.out, "E = "));
  for (const std::vector<std::string>& outside : {std::vector<std::string>{"--execution", "10"},
                                                  {"--execution", "0", "--row", "16"},
                                                  {"--execution", "0", "--column", "8"},
                                                  {"--execution", "-1"},
                                                  {"--row", "0"}}) {
    std::vector<std::string> words = {"verify", capture};
    words.insert(words.end(), outside.begin(), outside.end());
    const CommandResult refused = run_command(words);
    INFO(outside[1] << refused.error);
    CHECK(refused.status == 2);
    CHECK(is_one_error_line(refused.error));
  }
  CHECK(run_command({"verify", capture, wgmma, "--execution", "0"}).status == 2);
}

TEST_CASE("max-report limits what is explained, not what is counted") {
  const TemporaryFolder folder;
  const std::string changed = folder.path("changed.safetensors");
  Parts parts = take_apart(capture);
  const std::size_t begin = parts.header["d"]["data_offsets"][0];
  for (std::size_t i = 0; i < 40; i += 4) parts.data.at(begin + i + 1) ^= 1;
  put_together(changed, parts);
  for (const std::size_t most : {0U, 1U, 4U}) {
    const CommandResult result =
        run_command({"verify", changed, "--json", "--max-report", std::to_string(most)});
    CHECK(result.status == 1);
    const json report = json::parse(result.out);
    CHECK(report["mismatches"] == 10);
    CHECK(report["reports"].size() == most);
  }
}

TEST_CASE("JSON has the promised keys") {
  const json report = json::parse(run_command({"verify", capture, "--json"}).out);
  for (const char* key : {"files", "outputs", "mismatches"}) CHECK(report.contains(key));
  REQUIRE(report["files"].size() == 1);
  const json& file = report["files"][0];
  CHECK(file["file"] == capture);
  CHECK(file["instruction"] == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  CHECK(file["arch"] == "sm_90");
  CHECK(file["engine"].is_string());
  CHECK(file["outputs"] == 1280);
  CHECK(file["mismatches"] == 0);
  CHECK(report["outputs"] == 1280);
  CHECK(report["mismatches"] == 0);
}

TEST_CASE(
    "what cannot be verified gives one line and status 2, the other files are still verified") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path, const std::string& why) {
    const CommandResult result = run_command({"verify", path});
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, why));
  };
  const std::string bad = folder.path("bad.safetensors");
  const auto changed = [&](const auto& change) {
    Parts parts = take_apart(capture);
    change(parts.header);
    put_together(bad, parts);
    return bad;
  };
  refused(changed([](json& h) { h["__metadata__"]["kind"] = "gemm"; }), "guardbit verify --plan");
  refused(changed([](json& h) {
            h["__metadata__"]["instruction"] = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f61.f32";
          }),
          "did you mean mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  refused(changed([](json& h) { h["a"]["dtype"] = "BF16"; }),
          "tensor 'a': element type BF16 cannot hold fp16");
  refused(changed([](json& h) { h["b"]["shape"] = {10, 8, 16}; }), "tensor 'b': shape [10, 8, 16]");
  refused(changed([](json& h) { h.erase("__metadata__"); }), "metadata 'capture' is missing");
  refused(folder.path("absent.safetensors"), "absent.safetensors");
  refused(golden, "directory");
  const std::string content = read_text(capture);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{100}, content.size() - 1}) {
    write_text(bad, content.substr(0, size));
    refused(bad, "bad.safetensors");
  }

  const CommandResult mixed = run_command({"verify", bad, capture, "--json"});
  CHECK(mixed.status == 2);
  CHECK(is_one_error_line(mixed.error));
  const json report = json::parse(mixed.out);
  CHECK(report["files"].size() == 1);
  CHECK(report["outputs"] == 1280);
  CHECK(report["errors"].size() == 1);
}

TEST_CASE("an unknown engine is named with the ones there are") {
  const CommandResult result = run_command({"verify", capture, "--engine", "abacus"});
  CHECK(result.status == 2);
  CHECK(is_one_error_line(result.error));
  CHECK(holds(result.error, "reference"));
}

}  // namespace

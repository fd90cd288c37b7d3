#include <cmath>
#include <string>
#include <vector>

#include "formats/files/array_file.hpp"
#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::holds;
using tests::run_command;
using tests::TemporaryFolder;

/// Escape, NUL, newline, and the C1 character that begins sequences alone.
const std::string evil = std::string("step1.w\x1b[31mred\0nul\nline\xc2\x9b", 26) + "2J";

bool has_controls(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return true;
    if (byte == 0xc2 && i + 1 < text.size() && (text[i + 1] & 0xe0) == 0x80) return true;
  }
  return false;
}

TEST_CASE("names of tensors reach the terminal without control characters") {
  const TemporaryFolder folder;
  const std::string file = folder.path("evil.safetensors");
  std::vector<float> values(64);
  for (std::size_t i = 0; i < 64; ++i) values[i] = static_cast<float>(i) / 7;
  std::vector<float> bad = values;
  bad[3] = INFINITY;
  formats::write_tensors(file, {},
                         std::vector{tests::tensor_of(evil, {4, 16}, values),
                                     tests::tensor_of(evil + ".update", {4, 16}, values),
                                     tests::tensor_of(evil + "b", {4, 16}, bad)});
  const std::string one = folder.path("one.safetensors");
  formats::write_tensors(one, {}, std::vector{tests::tensor_of(evil, {4, 16}, values)});
  const std::string out = folder.path("out.safetensors");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"trace", file},
           {"trace", file, "--formats", "fp16,mxfp8_e4m3", "--histogram"},
           {"trace", file, "--formats", "fp16,mxfp8_e4m3,nvfp4"},
           {"cast", file, "--to", "e4m3", "-o", out},
           {"cast", one, "--to", "mxfp8_e4m3", "-o", out},
           {"recipe", "compare", file},
           {"scaler", "replay", file},
           {"quantize", one, "-o", out},
           {"quantize", one, "--prune", "-o", out},
           {"quantize", file, "-o", out},
           {"compare", one + ":nothing", one},
           {"gemm", file, file, "-o", out},
           {"verify", file},
       }) {
    const CommandResult result = run_command(words);
    INFO(words[0] << ": " << result.out << result.error);
    CHECK_FALSE(has_controls(result.out));
    CHECK_FALSE(has_controls(result.error));
    CHECK(result.status <= 2);
  }
  CHECK(holds(run_command({"trace", file}).out, "\\x1b[31mred\\x00nul\\x0aline\\x9b2J"));
}

}  // namespace

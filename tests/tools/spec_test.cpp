#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;

const std::string name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
const std::string capture = "tests/golden/" + name + ".safetensors";

bool same_result(const std::string& x, const std::string& y) {
  const formats::TensorFile p = formats::read_safetensors(x), q = formats::read_safetensors(y);
  const formats::Tensor *a = p.find("d"), *b = q.find("d");
  return a != nullptr && b != nullptr && a->shape == b->shape &&
         std::equal(a->bytes.begin(), a->bytes.end(), b->bytes.begin(), b->bytes.end());
}

TEST_CASE("what probe finds runs as an instruction, in products, and is found again") {
  const TemporaryFolder folder;
  const std::string spec = folder.path("unit.txt"), d = folder.path("d.safetensors"),
                    other = folder.path("other.safetensors");
  const CommandResult probed =
      run_command({"probe", "--arch", "sm_90", "--instruction", name, "-o", spec});
  INFO(probed.error);
  REQUIRE(probed.status == 0);
  // The recording of an H200, by what its model was seen to do.
  REQUIRE(run_command({"run", "--spec", spec, "--a", capture, "--b", capture, "--c", capture + ":c",
                       "-o", d})
              .status == 0);
  CHECK(same_result(d, capture));
  const std::string product = "tests/golden/gemm/addmm_f16_64x64x256_1_1.safetensors";
  const auto multiply = [&](const std::string& unit, const std::string& to,
                            std::vector<std::string> more) {
    std::vector<std::string> words = {
        "gemm", product + ":a", product + ":b", "--plan", unit + " split=2x64:ceil d=fp16", "-o",
        to};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 0);
  };
  multiply("unknown/probed", d, {"--spec", spec});
  multiply("sm_90/" + name, other, {});
  CHECK(same_result(d, other));
  const CommandResult again = run_command(
      {"probe", "--spec", spec, "--engine", "reference", "-o", folder.path("again.txt")});
  CHECK(again.status == 0);
  const auto without_comment = [](const std::string& text) { return text.substr(text.find('\n')); };
  CHECK(without_comment(read_text(folder.path("again.txt"))) == without_comment(read_text(spec)));
}

TEST_CASE("a spec that takes a row's name is executed in its place") {
  const TemporaryFolder folder;
  const std::string spec = folder.path("row.txt");
  const auto text = [&](int kept) {
    return "name " + name +
           "\narch sm_90\nshape m16n8k16\nformats fp16 fp16 fp32 fp32\nstep dot "
           "into=fp32 kept_fraction_bits=" +
           std::to_string(kept) + " min_exponent=-133\n";
  };
  write_text(spec, text(25));
  CHECK(run_command({"verify", "--spec", spec, capture}).status == 0);
  write_text(spec, text(24));
  CHECK(run_command({"verify", "--spec", spec, capture}).status == 1);
  CHECK(run_command({"verify", capture}).status == 0);
}

TEST_CASE("specs that cannot be read are one line each") {
  const TemporaryFolder folder;
  const std::string spec = folder.path("bad.txt");
  write_text(spec, "name u\narch chip\n");
  for (const std::string& file : {spec, folder.path("absent.txt")}) {
    const CommandResult result = run_command({"probe", "--spec", file});
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.find(file) != std::string::npos);
  }
  const CommandResult none = run_command({"run", "--a", capture, "--b", capture, "-o", spec});
  CHECK(none.status == 2);
  CHECK(none.error.find("needs INSTRUCTION and --arch, or --spec") != std::string::npos);
}

}  // namespace
}  // namespace guardbit::tests

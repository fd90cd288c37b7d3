#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;

const std::string name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
const std::string capture = "tests/golden/mma.sync/" + name + ".safetensors";

const std::string product_of_fp32 = "tests/golden/gemm/mm_fp32_33x17x100.safetensors";

bool same_result(const std::string& x, const std::string& y) {
  const formats::TensorFile p = formats::read_safetensors(x), q = formats::read_safetensors(y);
  const formats::Tensor *a = p.find("d"), *b = q.find("d");
  return a != nullptr && b != nullptr && a->shape == b->shape &&
         std::equal(a->bytes.begin(), a->bytes.end(), b->bytes.begin(), b->bytes.end());
}

TEST_CASE("what probe finds runs as an instruction, in products, and is found again", "[long]") {
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

/// A program in plain Python that multiplies A and B, FP32, without a C: a loop over k that begins
/// with `begin` and goes on as `step` says, and `end`, its result.
std::string program_without_c(const std::string& begin, const std::string& step,
                              const std::string& end) {
  return R"(import array, json, struct, sys
data = open(sys.argv[1], 'rb').read()
size = struct.unpack('<Q', data[:8])[0]
x = {}
for name, t in json.loads(data[8:8 + size]).items():
    if name == '__metadata__': continue
    begin, end = t['data_offsets']
    x[name] = (t['shape'], array.array('f', data[8 + size + begin:8 + size + end]))
def f32(x): return struct.unpack('<f', struct.pack('<f', x))[0] if abs(x) < 3.4028235677973366e38 else x * 1e300 * 1e300
(t, m, k), a = x['a']
n, b = x['b'][0][2], x['b'][1]
d = array.array('f')
for i in range(t):
    for row in range(m):
        for column in range(n):
            )" +
         begin +
         R"(
            for j in range(k):
                p = f32(a[(i * m + row) * k + j] * b[(i * k + j) * n + column])
                )" +
         step + R"(
            d.append()" +
         end + R"()
head = json.dumps({'d': {'dtype': 'F32', 'shape': [t, m, n], 'data_offsets': [0, 4 * len(d)]}}).encode()
open(sys.argv[2], 'wb').write(struct.pack('<Q', len(head)) + head + d.tobytes())
)";
}

/// A and B of FP32 in one file, as the program reads them; every number has a long fraction.
void write_operands(const std::string& path, std::int64_t m, std::int64_t n, std::int64_t k) {
  std::vector<float> a, b;
  std::uint32_t state = 1;
  const auto number = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(state >> 8) * 0x1p-22F - 2.0F;
  };
  for (std::int64_t i = 0; i < m * k; ++i) a.push_back(number());
  for (std::int64_t i = 0; i < k * n; ++i) b.push_back(number());
  formats::write_safetensors(
      path, {}, std::vector{tensor_of("a", {1, m, k}, a), tensor_of("b", {1, k, n}, b)});
}

TEST_CASE("a program that was probed without an addend multiplies any K as it does itself",
          "[long]") {
  const TemporaryFolder folder;
  const std::string program = folder.path("program.py"), spec = folder.path("mine.txt"),
                    operands = folder.path("operands.safetensors"),
                    d = folder.path("d.safetensors"), own = folder.path("own.safetensors");
  for (const char* const begin : {"s = 0.0", "s = -0.0"}) {
    CAPTURE(begin);
    write_text(program, program_without_c(begin, "s = f32(s + p)", "s"));
    const CommandResult probed = run_command({"probe", "--exec", "python3 " + program, "--a",
                                              "fp32", "--d", "fp32", "--k", "6", "-o", spec});
    INFO(probed.error);
    REQUIRE(probed.status == 0);
    CHECK(read_text(spec).find("addend=c") == std::string::npos);
    for (const std::int64_t k : {4, 6, 50}) {
      CAPTURE(k);
      write_operands(operands, 3, 5, k);
      const CommandResult made = run_command({"gemm", operands + ":a", operands + ":b", "--spec",
                                              spec, "--plan", "unknown/probed", "-o", d});
      INFO(made.error);
      REQUIRE(made.status == 0);
      REQUIRE(run_shell(folder, "python3 " + program + " " + operands + " " + own).status == 0);
      CHECK(same_result(d, own));
    }
  }
}

TEST_CASE("a program of which it is not known how it goes on is refused beyond its K", "[long]") {
  const TemporaryFolder folder;
  const std::string program = folder.path("program.py"), spec = folder.path("mine.txt"),
                    operands = folder.path("operands.safetensors"),
                    d = folder.path("d.safetensors");
  write_text(program, program_without_c("s = [0.0, 0.0]", "s[j % 2] = f32(s[j % 2] + p)",
                                        "f32(s[0] + s[1])"));
  const CommandResult probed = run_command({"probe", "--exec", "python3 " + program, "--a", "fp32",
                                            "--d", "fp32", "--k", "6", "-o", spec});
  INFO(probed.error);
  REQUIRE(probed.status == 0);
  write_operands(operands, 3, 5, 20);
  const auto multiply = [&](const std::string& plan, const std::string& to) {
    return run_command(
        {"gemm", operands + ":a", operands + ":b", "--spec", spec, "--plan", plan, "-o", to});
  };
  const CommandResult refused = multiply("unknown/probed", d);
  CHECK(refused.status == 2);
  CHECK(refused.out.empty());
  CHECK(is_one_error_line(refused.error));
  CHECK(
      refused.error ==
      "guardbit: plan: unknown/probed takes no addend, and its steps do not show how a sum goes on beyond its K = 6; "
      "this one has K = 20: probe the unit with --c, or split K into parts of at most 6, whose sums the plan adds\n");
  CHECK_FALSE(std::filesystem::exists(d));
  CHECK(multiply("unknown/probed split=4x6:ceil", d).status == 0);
  const CommandResult verified =
      run_command({"verify", "--spec", spec, "--plan", "unknown/probed", product_of_fp32});
  CHECK(verified.status == 2);
  CHECK(verified.error.find("takes no addend") != std::string::npos);
}

TEST_CASE("explain and compare know how far a unit without an addend goes") {
  const TemporaryFolder folder;
  const std::string spec = folder.path("unit.txt"), d = folder.path("d.safetensors");
  const std::string operands = "tests/golden/gemm/mm_f16_64x64x64.safetensors";
  const std::vector<std::string> of = {"--a", operands + ":a", "--b", operands + ":b"};
  const auto run = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), {"--spec", spec});
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  };
  // 19 bits are kept by no unit of the machine.
  for (const bool known : {true, false}) {
    write_text(spec,
               "name mine\narch sm_90\nshape m1n1k32\nformats fp16 fp16 fp32 fp32\n"
               "step dot addend=0 into=fp32 kept_fraction_bits=19 min_exponent=-133" +
                   std::string(known ? " terms=8\n" : "\n"));
    for (const std::string unit : {"sm_90/mine", "sm_90/mine split=2x32:ceil"}) {
      const std::string plan = unit + " d=fp32";
      CAPTURE(known, plan);
      const bool fits = known || plan.find("split") != std::string::npos;
      const CommandResult made =
          run({"gemm", operands + ":a", operands + ":b"}, {"--plan", plan, "-o", d});
      CHECK(made.status == (fits ? 0 : 2));
      const CommandResult bound =
          run({"compare", operands + ":d", "--exact", "--plan", unit + " d=fp16"}, of);
      CHECK((bound.error.find("takes no addend") == std::string::npos) == fits);
      if (!fits) CHECK(bound.status == 2);
      if (!fits) continue;
      std::vector<std::string> words = {"explain", "--d", d + ":d", "--json"};
      words.insert(words.end(), of.begin(), of.end());
      const CommandResult found = run(words, {});
      INFO(found.error);
      REQUIRE(found.status == 0);
      CHECK(json::parse(found.out)["plans"][0]["plan"].get<std::string>() == plan);
    }
  }
}

TEST_CASE("a spec that takes an instruction's name is executed in its place") {
  const TemporaryFolder folder;
  const std::string spec = folder.path("row.txt");
  const auto text = [&](int kept) {
    return "name " + name +
           "\narch sm_90\nshape m16n8k16\nformats fp16 fp16 fp32 fp32\nstep dot into=fp32 kept_fraction_bits=" +
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

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "formats/files/safetensors.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;

const std::string golden = "tests/golden/gemm/";
const std::string sliced = golden + "mm_fp32_33x17x100.safetensors";
const std::string with_c = golden + "addmm_f16_64x64x256_1_1.safetensors";

void check_holds(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(holds(text, part));
}

/// The tensor `name` of a file, its bytes.
std::vector<std::byte> bytes_of(const std::string& path, const std::string& name) {
  const formats::TensorFile file = formats::read_safetensors(path);
  const formats::Tensor* const tensor = file.find(name);
  REQUIRE(tensor != nullptr);
  return {tensor->bytes.begin(), tensor->bytes.end()};
}

TEST_CASE("explain names a plan that gemm executes to the same bits") {
  const TemporaryFolder folder;
  const CommandResult found = run_command({"explain", with_c, "--json"});
  REQUIRE(found.status == 0);
  const json j = json::parse(found.out);
  std::vector<std::string> keys;
  for (const auto& item : j.items()) keys.push_back(item.key());
  CHECK(keys == std::vector<std::string>{"explained", "file", "findings", "largest_error", "limits",
                                         "looked_at", "order_control", "outputs", "plans",
                                         "ruled_out", "stopped", "verdict"});
  CHECK(j["verdict"] == "exact_plan");
  CHECK(j["stopped"] == false);
  CHECK(j["explained"] == true);
  CHECK(j["file"] == with_c);
  CHECK(j["outputs"] == 4096);
  REQUIRE(!j["plans"].empty());
  for (const json& plan : j["plans"]) {
    CHECK(plan.size() == 4);
    CHECK(plan["mismatches"] == 0);
    CHECK(plan["engine"].is_string());
    CHECK(plan["summary"].is_string());
  }
  const std::string plan = j["plans"][0]["plan"];
  check_holds(plan, "add=rounded");
  const std::string d = folder.path("d.safetensors");
  const CommandResult made = run_command(
      {"gemm", with_c + ":a", with_c + ":b", "--c", with_c + ":c", "--plan", plan, "-o", d});
  INFO(made.error);
  REQUIRE(made.status == 0);
  CHECK(bytes_of(d, "d") == bytes_of(with_c, "d"));
}

TEST_CASE("explain takes operands from files, and says what changed between two results") {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, const std::string& plan) {
    const std::string d = folder.path(name);
    const CommandResult made =
        run_command({"gemm", sliced + ":a", sliced + ":b", "--plan", plan, "-o", d, "--json"});
    REQUIRE(made.status == 0);
    CHECK(json::parse(made.out)["plan"]["text"] == plan);
    return d;
  };
  const std::string whole = make("whole.safetensors", "simt/fma.fp32 d=fp32");
  const std::string halves = make("halves.safetensors", "simt/fma.fp32 split=2x8:ceil d=fp32");
  const CommandResult one =
      run_command({"explain", "--a", sliced + ":a", "--b", sliced + ":b", "--d", whole});
  CHECK(one.status == 0);
  check_holds(one.out, "simt/fma.fp32 d=fp32");
  const CommandResult two =
      run_command({"explain", "--a", sliced + ":a", "--b", sliced + ":b", "--diff", whole, halves});
  CHECK(two.status == 0);
  check_holds(two.out, "split: (none) -> 2x");
}

TEST_CASE("explain exits with 1 for a result that no plan gives, and says where it is wrong") {
  const TemporaryFolder folder;
  formats::TensorFile file = formats::read_safetensors(sliced);
  for (formats::Tensor& tensor : file.tensors) {
    if (tensor.name != "d") continue;
    std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
    bytes[4 * (5 * 17 + 3)] ^= std::byte{1};
    tensor = formats::owning_tensor("d", tensor.format, tensor.packing, tensor.shape, bytes);
  }
  const std::string flipped = folder.path("flipped.safetensors");
  formats::write_safetensors(flipped, file.metadata, file.tensors);
  const CommandResult result = run_command({"explain", flipped});
  CHECK(result.status == 1);
  check_holds(result.out, "this looks like a bug");
  check_holds(result.out, "row 5, column 3: a single element 1 ulp off");
  const CommandResult as_json = run_command({"explain", flipped, "--json"});
  CHECK(as_json.status == 1);
  const json j = json::parse(as_json.out);
  CHECK(j["explained"] == false);
  CHECK(j["plans"][0]["mismatches"] == 1);
  check_holds(j["plans"][0]["summary"], "row 5, column 3");
}

/// A, B and the FP32 product of them with the elements of K in steps of 333: a right result
/// that no plan gives. The numbers are TF32's: a search among matrix units takes long.
void write_odd_product(const std::string& path) {
  constexpr std::int64_t m = 24, n = 24, k = 700;
  std::mt19937_64 random(3);
  const auto draw = [&](std::int64_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& value : x)
      value =
          std::ldexp(static_cast<float>(random() >> 54) - 512, -static_cast<int>(random() % 12));
    return x;
  };
  const std::vector<float> a = draw(m * k), b = draw(k * n);
  std::vector<float> d;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const std::int64_t at = l * 333 % k;
        sum = std::fma(a[static_cast<std::size_t>(i * k + at)],
                       b[static_cast<std::size_t>(at * n + j)], sum);
      }
      d.push_back(sum);
    }
  formats::write_safetensors(
      path, {},
      std::vector{tensor_of("a", {m, k}, a), tensor_of("b", {k, n}, b), tensor_of("d", {m, n}, d)});
}

TEST_CASE("explain stops after its time limit, and says so", "[long]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("x.safetensors");
  write_odd_product(file);
  const std::vector<std::string> words = {"explain",      "--a", file + ":a", "--b",
                                          file + ":b",    "--d", file + ":d", "--tf32",
                                          "--time-limit", "0.5"};
  const CommandResult text = run_command(words);
  CHECK(text.status == 1);
  check_holds(text.out, "right");
  check_holds(text.out, "stopped after 0.5 s (--time-limit)");
  std::vector<std::string> in_json = words;
  in_json.emplace_back("--json");
  const json j = json::parse(run_command(in_json).out);
  CHECK(j["stopped"] == true);
  CHECK(j["verdict"] == "valid_rounding");
  CHECK(j["findings"].empty());
  CHECK(!j.contains("order_control"));
}

TEST_CASE("explain says what it could not look at") {
  const TemporaryFolder folder;
  const std::string file = folder.path("x.safetensors");
  write_odd_product(file);
  const std::vector<std::string> odd = {"explain", "--a",       file + ":a",    "--b", file + ":b",
                                        "--d",     file + ":d", "--time-limit", "1e-9"};
  check_holds(run_command(odd).out, "not explained: there was no time to try a plan\n");
  const std::string infinite = folder.path("y.safetensors");
  formats::write_safetensors(
      infinite, {},
      std::vector{tensor_of("a", {8, 16}, std::vector<float>(128, HUGE_VALF)),
                  tensor_of("b", {16, 8}, std::vector<float>(128, 1.0F)),
                  tensor_of("d", {8, 8}, std::vector<float>(64, NAN))});
  const std::vector<std::string> words = {"explain",       "--a",           infinite + ":a",
                                          "--b",           infinite + ":b", "--d",
                                          infinite + ":d", "--time-limit",  "1e-9"};
  const CommandResult result = run_command(words);
  CHECK(result.status == 1);
  check_holds(result.out, "  not judged: no output could be looked at\n");
  check_holds(
      result.out,
      "rows of A and columns of B that hold infinities or NaNs were looked at for these alone");
  CHECK(!holds(result.out, "right"));
  for (const std::string factor : {"nan", "inf"}) {
    std::vector<std::string> with_factor = words;
    with_factor.insert(with_factor.end(), {"--alpha", factor});
    const CommandResult refused = run_command(with_factor);
    CHECK(refused.status == 2);
    check_holds(refused.error, "guardbit: --alpha: is no finite number\n");
  }
}

TEST_CASE("explain ends at once by Ctrl-C") {
  const TemporaryFolder folder;
  write_odd_product(folder.path("x.safetensors"));
  const CommandResult result = run_until_interrupted(
      folder,
      "explain --a x.safetensors:a --b x.safetensors:b --d x.safetensors:d --tf32 --time-limit 0",
      0.7);
  CHECK(result.out == "status 130\nprompt\n");
  check_holds(result.error, "guardbit: interrupted\n");
}

TEST_CASE("explain says whether the result tells the order of its sums") {
  const TemporaryFolder folder;
  const CommandResult telling = run_command({"explain", sliced});
  check_holds(telling.out, " outputs that were tried change: they tell the order of the sums.");
  const std::string ones = folder.path("ones.safetensors");
  formats::write_safetensors(ones, {},
                             std::vector{tensor_of("a", {8, 64}, std::vector<float>(512, 1.0F)),
                                         tensor_of("b", {64, 8}, std::vector<float>(512, 0.5F)),
                                         tensor_of("d", {8, 8}, std::vector<float>(64, 32.0F))});
  const CommandResult silent = run_command(
      {"explain", "--a", ones + ":a", "--b", ones + ":b", "--d", ones + ":d", "--json"});
  CHECK(silent.status == 0);
  CHECK(json::parse(silent.out)["order_control"] == json{{"outputs", 64}, {"refuting", 0}});
}

TEST_CASE("options of explain say what was asked for in place of what a capture says") {
  const std::string capture = "tests/golden/gemm/addmm_f16_33x17x100_1_1.safetensors";
  const auto verdict = [&](const std::vector<std::string>& options) {
    std::vector<std::string> line = {"explain", capture, "--json", "--max-plans", "1"};
    line.insert(line.end(), options.begin(), options.end());
    const json j = json::parse(run_command(line).out);
    std::vector<std::string> kinds = {j["verdict"].get<std::string>()};
    for (const json& fault : j["findings"]) kinds.push_back(fault["kind"]);
    return kinds;
  };
  using Words = std::vector<std::string>;
  CHECK(verdict({}) == Words{"exact_plan"});
  CHECK(verdict({"--alpha", "1", "--beta", "1", "--activation", "none", "--arch", "sm_90"}) ==
        Words{"exact_plan"});
  CHECK(verdict({"--alpha", "0.5"}) == Words{"wrong", "alpha"});
  CHECK(verdict({"--beta", "0.5"}) == Words{"wrong", "beta"});
  CHECK(verdict({"--activation", "relu"}) == Words{"wrong", "activation"});
  for (const auto& [option, error] : {std::pair{"--a", "guardbit: --a: is read without a CAPTURE"},
                                      {"--bias", "guardbit: --bias: is read without a CAPTURE"},
                                      {"--arch", "sm_91"}}) {
    const CommandResult result =
        run_command({"explain", capture, option, option == std::string("--arch") ? "sm_91" : "x"});
    CHECK(result.status == 2);
    check_holds(result.error, error);
  }
  const CommandResult instruction = run_command(
      {"explain",
       "tests/golden/mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32.tiny.safetensors",
       "--alpha", "2"});
  CHECK(instruction.status == 2);
  check_holds(instruction.error,
              "holds an instruction: it has no --alpha, --beta, --activation or --tf32");
}

TEST_CASE("explain searches the recordings of an instruction") {
  const CommandResult result = run_command(
      {"explain",
       "tests/golden/mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32.tiny.safetensors"});
  CHECK(result.status == 0);
  check_holds(result.out, "add=initial");
}

TEST_CASE("verify replays library results by a plan") {
  const CommandResult right =
      run_command({"verify", "--plan", "simt/fma.fp32 split=4x4:ceil d=fp32", sliced});
  CHECK(right.status == 0);
  check_holds(right.out, "1 file, 561 outputs, 0 mismatches");
  const CommandResult wrong = run_command({"verify", "--plan", "simt/fma.fp32 d=fp32", sliced});
  CHECK(wrong.status == 1);
  check_holds(wrong.error, "recorded 0x");
  const std::string convolution = golden + "conv_fp32_nchw_1x3x16_8x3_p1s1d1g1.safetensors";
  CHECK(run_command({"verify", "--plan", "simt/fma.fp32 conv=crs d=fp32", convolution}).status ==
        0);
  CHECK(run_command({"verify", "--plan", "simt/fma.fp32 d=fp32", convolution}).status == 1);
}

TEST_CASE("gemm finds plans by library, format and kernel") {
  const TemporaryFolder folder;
  const std::string file = golden + "mm_bf16_32x32x32.safetensors",
                    d = folder.path("d.safetensors");
  REQUIRE(run_command({"gemm", file + ":a", file + ":b", "--like", "cublas-13:sm_90", "-o", d})
              .status == 0);
  CHECK(bytes_of(d, "d") == bytes_of(file, "d"));
  const CommandResult list = run_command({"gemm", "--list", "--json"});
  CHECK(list.status == 0);
  CHECK(json::parse(list.out).size() > 20);
}

TEST_CASE("gemm --like without a kernel takes the plan that the atlas has for the call") {
  const TemporaryFolder folder;
  const auto made = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "gemm", file + ":a",          file + ":b", "--like", "cublas-13:sm_90",
        "-o",   folder.path("d.npy"), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  };
  const std::string half = golden + "mm_bf16_32x32x32.safetensors";
  const json found = json::parse(made(half, {}).out);
  const json planned = json::parse(run_command({"plan", "--call", "mm", "--m", "32", "--n", "32",
                                                "--k", "32", "--dtype", "bf16", "--json"})
                                       .out);
  CHECK(found["plan"] == planned["plan"]);
  CHECK(found["known"] == planned["known"]);
  CHECK(found["why"] == planned["why"]);
  const json tf32 = json::parse(made(sliced, {"--tf32"}).out);
  CHECK(tf32["plan"]["text"].get<std::string>().find("tf32") != std::string::npos);
  // With an alpha the atlas holds no call: the table's row, which says what it leaves open.
  CHECK(!json::parse(made(half, {"--alpha", "2"}).out).contains("known"));
  check_holds(made(half, {"--tf32"}).error, "is for FP32 operands alone");
  CHECK(made(half, {"--tf32"}).status == 2);
}

TEST_CASE("gemm says which engine computed, and takes another one") {
  const TemporaryFolder folder;
  const std::string a = sliced + ":a", b = sliced + ":b";
  const std::string tf32 =
      "sm_80/mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 input=rna d=fp32";
  const auto make = [&](const std::string& plan, const std::string& engine) {
    const std::string d = folder.path(engine + ".safetensors");
    const CommandResult made =
        run_command({"gemm", a, b, "--plan", plan, "--engine", engine, "-o", d, "--json"});
    INFO(made.error);
    REQUIRE(made.status == 0);
    CHECK(json::parse(made.out)["engine"] == engine);
    return bytes_of(d, "d");
  };
  CHECK(make(tf32, "portable") == make(tf32, "reference"));
  make("simt/fma.fp32 d=fp32", "host");
  const std::string d = folder.path("d.safetensors");
  const CommandResult usual = run_command({"gemm", a, b, "--plan", "simt/fma.fp32", "-o", d});
  check_holds(usual.out, ", engine host, ");
  const CommandResult by_auto = run_command({"gemm", a, b, "--plan", tf32, "-o", d, "--json"});
  CHECK(json::parse(by_auto.out)["engine"] != "auto");
  CHECK(bytes_of(d, "d") == make(tf32, "reference"));
  check_holds(run_command({"explain", sliced}).out, "  engine host");
}

TEST_CASE("one wrong element of a large product is found where a plan gives all others", "[long]") {
  const TemporaryFolder folder;
  constexpr std::int64_t m = 208, n = 208, k = 1024;
  const std::string numbers = folder.path("numbers.safetensors"), x = folder.path("x.safetensors"),
                    right = folder.path("right.safetensors"),
                    wrong = folder.path("wrong.safetensors");
  // Integers, whose sums are exact: all rounding is that of D, and hides one element from the sums
  // of rows and columns.
  std::uint32_t state = 1;
  const auto integers = [&](std::int64_t count) {
    std::vector<float> list;
    for (std::int64_t i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      list.push_back(static_cast<float>(state >> 16 & 15) - 7.5F);
    }
    return list;
  };
  formats::write_safetensors(numbers, {},
                             std::vector{tensor_of("a", {m, k}, integers(m * k)),
                                         tensor_of("b", {k, n}, integers(k * n))});
  REQUIRE(run_command({"cast", numbers, "--to", "fp16", "-o", x}).status == 0);
  REQUIRE(run_command({"gemm", x + ":a", x + ":b", "--arch", "sm_90", "--to", "bf16", "-o", right})
              .status == 0);
  // Without a limit: under sanitizers the search takes longer than the usual minute.
  const auto explained = [&](const std::string& d) {
    return run_command(
        {"explain", "--a", x + ":a", "--b", x + ":b", "--d", d + ":d", "--time-limit", "0"});
  };
  CHECK(explained(right).status == 0);
  formats::TensorFile file = formats::read_safetensors(right);
  formats::Tensor& d = file.tensors[0];
  std::vector<std::byte> bytes(d.bytes.begin(), d.bytes.end());
  std::uint16_t code = 0;
  std::byte* const element = bytes.data() + 2 * (206 * n + 205);
  std::memcpy(&code, element, 2);
  const auto value = std::bit_cast<float>(std::uint32_t{code} << 16);
  code = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value + 400) >> 16);
  std::memcpy(element, &code, 2);
  d = formats::owning_tensor("d", formats::bf16, formats::Packing::container, {m, n},
                             std::move(bytes));
  formats::write_safetensors(wrong, {}, file.tensors);
  const CommandResult found = explained(wrong);
  CHECK(found.status == 1);
  check_holds(found.out, "  wrong: 1 of ");
  check_holds(found.out, "element [206, 205] of D is wrong by itself: ");
}

TEST_CASE("bad plans, files and shapes are one line each") {
  const TemporaryFolder folder;
  const std::string d = folder.path("d.safetensors");
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    check_holds(result.error, why);
  };
  const std::string a = sliced + ":a", b = sliced + ":b";
  refused({"gemm", a, b, "-o", d}, "needs --plan, --like or --arch, one of them");
  refused({"gemm", a, b, "--plan", "simt/fma.fp7", "-o", d},
          "fma.fp32, mul_add.fp32, mul_add.fp16, mul_add.bf16, fma.fp64");
  refused({"gemm", a, b, "--plan", "sm_90/wgmma", "-o", d}, "wgmma");
  refused({"gemm", a, a, "--plan", "simt/fma.fp32", "-o", d},
          "B needs 100 rows, A's K; B transposed?");
  refused({"gemm", a, b, "--plan", "simt/fma.fp32 beta=1", "-o", d}, "--c is needed");
  refused({"gemm", a, b, "--like", "mkl:x86", "-o", d}, "unknown library");
  refused({"gemm", a, b, "--plan", "simt/fma.fp32", "--engine", "portable", "-o", d}, "auto, host");
  refused({"gemm", a, b, "--plan", "simt/fma.fp32", "--engine", "fast", "-o", d},
          "unknown engine 'fast'");
  refused({"gemm", a, b, "--like", "cublas-12:sm_90", "-o", d},
          "nothing was recorded of cublas-12");
  refused({"explain", golden + "absent.safetensors"}, "absent.safetensors");
  refused({"explain", "--a", a}, "needs a CAPTURE");
  refused({"explain", "--a", a, "--b", b, "--d", a}, "is not of the shape of A * B");
  refused({"explain", sliced, "--max-plans", "0"}, "max-plans");
  refused({"verify", "--plan", "simt/fma.fp32 d=fp16", sliced}, "d is fp32");
}

}  // namespace
}  // namespace guardbit::tests

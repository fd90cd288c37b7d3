#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "formats/files/array_file.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::json_of;
using tests::run_command;
using tests::TemporaryFolder;

TEST_CASE("function: a word too long for a file's name is no number, and no file") {
  const CommandResult result =
      run_command({"function", "ex2.approx.ftz.f32", std::string(5000, 'x')});
  CHECK(result.status == 2);
  CHECK(is_one_error_line(result.error));
  CHECK(result.error.find("is no number, and no such file is there") != std::string::npos);
}

TEST_CASE("function takes a result of the special function unit apart") {
  const CommandResult result = run_command({"function", "ex2.approx.ftz.f32", "-1.25"});
  CHECK(result.status == 0);
  for (const std::string text :
       {"exponent -2, fraction 0x5fffff", "47 of 64", "C1 151148", "14107900.0576477 U",
        "0x3ed744fc", "correctly rounded it is 0x3ed744fd"})
    CHECK(holds(result.out, text));
  const nlohmann::json unit =
      json_of({"function", "ex2.approx.ftz.f32", "-1.25", "--json"}).at("results").at(0).at("unit");
  CHECK(unit.at("segment") == 47);
  CHECK(unit.at("x") == 131071);
  CHECK(holds(run_command({"function", "rsqrt.approx.f32", "-inf"}).out, "special     nan"));
  CHECK(holds(run_command({"function", "rsqrt.approx.f32", "1e-40"}).out, "before      times"));
}

TEST_CASE("function shows the steps of a program") {
  const nlohmann::json result =
      json_of({"function", "expf", "1.5", "0x7fc00000:fp32", "--json"}).at("results");
  REQUIRE(result.size() == 2);
  CHECK(result.at(0).at("result") == "0x408f69ff");
  CHECK(result.at(0).at("steps").size() == 7);
  CHECK(result.at(0).at("steps").back().at("result") == "0x408f69ff");
  CHECK(result.at(1).at("result") == "0x7fffffff");
  CHECK(holds(run_command({"function", "powf", "2", "0.5"}).out, "0x3fb504f3"));
}

TEST_CASE("function computes as nvcc's options say") {
  // 1e-40 is 0 for steps that flush.
  CHECK(holds(run_command({"function", "sqrtf", "1e-40", "--compile", "ftz"}).out, "0x00000000"));
  CHECK(holds(run_command({"function", "sqrtf", "1e-40"}).out, "0x1e3ce4e7"));
  const nlohmann::json fast = json_of({"function", "expf", "--compile", "fast", "1.5", "--json"});
  CHECK(fast.at("compile") == "fast");
  // By the intrinsic, which flushes then, too.
  const nlohmann::json intrinsic =
      json_of({"function", "__expf", "--compile", "fast", "1.5", "--json"});
  CHECK(fast.at("results") == intrinsic.at("results"));
  CHECK(json_of({"function", "expf", "1.5", "--json"}).at("compile") == "default");
}

TEST_CASE("function computes arrays, with one number for all elements of another") {
  const TemporaryFolder folder;
  const std::vector<float> numbers = {0.5F, 2, -3, 0};
  formats::write_tensors(folder.path("x.npy"), {},
                         std::vector{tests::tensor_of("x", {2, 2}, numbers)});
  const auto computed = [&](const std::string& output) {
    const formats::TensorFile file = formats::read_tensors(folder.path(output));
    REQUIRE(file.tensors.size() == 1);
    CHECK(file.tensors[0].shape == std::vector<std::int64_t>{2, 2});
    return formats::codes_of(file.tensors[0]);
  };
  CHECK(
      run_command({"function", "expf", folder.path("x.npy"), "-o", folder.path("y.npz")}).status ==
      0);
  CHECK(run_command(
            {"function", "powf", folder.path("x.npy"), "3", "-o", folder.path("z.safetensors")})
            .status == 0);
  const auto y = computed("y.npz"), z = computed("z.safetensors");
  const auto& exponential = emulator::require_function("sm_90", "expf", "test");
  const auto& power = emulator::require_function("sm_90", "powf", "test");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto code = std::bit_cast<std::uint32_t>(numbers[i]);
    CHECK(y[i] == exponential.reference({code})[0]);
    CHECK(z[i] == power.reference({code, std::bit_cast<std::uint32_t>(3.0F)})[0]);
  }
}

TEST_CASE("function takes numbers in the function's format") {
  const nlohmann::json half =
      json_of({"function", "hexp(half)", "1", "--json"}).at("results").at(0);
  CHECK(half.at("x") == "0x3c00");
  CHECK(json_of({"function", "hexp", "1", "--json"}).at("function") == "hexp(half)");
  CHECK(half.at("result") == "0x4170");
  const nlohmann::json wide =
      json_of({"function", "rcp.approx.ftz.f64", "3", "--json"}).at("results").at(0);
  CHECK(wide.at("x") == "0x4008000000000000");
  CHECK(wide.at("result") == "0x3fd5555500000000");
  CHECK(holds(run_command({"function", "fma.rz.f32", "3", "0x1.8p-3", "1e-9"}).out, "0.5625"));
  CHECK(holds(run_command({"function", "ex2.approx.f16", "-1.25"}).out, "in fp32"));
}

TEST_CASE("function computes arrays of every format, packed forms by elements") {
  const TemporaryFolder folder;
  const auto compute = [&](const std::string& name, const formats::Format& format,
                           const std::vector<std::uint64_t>& codes) {
    const std::string in = folder.path("in.safetensors"), out = folder.path("out.safetensors");
    formats::write_tensors(
        in, {},
        std::vector{formats::tensor_of_codes("x", format, formats::Packing::container,
                                             {static_cast<std::int64_t>(codes.size())}, codes)});
    CHECK(run_command({"function", name, in, "-o", out}).status == 0);
    const formats::TensorFile file = formats::read_tensors(out);
    REQUIRE(file.find("d") != nullptr);
    CHECK(file.find("d")->format == format);
    return formats::codes_of(*file.find("d"));
  };
  const std::vector<std::uint64_t> halves = {0x3c00, 0xbc00, 0x4c00};
  CHECK(compute("ex2.approx.f16x2", formats::fp16, halves) ==
        std::vector<std::uint64_t>{0x4000, 0x3800, 0x7c00});
  CHECK(compute("ex2.approx.ftz.bf16", formats::bf16, {0x3f80, 0x0000}) ==
        std::vector<std::uint64_t>{0x4000, 0x3f80});
  CHECK(compute("hexp2", formats::bf16, {0x3f80}) == std::vector<std::uint64_t>{0x4000});
  CHECK(compute("hexp2", formats::fp16, {0x3c00}) == std::vector<std::uint64_t>{0x4000});
  CHECK(compute("sqrt.rn.f64", formats::fp64, {0x4010000000000000}) ==
        std::vector<std::uint64_t>{0x4000000000000000});
}

TEST_CASE("function takes all codes of a 16-bit format") {
  CHECK(run_command({"function", "ex2.approx.f16", "--digest"}).out ==
        "ex2.approx.f16 06e37e35cab36717\n");
  const nlohmann::json errors =
      json_of({"function", "hsin(bfloat16)", "--errors", "--json"}).at("errors");
  CHECK(errors.at("largest_ulp").get<double>() < 0.51);
  CHECK(errors.at("results").get<int>() > 60000);
  CHECK(errors.at("not_symmetric") == 0);
}

TEST_CASE("function knows which toolkits compute alike") {
  const auto json = json_of({"function", "erff", "1", "--toolkit", "12.1", "--json"});
  CHECK(json.at("toolkit") == "12.1");
  const auto known = [](const char* toolkit) {
    std::set<std::string> names;
    const auto list = json_of({"function", "--list", "--toolkit", toolkit, "--json"});
    for (const auto& each : list.at("functions")) names.insert(each.at("function"));
    return names;
  };
  const auto now = known("13.0"), since_3 = known("12.8"), since_1 = known("12.2"),
             all = known("12.0");
  CHECK(std::ranges::includes(now, since_3));
  CHECK(std::ranges::includes(since_3, since_1));
  CHECK(std::ranges::includes(since_1, all));
  CHECK((now.contains("acoshf") && !since_3.contains("acoshf")));
  CHECK((since_3.contains("sincospif") && !since_1.contains("sincospif")));
  CHECK((since_1.contains("erff") && !all.contains("erff")));
  CHECK(all.contains("expf"));
  CHECK_FALSE(since_3.contains("ex2.approx.f32"));
  CHECK_FALSE(since_3.contains("hexp(half)"));
}

TEST_CASE("function says nothing of CUDA where the machine is AMD's") {
  const auto json = json_of({"function", "v_exp_f32", "1", "--arch", "rdna3", "--json"});
  CHECK_FALSE(json.contains("toolkit"));
  CHECK_FALSE(json.contains("compile"));
  const auto lists_it = [](const std::vector<std::string>& options) {
    std::vector<std::string> words = {"function", "--list", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    std::set<std::string> names;
    const nlohmann::json list = json_of(words);
    for (const auto& each : list.at("functions")) names.insert(each.at("function"));
    return names.contains("v_exp_f32");
  };
  CHECK(lists_it({}));
  CHECK_FALSE(lists_it({"--toolkit", "13.0"}));
}

TEST_CASE("function draws the errors of all inputs") {
  const TemporaryFolder folder;
  const std::string picture = folder.path("errors.svg");
  CHECK(run_command({"function", "tanh.approx.f16", "--errors", "--plot", picture}).status == 0);
  std::ifstream file(picture);
  const std::string svg(std::istreambuf_iterator<char>(file), {});
  CHECK(holds(svg, "tanh.approx.f16, tanh(x)"));
  CHECK(holds(svg, "result - exact (ulp)"));
  const auto refused = run_command({"function", "tanh.approx.f16", "1", "--plot", picture});
  CHECK(refused.status == 2);
  CHECK(is_one_error_line(refused.error));
  CHECK(holds(refused.error, "with --errors"));
}

TEST_CASE("function lists what is known, in order") {
  const nlohmann::json list = json_of({"function", "--list", "--json"}).at("functions");
  CHECK(list.size() == emulator::function_catalogue().size());
  for (const char* const key :
       {"function", "arch", "operands", "format", "meaning", "evidence", "source"})
    CHECK(list.at(0).contains(key));
  CHECK(holds(run_command({"function", "--list"}).out, "tanh.approx.f32"));
}

TEST_CASE("function refuses what it cannot take in one line") {
  const TemporaryFolder folder;
  formats::write_tensors(folder.path("x.npy"), {}, std::vector{tests::tensor_of("x", {1, 2, 3})});
  formats::write_tensors(folder.path("y.npy"), {}, std::vector{tests::tensor_of("y", {1, 2})});
  const std::string x = folder.path("x.npy"), y = folder.path("y.npy"), out = folder.path("o.npy");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"function", "epxf", "1"}, "did you mean expf"},
      {{"function"}, "needs NAME"},
      {{"function", "expf"}, "needs a number"},
      {{"function", "expf", "nothing.npy"}, "'nothing.npy' is no number"},
      {{"function", "expf", x}, "need -o"},
      {{"function", "expf", x, y, "-o", out}, "takes 1 operand"},
      {{"function", "powf", x, y, "-o", out}, "different shapes"},
      {{"function", "powf", "1"}, "takes 2 numbers"},
      {{"function", "powf", "--digest"}, "two operands"},
      {{"function", "fma.rn.f16", "--digest"}, "three operands"},
      {{"function", "sqrt.rn.f64", "--errors"}, "too many numbers"},
      {{"function", "ex2.approx.f16", x, "-o", out}, "takes fp16, not fp32"},
      {{"function", "fma.rn.f16", "1", "2"}, "takes 3 numbers"},
      {{"function", "powf", "--errors"}, "two operands"},
      {{"function", "expf", "1", "--digest"}, "--digest"},
      {{"function", "expf", "1", "--arch", "cdna3"}, "sm_90"},
      {{"function", "v_exp_f32", "1"}, "not a function of sm_90 (valid: rdna3, rdna4)"},
      {{"function", "expf", "1", "--arch", "rdna3"}, "not a function of rdna3 (valid: sm_90)"},
      {{"function", "v_exp_f32", "1", "--arch", "rdna3", "--toolkit", "13.0"},
       "which no toolkit of CUDA compiles"},
      {{"function", "v_exp_f32", "1", "--arch", "rdna3", "--compile", "ftz"},
       "known as an instruction"},
      {{"function", "acoshf", "1", "--toolkit", "12.9"}, "valid: 13.0"},
      {{"function", "erff", "1", "--toolkit", "12.0"}, "valid: 12.1 to 13.0"},
      {{"function", "expf", "1", "--toolkit", "11.8"}, "valid: 12.0 to 13.0"},
      {{"function", "expf", "1", "--toolkit", "13.1"}, "valid: 12.0 to 13.0"},
      {{"function", "expf", "1", "--toolkit", "12.4", "--compile", "ftz"}, "valid: 13.0"},
      {{"function", "--list", "--toolkit", "11.8"}, "12.0 to 13.0"},
      {{"function", "expf", "1", "--compile", "quick"}, "default, ftz, fast"},
      {{"function", "ex2.approx.f32", "1", "--compile", "fast"}, "known as an instruction"},
      {{"function", "expf", "--list"}, "--list"}};
  for (const auto& [words, text] : cases) {
    const CommandResult result = run_command(words);
    INFO(text << ": " << result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, text));
  }
}

TEST_CASE("function prints the hardware's digest", "[sweep]") {
  CHECK(run_command({"function", "sqrt.rn.f32", "--digest"}).out ==
        "sqrt.rn.f32 d6e8f1121f91edc7\n");
  const nlohmann::json digest = json_of({"function", "ex2.approx.ftz.f32", "--digest", "--json"});
  CHECK(digest.at("digest") == "41e061b23d1c92be");
  CHECK(digest.at("arch") == "sm_90");
}

TEST_CASE("function measures errors over all inputs", "[sweep]") {
  const nlohmann::json errors =
      json_of({"function", "rcp.approx.ftz.f32", "--errors", "--json"}).at("errors");
  CHECK(errors.at("largest_ulp").get<double>() < 1);
  CHECK(errors.at("not_symmetric") == 0);
}

}  // namespace

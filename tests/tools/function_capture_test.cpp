#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/functions/function_catalogue.hpp"
#include "formats/files/array_file.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"

/// `verify` of recorded functions, and `probe --function`.
namespace {

using namespace guardbit;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;

using Metadata = std::map<std::string, std::string>;

Metadata metadata_of(const std::string& function) {
  return {{"capture", "1"},
          {"kind", "function"},
          {"function", function},
          {"arch", "sm_90"},
          {"toolkit", "13.0"}};
}

formats::Tensor codes_as(const char* name, const formats::Format& format,
                         const std::vector<std::uint64_t>& codes) {
  return formats::tensor_of_codes(name, format, formats::Packing::container,
                                  {static_cast<std::int64_t>(codes.size())}, codes);
}

/// What the model gives for some arguments, as a recording.
std::vector<formats::Tensor> recording_of(const std::string& name) {
  const emulator::Function& function = emulator::require_function("sm_90", name, "test");
  std::vector<std::vector<std::uint64_t>> operands;
  std::vector<formats::Tensor> tensors;
  for (std::size_t i = 0; i < function.operands; ++i) {
    const formats::Format& format = function.formats.operands.at(i);
    const std::uint64_t one = static_cast<std::uint64_t>(format.bias) << format.fraction_bits;
    operands.push_back({one, one + 1 + i, one - 3, formats::infinity_code(format)});
    tensors.push_back(codes_as(emulator::operand_names.at(i), format, operands.back()));
  }
  const auto results = emulator::function_results(function, operands);
  for (std::size_t i = 0; i < results.size(); ++i)
    tensors.push_back(
        codes_as(emulator::result_names.at(i), function.formats.results.at(i), results[i]));
  return tensors;
}

TEST_CASE("verify replays recorded functions of every format") {
  const TemporaryFolder folder;
  const std::string path = folder.path("f.safetensors");
  for (const std::string name :
       {"expf", "powf", "fma.rz.ftz.f32", "add.f16x2", "hlog(bfloat16)", "div.rm.f64"}) {
    formats::write_tensors(path, metadata_of(name), recording_of(name));
    const CommandResult result = run_command({"verify", path});
    INFO(name << result.out << result.error);
    CHECK(result.status == 0);
    CHECK(holds(result.out, "4 outputs, 0 mismatches"));
  }
}

TEST_CASE("verify names the first results of a function that differ") {
  const TemporaryFolder folder;
  const std::string path = folder.path("f.safetensors");
  std::vector<formats::Tensor> tensors = recording_of("expf");
  std::vector<std::uint64_t> results = formats::codes_of(tensors[1]);
  results[2] ^= 1;
  tensors[1] = codes_as("d", formats::fp32, results);
  formats::write_tensors(path, metadata_of("expf"), tensors);
  const CommandResult result = run_command({"verify", path});
  CHECK(result.status == 1);
  CHECK(holds(result.out, "element 2 of d, expf"));
  CHECK(holds(result.out, "guardbit function expf 0x3f7ffffd:fp32"));
  const nlohmann::json report = nlohmann::json::parse(run_command({"verify", path, "--json"}).out);
  CHECK(report.at("mismatches") == 1);
  CHECK(report.at("reports").at(0).at("element") == 2);
}

TEST_CASE("verify refuses recordings of functions that do not fit") {
  const TemporaryFolder folder;
  const std::string path = folder.path("f.safetensors");
  const auto refused = [&](Metadata metadata, const std::vector<formats::Tensor>& tensors,
                           const std::string& text) {
    formats::write_tensors(path, metadata, tensors);
    const CommandResult result = run_command({"verify", path});
    INFO(text << ": " << result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, text));
  };
  const std::vector<formats::Tensor> good = recording_of("expf");
  refused(metadata_of("epxf"), good, "did you mean expf");
  refused(metadata_of("powf"), good, "'y' is missing");
  refused(metadata_of("hexp(half)"), good, "it is fp16");
  refused(metadata_of("expf"), recording_of("powf"), "'y' is one too many");
  refused(metadata_of("expf"), {good[0]}, "'d' is missing");
  refused(metadata_of("expf"), {codes_as("x", formats::fp32, {0}), good[1]}, "different shapes");
  Metadata other = metadata_of("acoshf");
  other["toolkit"] = "12.4";
  refused(other, good, "acoshf is known as CUDA 13.0 computes it, not 12.4");
  other = metadata_of("expf");
  other["arch"] = "sm_9";
  refused(other, good, "f.safetensors: arch: unknown architecture 'sm_9'");
  other["arch"] = "cdna3";
  refused(other, good, "f.safetensors: arch: no functions are known of cdna3");
}

/// A program in Python that computes d of x.
std::string program(const TemporaryFolder& folder, const std::string& expression) {
  const std::string path = folder.path("program.py");
  tests::write_text(path,
                    "import json, struct, sys\n"
                    "raw = open(sys.argv[1], 'rb').read()\n"
                    "n = struct.unpack('<Q', raw[:8])[0]\n"
                    "x = raw[8 + n:]\n"
                    "codes = struct.unpack('<%dH' % (len(x) // 2), x)\n"
                    "d = struct.pack('<%dH' % len(codes), *[" +
                        expression +
                        " for i in codes])\n"
                        "head = json.dumps({'d': {'dtype': 'F16', 'shape': [len(codes)], "
                        "'data_offsets': [0, len(d)]}}).encode()\n"
                        "open(sys.argv[2], 'wb').write(struct.pack('<Q', len(head)) + head + d)\n");
  return "python3 " + path;
}

TEST_CASE("probe --function names the function that a program computes, or the nearest",
          "[long][tool]") {
  if (std::system("python3 -c 'import json' >/dev/null 2>&1") != 0) {
    WARN("SKIPPED: no python3");
    return;
  }
  const TemporaryFolder folder;
  // hsqrt by the host's double precision: FP16 has no result that is closer to a tie than that.
  const std::string root =
      "(0x7fff if i & 0x7fff > 0x7c00 or (i >> 15 and i != 0x8000) else i if i in (0, 0x8000, 0x7c00)"
      " else struct.unpack('<H', struct.pack('<e', struct.unpack('<e', struct.pack('<H', i))[0] ** 0.5))[0])";
  const std::vector<std::string> ask = {"probe", "--function", "--a", "fp16", "--exec"};
  std::vector<std::string> words = ask;
  words.push_back(program(folder, root));
  const CommandResult found = run_command(words);
  INFO(found.out << found.error);
  CHECK(found.status == 0);
  CHECK(holds(found.out, "hsqrt(half)"));
  words = ask;
  words.push_back(program(folder, "(" + root + " ^ (i == 0x4400))"));
  const CommandResult near = run_command(words);
  INFO(near.out << near.error);
  CHECK(near.status == 1);
  CHECK(holds(near.out, "hsqrt(half): 1 of 65536 differ"));
  CHECK(holds(near.out, "x 0x4400 (4): the unit gives 0x4001"));
  words.push_back("--json");
  const nlohmann::json report = nlohmann::json::parse(run_command(words).out);
  CHECK(report.at("found") == false);
  CHECK(report.at("nearest").at(0).at("function") == "hsqrt(half)");
}

TEST_CASE("probe --function refuses what does not go with it") {
  const auto refused = [](const std::vector<std::string>& words, const std::string& text) {
    const CommandResult result = run_command(words);
    INFO(text << ": " << result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, text));
  };
  refused({"probe", "--function"}, "--exec");
  refused({"probe", "--function", "--exec", "true", "--k", "4"}, "--k");
  refused({"probe", "--exec", "true", "--operands", "2"}, "--function");
  refused({"probe", "--function", "--exec", "true"}, "wrote no file");
}

}  // namespace

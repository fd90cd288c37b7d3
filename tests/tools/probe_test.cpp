#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit::tests;
using nlohmann::json;

/// A multiplication in plain Python: reads and writes safetensors by hand, FP32 without fused
/// multiply-adds, k ascending from C. `{}` is replaced by what a test changes.
std::string python_kernel(const std::string& change) {
  return R"(import array, json, struct, sys
def read(path):
    data = open(path, 'rb').read()
    size = struct.unpack('<Q', data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name == '__metadata__': continue
        begin, end = t['data_offsets']
        out[name] = (t['shape'], array.array('f', data[8 + size + begin:8 + size + end]))
    return out
def f32(x): return struct.unpack('<f', struct.pack('<f', x))[0] if abs(x) < 3.4028235677973366e38 else x * 1e300 * 1e300
x = read(sys.argv[1])
(t, m, k), a = x['a']
n, b, c = x['b'][0][2], x['b'][1], x['c'][1]
d = array.array('f')
for i in range(t):
    for row in range(m):
        for column in range(n):
            s = c[(i * m + row) * n + column]
            for j in range(k):
                s = f32(s + f32(a[(i * m + row) * k + j] * b[(i * k + j) * n + column]))
            d.append(s)
shape = [t, m, n]
)" + change +
         R"(
head = json.dumps({'d': {'dtype': 'F32', 'shape': shape, 'data_offsets': [0, 4 * len(d)]}}).encode()
open(sys.argv[2], 'wb').write(struct.pack('<Q', len(head)) + head + d.tobytes())
)";
}

std::vector<std::string> exec_words(const std::string& command) {
  return {"probe", "--exec", command, "--a", "fp32", "--c", "fp32", "--d", "fp32", "--k", "5"};
}

TEST_CASE("probe: an instruction, told from outside", "[long]") {
  const TemporaryFolder folder;
  const CommandResult result =
      run_command({"probe", "--engine", "reference", "--arch", "sm_80", "--instruction",
                   "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "--json", "--svg",
                   folder.path("tree.svg"), "--dot", folder.path("tree.dot")});
  INFO(result.error);
  REQUIRE(result.status == 0);
  const json j = json::parse(result.out);
  CHECK(j["explained"] == true);
  CHECK(j["mismatches"] == 0);
  CHECK(j["tree"]["text"] == "((c 0..7) 8..15)");
  bool kept = false;
  for (const json& field : j["fields"]) {
    if (field["field"] != "kept_fraction_bits") continue;
    kept = true;
    CHECK(field["value"] == "24");
    CHECK(field["others"] == "");
    CHECK(field["proof"]["a"].size() == 16);
    CHECK(field["proof"]["d"] != field["proof"]["otherwise"]);
  }
  CHECK(kept);
  // Two executions of K = 8, and one of K = 16.
  REQUIRE(j["catalogue"].size() == 2);
  CHECK(j["catalogue"][0]["executions"] == 2);
  CHECK(j["catalogue"][1]["executions"] == 1);
  bool named = false;
  for (const json& row : j["catalogue"][1]["rows"]) {
    named = named || (row["arch"] == "sm_80" &&
                      row["name"] == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    CHECK(row["arch"] != "sm_90");
  }
  CHECK(named);
  CHECK(read_text(folder.path("tree.svg")).starts_with("<svg"));
  CHECK(read_text(folder.path("tree.dot")).starts_with("digraph"));

  const CommandResult words = run_command({"probe", "--engine", "reference", "--arch", "cdna1",
                                           "--instruction", "v_mfma_f32_4x4x4f16"});
  CHECK(words.status == 0);
  CHECK(words.out.find("arithmetic: ") != std::string::npos);
  CHECK(words.out.find("cdna1  v_mfma_f32_") != std::string::npos);
}

TEST_CASE("probe: a program of one's own", "[long]") {
  const TemporaryFolder folder;
  const std::string script = folder.path("kernel.py");
  write_text(script, python_kernel(""));
  std::vector<std::string> words = exec_words("python3 " + script);
  words.insert(words.end(), {"--json", "--m", "2", "--n", "2"});
  const CommandResult result = run_command(words);
  INFO(result.error);
  REQUIRE(result.status == 0);
  const json j = json::parse(result.out);
  CHECK(j["tree"]["text"] == "(((((c 0) 1) 2) 3) 4)");
  CHECK(j["tree"]["arithmetic"] == "products rounded, then added, rounded nearest even");
}

TEST_CASE("probe: a program that misbehaves is one line", "[long]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& command, const std::string& reason) {
    std::vector<std::string> words = exec_words(command);
    words.insert(words.end(), {"--timeout", "20"});
    const CommandResult result = run_command(words);
    INFO(command << "\n" << result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.find(reason) != std::string::npos);
  };
  const auto changed = [&](const std::string& change) {
    const std::string script = folder.path("kernel.py");
    write_text(script, python_kernel(change));
    return "python3 " + script;
  };
  refused("echo some words; echo the reason >&2; exit 3; :", "ended with status 3: the reason");
  refused("kill -SEGV $$; :", "ended by signal 11");
  refused("true", "wrote no file");
  refused("cp /dev/null \"$2\"; :", "its output cannot be read");
  refused("/nowhere/to/be/found", "ended with status 127");
  refused(changed("shape = [m, t, n]"), "d has shape [1, 6, 1], not [6, 1, 1]");
  refused(changed("d = array.array('f', [float('nan')] * len(d))"), "1 * 1 at k = 0 gives");
  std::vector<std::string> hangs = exec_words("sleep 1000; :");
  hangs.insert(hangs.end(), {"--timeout", "0.3"});
  const CommandResult result = run_command(hangs);
  CHECK(result.status == 2);
  CHECK(is_one_error_line(result.error));
  CHECK(result.error.find("no answer within 0.3 s") != std::string::npos);
}

TEST_CASE("probe: what is asked for must be whole") {
  const auto refused = [](const std::vector<std::string>& words, const std::string& reason) {
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.find(reason) != std::string::npos);
  };
  refused({"probe"}, "needs --instruction NAME --arch A, --spec FILE, or --exec COMMAND");
  refused({"probe", "--instruction", "mxu.bf16"}, "--instruction needs --arch");
  refused({"probe", "--exec", "true", "--d", "fp32"}, "--a is needed");
  refused({"probe", "--exec", "true", "--a", "fp33", "--d", "fp32"}, "fp33");
  refused({"probe", "--exec", "true", "--instruction", "x"}, "only one of them");
  refused({"probe", "--exec", "true", "--a", "fp32", "--d", "fp32", "--row", "1"}, "--column");
  refused({"probe", "--exec", "true", "--a", "fp32", "--d", "fp32", "--row", "1", "--column", "0"},
          "not below --m and --n");
}

/// NumPy's products of fp32 as a program.
std::string numpy_program(const std::string& product) {
  return R"(import json, os, struct, sys
os.environ['OPENBLAS_NUM_THREADS'] = '1'  # threads that spin cost more than such products
import numpy as np
raw = open(sys.argv[1], 'rb').read()
size = struct.unpack('<Q', raw[:8])[0]
x = {}
for name, t in json.loads(raw[8:8 + size]).items():
    if name == '__metadata__': continue
    begin, end = t['data_offsets']
    x[name] = np.frombuffer(raw[8 + size + begin:8 + size + end], np.float32).reshape(t['shape'])
a, b = x['a'], x['b']
d = np.empty((a.shape[0], a.shape[1], b.shape[2]), np.float32)
for i in range(len(d)):
    d[i] = )" +
         product + R"(
head = json.dumps({'d': {'dtype': 'F32', 'shape': d.shape, 'data_offsets': [0, d.nbytes]}}).encode()
open(sys.argv[2], 'wb').write(struct.pack('<Q', len(head)) + head + d.tobytes())
)";
}

/// Leaves of a tree's text, ascending; "0..3" stands for four.
std::vector<int> leaves_of(const std::string& text) {
  std::vector<int> leaves;
  for (std::size_t at = 0; at < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
      ++at;
      continue;
    }
    std::size_t end = 0;
    const int leaf = std::stoi(text.substr(at), &end);
    const bool range = !leaves.empty() && at >= 2 && text.substr(at - 2, 2) == "..";
    for (int k = range ? leaves.back() + 1 : leaf; k <= leaf; ++k) leaves.push_back(k);
    at += end;
  }
  std::sort(leaves.begin(), leaves.end());
  return leaves;
}

TEST_CASE("probe ends at once by Ctrl-C, whatever it does", "[long]") {
  const TemporaryFolder folder;
  // An arithmetic is fitted for seconds.
  const std::string unit =
      "probe --engine reference --arch sm_90 --instruction "
      "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 -o unit.txt";
  for (const double seconds : {0.3, 0.8}) {
    const CommandResult result = run_until_interrupted(folder, unit, seconds);
    CHECK(result.out == "status 130\nprompt\n");
    CHECK(result.error.find("guardbit: interrupted\n") != std::string::npos);
    CHECK(!std::filesystem::exists(folder.path("unit.txt")));
  }
  // A program of the user's is ended, too.
  const CommandResult result =
      run_until_interrupted(folder, "probe --exec 'sleep 60; :' --a fp32 --d fp32 --k 4", 0.3);
  CHECK(result.out == "status 130\nprompt\n");
}

TEST_CASE("probe: the trees of NumPy's sum, dot and matrix product", "[sweep]") {
  const std::string interpreter = python_with_numpy();
  if (interpreter.empty()) {
    WARN("SKIPPED: python3 with numpy is not here");
    return;
  }
  const TemporaryFolder folder;
  const auto tree_of = [&](const std::string& product, const std::vector<std::string>& more) {
    const std::string file = folder.path("product.py");
    write_text(file, numpy_program(product));
    std::vector<std::string> words = {
        "probe", "--exec", interpreter + " " + file, "--a", "fp32", "--d", "fp32", "--json",
        "--k",   "16"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_command(words);
    INFO(result.error);
    REQUIRE(result.status == 0);
    return json::parse(result.out)["tree"];
  };
  // Eight accumulators, added in pairs (numpy/_core/src/umath/loops_utils.h.src).
  const json sum = tree_of("np.sum(a[i, 0] * b[i, :, 0])", {});
  CHECK(sum["text"] == "((((0 8) (1 9)) ((2 10) (3 11))) (((4 12) (5 13)) ((6 14) (7 15))))");
  // (Of zeros that are all negative some versions give +0.)
  CHECK(sum["arithmetic"].get<std::string>().starts_with("products rounded, then added"));
  CHECK(sum["arithmetic"].get<std::string>().ends_with(", rounded nearest even"));
  // What a BLAS does depends on the CPU; that it adds all of K once does not.
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  for (const std::string product :
       {"np.dot(np.ascontiguousarray(a[i, 0]), np.ascontiguousarray(b[i, :, 0]))", "a[i] @ b[i]"}) {
    const json tree = tree_of(product, {"--m", "8", "--n", "8", "--row", "3", "--column", "5"});
    INFO(tree["text"]);
    CHECK(tree["observable"] == true);
    CHECK(leaves_of(tree["text"]) == all);
  }
}

}  // namespace

#include "emulator/replay/replay.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "emulator/operators/reductions.hpp"
#include "emulator/replay/comparison.hpp"
#include "emulator/replay/difference.hpp"
#include "emulator/replay/plan_book.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/replay/recording_file.hpp"
#include "tests/places.hpp"

// Recordings computed again: what is right is exact, what was changed is found.
namespace guardbit::tests {
namespace {

using emulator::replay::PlanBook;
using emulator::replay::Recording;
using emulator::replay::Replay;
using emulator::replay::Status;

Replay replayed(const Recording& recording, PlanBook* plans = nullptr) {
  emulator::replay::ReplaySettings settings;
  settings.threads = 2;
  settings.plans = plans;
  return emulator::replay::replay(recording, settings);
}

Replay replayed(const std::string& path) {
  return replayed(emulator::replay::read_recording(path));
}

std::string call(const std::string& op, const std::string& args, const std::string& out,
                 const std::string& more = "") {
  return R"({"op": ")" + op + R"(", "args": [)" + args + R"(], "kwargs": {}, "out": )" + out +
         more + "}";
}

std::string error_of(const std::string& path) {
  try {
    emulator::replay::read_recording(path);
  } catch (const formats::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Replay: a sum that is right and one that is not") {
  RecordingFile file("replay_sum");
  const std::string x = file.fp32({1, 2}), y = file.fp32({0x1p-24F, 3});
  // 1 + 2^-24 is a tie and becomes 1.
  const std::string right = file.fp32({1, 5}), wrong = file.fp32({1, 5.5F});
  const Replay replay = replayed(file.write(call("aten.add.Tensor", x + "," + y, right) + "," +
                                            call("aten.add.Tensor", x + "," + y, wrong)));
  REQUIRE(replay.calls.size() == 2);
  CHECK(replay.calls[0].status == Status::exact);
  CHECK(replay.calls[0].outputs == 2);
  CHECK(replay.calls[1].status == Status::differs);
  CHECK(replay.calls[1].mismatches == 1);
  REQUIRE(replay.calls[1].first);
  CHECK(replay.calls[1].first->index == 1);
  CHECK(replay.calls[1].first->expected == 0x40b00000);
  CHECK(replay.calls[1].first->got == 0x40a00000);
  CHECK(replay.summary.outputs == 4);
  CHECK(replay.summary.outputs_exact == 3);
}

TEST_CASE("Replay: a dimension that is not there has no model") {
  RecordingFile file("replay_dimension");
  const std::string x = file.fp32({0, 1, 2});
  std::string calls;
  for (const std::string dimension : {"1", "-2", "7", "-9", "4611686018427387904"}) {
    for (const std::string& made :
         {call("aten.cumsum.default", x + "," + dimension, x),
          call("aten._softmax.default", x + "," + dimension + ", false", x),
          call("aten.sort.default", x + "," + dimension, "[" + x + "," + x + "]"),
          call("aten.sum.dim_IntList", x + ",[" + dimension + "]", x)})
      calls += (calls.empty() ? "" : ",") + made;
  }
  const Replay replay = replayed(file.write(calls));
  REQUIRE(replay.calls.size() == 20);
  for (const auto& one : replay.calls) CHECK(one.status == Status::unmodelled);
}

TEST_CASE("Replay: arguments that an operator cannot have stop nothing") {
  RecordingFile file("replay_arguments");
  const std::string x = file.fp32({1, 2}), y = file.fp32({3, 5}), sum = file.fp32({4, 7});
  const std::string image = file.fp32_image(4), size = "[2, 4611686018427387904]",
                    rates = ",0.1,0.9,0.99,0,1e-8,false,false";
  const Replay replay = replayed(file.write(
      call("aten.convolution.default", image + "," + image + ",null,[1],[0],[],false,[0],1",
           image) +
      "," + call("aten._adaptive_avg_pool2d.default", image + "," + size, image) + "," +
      call("aten.upsample_nearest2d.default", image + "," + size, image) + "," +
      call("aten.avg_pool2d.default", image + ",[2147483648, 3],[2]", image) + "," +
      call("aten.max_pool2d_with_indices.default", image + ",[3, 3]", image) + "," +
      call("aten.native_group_norm.default", image + ",null,null,1,1,4,-9,1e-5", image) + "," +
      call("aten._fused_adam_.default", "[" + x + "],[" + y + "],[],[" + x + "],[],[]" + rates,
           "null") +
      "," + call("aten._fused_sgd_.default", "[" + x + "],[],[],0,0,0.1,0", "null") + "," +
      call("aten.native_layer_norm.default", image + ",[4,1,1,1],null,null,1e-5", image) + "," +
      call("aten.native_layer_norm.default", image + ",[4]," + x + ",null,1e-5", image) + "," +
      call("aten.native_layer_norm_backward.default",
           image + "," + image + ",[4]," + x + "," + x + ",null,null,[true,true,true]", image) +
      "," + call("aten.add.Tensor", x + "," + y, sum)));
  REQUIRE(replay.calls.size() == 12);
  for (std::size_t i = 0; i < 11; ++i) CHECK(replay.calls[i].status == Status::unmodelled);
  CHECK(replay.calls[11].status == Status::exact);
}

TEST_CASE("Replay: an index beyond what it numbers has no model") {
  RecordingFile file("replay_index");
  const std::string x = file.fp32({1, 2, 3}), far = file.int64({3}), below = file.int64({-5}),
                    two = file.int64({0, 1}), one = file.fp32({4});
  std::string calls;
  for (const std::string& index : {far, below, two}) {
    for (const std::string& made :
         {call("aten.index_add.default", x + ",0," + index + "," + one, x),
          call("aten.embedding_dense_backward.default", one + "," + index + ",3,-1,false", x),
          call("aten.nll_loss_forward.default", x + "," + index + ",null,1,-100", one)})
      calls += (calls.empty() ? "" : ",") + made;
  }
  const Replay replay = replayed(file.write(calls));
  REQUIRE(replay.calls.size() == 9);
  for (const auto& made : replay.calls) CHECK(made.status == Status::unmodelled);
}

TEST_CASE("Replay: an operator without a model stops nothing") {
  RecordingFile file("replay_unknown");
  const std::string x = file.fp32({4}), two = file.fp32({2});
  const Replay replay = replayed(file.write(call("aten.no_such_operator.default", x, two) + "," +
                                            call("aten.sqrt.default", x, two)));
  CHECK(replay.calls[0].status == Status::unmodelled);
  CHECK(replay.calls[0].mismatches == 0);
  CHECK(replay.calls[1].status == Status::exact);
  CHECK(replay.summary.outputs_exact == 1);
}

TEST_CASE("Replay: a number that divides is a reciprocal rounded once, in a list it divides") {
  RecordingFile file("replay_division");
  const std::string x = file.fp32({3, 7, 0.1F, 11});
  constexpr double divisor = 0.031622776601683805;
  const auto inverse = static_cast<float>(1.0 / divisor), whole = static_cast<float>(divisor);
  const std::string product = file.fp32({3 * inverse, 7 * inverse, 0.1F * inverse, 11 * inverse});
  const std::string quotient = file.fp32({3 / whole, 7 / whole, 0.1F / whole, 11 / whole});
  REQUIRE(product != quotient);
  const std::string number = "0.031622776601683805";
  const Replay replay = replayed(file.write(
      call("aten.div.Tensor", x + "," + number, product) + "," +
      call("aten._foreach_div.ScalarList", "[" + x + "],[" + number + "]", "[" + quotient + "]")));
  CHECK(replay.calls[0].status == Status::exact);
  CHECK(replay.calls[1].status == Status::exact);
}

TEST_CASE("Replay: what a list became is the argument of a later call") {
  RecordingFile file("replay_list");
  const std::string before = file.fp32({1, 2}), after = file.fp32({3, 6}),
                    wrong = file.fp32({9, 9});
  const auto times_3 = [](const std::string& x) { return "[" + x + "], 3.0"; };
  const std::string calls = call("aten._foreach_mul_.Scalar", times_3(before), "null") + ",";
  const Replay right =
      replayed(file.write(calls + call("aten._foreach_mul_.Scalar", times_3(after), "null")));
  CHECK(right.calls[0].status == Status::exact);
  CHECK(right.calls[0].outputs == 2);
  // Nobody says what became of the last.
  CHECK(right.calls[1].status == Status::data);
  const Replay other =
      replayed(file.write(calls + call("aten._foreach_mul_.Scalar", times_3(wrong), "null")));
  CHECK(other.calls[0].status == Status::differs);
  const Replay written =
      replayed(file.write(call("aten._foreach_mul_.Scalar", times_3(before), "null",
                               R"(, "written": {"self": [)" + after + "]}")));
  CHECK(written.calls[0].status == Status::exact);
}

TEST_CASE("Replay: a NaN is the unit's in sums and its own where it is chosen") {
  RecordingFile file("replay_nan");
  const std::string x = file.fp16({0x7e01}), made = file.fp16({0x7fff});
  const Replay replay = replayed(
      file.write(call("aten.neg.default", x, made) + "," + call("aten.relu.default", x, x)));
  CHECK(replay.calls[0].status == Status::exact);
  CHECK(replay.calls[1].status == Status::exact);
}

TEST_CASE("Replay: a product is explained once and then predicted") {
  RecordingFile file("replay_product");
  const std::string x = file.fp32({1, 0x1p-12F, 3, 5}), y = file.fp32({1, 0x1p-12F, 2, 7});
  const float sum = 1 * 1 + 0x1p-24F + 6 + 35;
  const std::string scalar = file.fp32({sum});
  const std::string calls = call("aten.dot.default", x + "," + y, scalar);
  PlanBook book;
  book.search_seconds = 5;
  const Recording recording = emulator::replay::read_recording(file.write(calls + "," + calls));
  const Replay replay = replayed(recording, &book);
  CHECK(replay.calls[0].status == Status::exact);
  CHECK(replay.calls[1].status == Status::exact);
  CHECK(replay.summary.explained == 1);
  CHECK(replay.summary.predicted == 1);
  CHECK(book.size() == 1);
}

TEST_CASE("Replay: two recordings, and the first operator that computes otherwise") {
  RecordingFile a("replay_a"), b("replay_b");
  for (RecordingFile* file : {&a, &b}) {
    for (const float x : {2.0F, 4.0F, file == &a ? 1.5F : 1.25F}) file->fp32({x});
  }
  const auto tensor = [](int i) {
    return R"({"tensor": "t)" + std::to_string(i) + R"(", "shape": [1], "stride": [1]})";
  };
  const std::string calls = call("aten.pow.Tensor_Scalar", tensor(0) + ", 2", tensor(1)) + "," +
                            call("aten.sqrt.default", tensor(1), tensor(2));
  const auto x = emulator::replay::read_recording(a.write(calls));
  const auto y = emulator::replay::read_recording(b.write(calls));
  CHECK(!emulator::replay::compare(x, x).first);
  const auto comparison = emulator::replay::compare(x, y);
  REQUIRE(comparison.first);
  CHECK(comparison.first->op == "aten.sqrt.default");
  CHECK(comparison.first->call_a == 1);
  CHECK(comparison.equal == 1);
}

TEST_CASE("Replay: two batch sizes part where an operator cuts its work otherwise") {
  // Of a larger batch the sum takes another shape; what its rows have in common is compared.
  std::mt19937_64 random(3);
  std::vector<float> drawn(std::size_t{300} * 5000);
  for (float& x : drawn) x = static_cast<float>(random() % 1000003) * 1e-3F;
  const auto file_of = [&](RecordingFile& file, std::int64_t count) {
    const std::vector<float> numbers(drawn.begin(), drawn.begin() + count * 5000);
    namespace ops = emulator::operators;
    const ops::Tensor x = ops::tensor_of_numbers(formats::fp32, {count, 5000}, numbers);
    ops::ReductionRequest request;
    request.dimensions = {1};
    const ops::Tensor y = ops::sum(x, request).result;
    const std::string operand = file.fp32_rows(numbers, count);
    const std::string sums = file.fp32(ops::numbers_of(y));
    return file.write(call("aten.sum.dim_IntList", operand + ", [1]", sums));
  };
  RecordingFile few("batch_4"), many("batch_300");
  auto a = emulator::replay::read_recording(file_of(few, 4));
  auto b = emulator::replay::read_recording(file_of(many, 300));
  const auto comparison = emulator::replay::compare(a, b);
  REQUIRE(comparison.first);
  CHECK(comparison.first->is_of_other_size);
  const auto of_a = replayed(a).calls[0], of_b = replayed(b).calls[0];
  CHECK(of_a.status == Status::exact);
  CHECK(of_b.status == Status::exact);
  const auto why = emulator::replay::difference_of(a, b, *comparison.first, of_a, of_b);
  CHECK(why.rule.find("sum of [4, 5000] by vectors of 4") == 0);
  CHECK(why.rule.find("of [300, 5000] by vectors of 4") != std::string::npos);
  CHECK(why.remedy.find("batches of one size") == 0);
  CHECK(!emulator::replay::compare(a, a).first);
  // Settings that a program has changed before the call.
  a.calls[0].changed_flags["matmul_allow_tf32"] = "false";
  b.calls[0].changed_flags["matmul_allow_tf32"] = "true";
  CHECK(emulator::replay::difference_of(a, b, *comparison.first, of_a, of_b).remedy ==
        "equal settings: matmul_allow_tf32 (false here, true there)");
}

TEST_CASE("Replay: damaged recordings are refused in one line") {
  RecordingFile file("replay_damaged");
  const std::string x = file.fp32({1, 2});
  const auto error = [&](const std::string& calls) { return error_of(file.write(calls)); };
  const auto tensor = [](const std::string& rest) {
    return call("aten.neg.default", R"({"tensor": "t0", )" + rest + "}", "null");
  };
  CHECK(error(R"({"op" 3})").find("not JSON") != std::string::npos);
  CHECK(error(call("aten.neg.default", x, x) + ", 3").find("call 1: an object") !=
        std::string::npos);
  CHECK(error(R"({"args": []})").find("names no op") != std::string::npos);
  CHECK(error(R"({"op": "a", "op": "b"})").find("appears twice") != std::string::npos);
  CHECK(error(call("aten.neg.default", R"({"tensor": "t9", "shape": [2], "stride": [1]})", "null"))
            .find("no tensor 't9'") != std::string::npos);
  CHECK(error(tensor(R"("shape": [3], "stride": [1])")).find("another shape") != std::string::npos);
  CHECK(error(tensor(R"("shape": [2], "stride": [1, 1])")).find("2 strides for 1") !=
        std::string::npos);
  CHECK(error(tensor(R"("shape": [2], "stride": [-1])")).find("below 0") != std::string::npos);
  CHECK(error(tensor(R"("shape": [2], "stride": [4611686018427387904])")).find("any memory") !=
        std::string::npos);
  CHECK(error(tensor(R"("shape": [2])")).find("needs shape and stride") != std::string::npos);
  CHECK(error(R"({"op": "a", "args": )" + std::string(100, '[')).find("nests deeper") !=
        std::string::npos);
  for (const std::string& text :
       {error(R"({"op" 3})"), error(tensor(R"("shape": [3], "stride": [1])"))})
    CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("Replay: libraries that were not measured are refused") {
  RecordingFile file("replay_library");
  const std::string x = file.fp32({1});
  const auto recording =
      emulator::replay::read_recording(file.write(call("aten.abs.default", x, x), "2.12.0"));
  CHECK_THROWS_AS(emulator::replay::require_measured_library(recording), formats::Error);
}

TEST_CASE("Replay: recorded pointwise operators and optimizers are exact, each call") {
  for (const std::string name : {"pointwise", "optimizers"}) {
    const Replay replay = replayed(in_source("tests/golden/operators/" + name + ".safetensors"));
    INFO(name);
    CHECK(replay.summary.calls == (name == "pointwise" ? 378 : 20));
    CHECK(replay.summary.exact == replay.summary.calls);
    CHECK(replay.summary.outputs_exact == replay.summary.outputs);
  }
}

TEST_CASE("Replay: recorded operators of FP64 are exact, each call") {
  const Replay replay = replayed(in_source("tests/golden/operators/doubles.safetensors"));
  CHECK(replay.summary.calls == 167);
  CHECK(replay.summary.exact == replay.summary.calls);
  CHECK(replay.summary.outputs_exact == replay.summary.outputs);
}

TEST_CASE("Replay: recorded values added at indices, gates and losses are exact, each call") {
  const Replay replay =
      replayed(in_source("tests/golden/operators/indices_and_losses.safetensors"));
  CHECK(replay.summary.calls == 209);
  CHECK(replay.summary.exact == replay.summary.calls);
}

TEST_CASE("Replay: recorded sorts and choices leave equal numbers where the GPU left them") {
  auto recording =
      emulator::replay::read_recording(in_source("tests/golden/operators/orders.safetensors"));
  const Replay replay = replayed(recording);
  CHECK(replay.summary.calls == 270);
  CHECK(replay.summary.differs == 0);
  CHECK(replay.summary.exact == 221);
  // A sort of a few numbers that is said to be stable has other places.
  int sorts = 0, moved = 0;
  for (auto& call : recording.calls) {
    if (call.op != "aten.sort.default") continue;
    ++sorts;
    call.op = "aten.sort.stable";
    call.args.insert(call.args.begin() + 1, emulator::replay::Value{true});
  }
  for (const auto& call : replayed(recording).calls) moved += call.mismatches != 0 ? 1 : 0;
  CHECK(sorts > 20);
  CHECK(moved > 5);
}

TEST_CASE("Replay: calls that show rare roundings are exact, each call") {
  const Replay replay = replayed(in_source("tests/golden/operators/rare_roundings.safetensors"));
  CHECK(replay.summary.calls == 16);
  CHECK(replay.summary.exact == replay.summary.calls);
}

TEST_CASE("Replay: recorded gradients and losses do not differ") {
  const Replay replay = replayed(in_source("tests/golden/operators/gradients.safetensors"));
  CHECK(replay.summary.differs == 0);
  CHECK(replay.summary.exact > 110);
}

TEST_CASE("Replay: a batch norm's gradient may lie otherwise than its input") {
  const Replay replay =
      replayed(in_source("tests/golden/operators/batch_norm_two_orders.safetensors"));
  CHECK(replay.summary.exact == 1);
  CHECK(replay.summary.outputs == 2056);
}

TEST_CASE("Replay: what batch norms leave in their running statistics is compared, and exact") {
  const std::string path = in_source("tests/golden/operators/batch_norms.safetensors");
  auto recording = emulator::replay::read_recording(path);
  const Replay replay = replayed(recording);
  CHECK(replay.summary.calls == 32);
  CHECK(replay.summary.exact == 32);
  // Results, both moments, both running statistics.
  CHECK(replay.summary.outputs == 112128);
  // Another mean than the recorded one is noticed.
  auto& written = recording.calls.front().written;
  written.at("running_mean") = written.at("running_var");
  CHECK(replayed(recording).summary.differs == 1);
}

TEST_CASE("Replay: recorded layers and attention are exact or possible, each call") {
  for (const std::string name : {"layers", "attention"}) {
    PlanBook book;
    book.search_seconds = 5;
    const Replay replay = replayed(emulator::replay::read_recording(in_source(
                                       "tests/golden/operators/" + name + ".safetensors")),
                                   &book);
    INFO(name);
    CHECK(replay.summary.calls >= 36);
    CHECK(replay.summary.unordered == (name == "attention" ? 3 : 0));
    CHECK(replay.summary.exact + replay.summary.unordered == replay.summary.calls);
    CHECK(replay.summary.outputs_exact == replay.summary.outputs);
  }
}

TEST_CASE("Replay: cuDNN's dropout is exact, forward and backward") {
  auto recording = emulator::replay::read_recording(
      in_source("tests/golden/operators/cudnn_dropout.safetensors"));
  const Replay replay = replayed(recording);
  CHECK(replay.summary.exact == 23);
  CHECK(replay.summary.calls == 23);
  CHECK(replay.summary.outputs_exact == 378224);
  // Another state of the generator drops other places.
  auto& results = std::get<emulator::replay::List>(recording.calls.front().out.content);
  std::swap(results.at(6), results.at(7));
  CHECK(replayed(recording).summary.differs == 1);
}

TEST_CASE("Replay: recorded whole programs are exact in every call that computes") {
  struct Program {
    std::string name;
    std::int64_t calls, data, outputs;
  };
  for (const Program& program :
       {Program{"program_gpt", 191, 93, 86466}, Program{"program_llama", 180, 58, 12009}}) {
    PlanBook book;
    book.search_seconds = 5;
    const std::string path = in_source("tests/golden/operators/" + program.name + ".safetensors");
    const auto recording = emulator::replay::read_recording(path);
    const auto first = replayed(recording, &book).summary;
    INFO(program.name);
    CHECK(first.calls == program.calls);
    CHECK(first.data == program.data);
    CHECK(first.exact == program.calls - program.data);
    CHECK(first.outputs == program.outputs);
    CHECK(first.outputs_exact == program.outputs);
    CHECK(first.explained > 0);
    // What the book knows is predicted.
    CHECK(replayed(recording, &book).summary.explained == 0);
  }
}

TEST_CASE("Replay: a changed element of a whole program is found") {
  const std::string path = in_source("tests/golden/operators/program_llama.safetensors");
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  // The sign of one FP32 number in the middle.
  bytes[bytes.size() / 2 / 4 * 4 + 3] ^= static_cast<char>(0x80);
  const auto changed = std::filesystem::temp_directory_path() / "guardbit_changed.safetensors";
  std::ofstream(changed, std::ios::binary) << bytes;
  PlanBook book;
  book.search_seconds = 1;
  const auto summary = replayed(emulator::replay::read_recording(changed.string()), &book).summary;
  std::filesystem::remove(changed);
  CHECK(summary.exact < 122);
}

TEST_CASE("Replay: shared recordings of operators", "[shared]") {
  const char* const place = std::getenv("GUARDBIT_SHARED");
  const std::filesystem::path shared = place != nullptr ? place : "../shared";
  if (!std::filesystem::exists(shared / "recordings")) {
    std::cout << "SKIPPED: no recordings (GUARDBIT_SHARED or ../shared)\n";
    return;
  }
  for (const std::string name : {"ops_f32", "ops_f16", "ops_bf16"}) {
    const auto packed = shared / "recordings" / (name + ".safetensors.xz");
    const auto file =
        std::filesystem::temp_directory_path() / ("guardbit_" + name + ".safetensors");
    const std::string command = "xz -dc '" + packed.string() + "' >'" + file.string() + "'";
    if (std::system(command.c_str()) != 0) {
      std::cout << "SKIPPED: no xz\n";
      return;
    }
    const Replay replay = replayed(file.string());
    std::filesystem::remove(file);
    INFO(name);
    CHECK(replay.summary.differs == 0);
    CHECK(replay.summary.exact > (name == "ops_f32" ? 350 : 180));
  }
}

}  // namespace guardbit::tests

#include <cstring>
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
#include "tools/scaler/scaler_log.hpp"
#include "tools/scaler/scaler_picture.hpp"
#include "tools/scaler/scaler_replay.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;

const std::string golden = tests::in_source("tests/golden/traces/digits_cnn_amp_log.json");
const std::string trace = tests::in_source("tests/golden/traces/digits_mlp_grad_out.npz");

json scaler(std::vector<std::string> words) {
  words.insert(words.begin(), "scaler");
  words.emplace_back("--json");
  const CommandResult result = run_command(words);
  INFO(result.error);
  const json document = json::parse(result.out);
  // A log that is not reproduced is a difference, as verify has it.
  REQUIRE(result.status == (document.value("reproduced", true) ? 0 : 1));
  return document;
}

json replay(const std::string& file, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"replay", file});
  return scaler(std::move(more));
}

/// A run of six steps, in as many spellings as recorders have.
struct Spelling {
  std::string name, text;
};
const std::vector<Spelling> spellings = {
    {"arrays.json",
     "[[0,2.5,1024,true,512],[1,2.25,512,false,512],[2,2,512,false,1024],[3,2,1024,false,1024],[4,2,1024,false,2048],[5,2,2048,false,2048]]"},
    {"numbers.json",
     R"({"log":[[0,2.5,1024,1,512],[1,NaN,512,0,512],[2,2,512,0,1024],[3,2,1024,0,1024],
        [4,-Infinity,1024,0,2048],[5,2,2048,0,2048]],"confusion":[[1,2,3,4,5],[1,2,3,4,5]]})"},
    {"short.json",
     "[[0,1024,true],[1,512,false],[2,512,false],[3,1024,false],[4,1024,false],[5,2048,false]]"},
    {"objects.json",
     R"({"meta":{"model":"a \"NaN\" b"},"runs":{"amp":{"steps":[
        {"step":0,"loss":2.5,"scale_before":1024.0,"overflow":true,"scale_after":512.0},
        {"step":1,"loss":null,"scale_before":512.0,"overflow":false,"scale_after":512.0},
        {"step":2,"scale_before":512.0,"overflow":false,"scale_after":1024.0},
        {"step":3,"scale_before":1024.0,"overflow":false,"scale_after":1024.0},
        {"step":4,"scale_before":1024.0,"overflow":false,"scale_after":2048.0},
        {"step":5,"scale_before":2048.0,"overflow":false,"scale_after":null}]}}})"},
    {"columns.json",
     R"({"Iteration":[0,1,2,3,4,5],"loss_scale":[1024,512,512,1024,1024,2048],
        "found_inf":[[1.0],[0.0],[0.0],[0.0],[0.0],[0.0]]})"},
    {"header.json",
     R"({"columns":["scale","found_inf","iter"],"rows":[[1024,1.0,0],[512,0.0,1],[512,0.0,2],
        [1024,0.0,3],[1024,0.0,4],[2048,0.0,5]]})"},
    {"lines.jsonl",
     "{\"config\":\"x\",\"growth_interval\":2}\n"
     "{\"step\":0,\"loss_scale\":1024,\"skipped\":true}\n{\"step\":1,\"loss_scale\":512,\"skipped\":false}\n"
     "\n{\"step\":2,\"loss_scale\":512,\"skipped\":false}\n"
     "{\"step\":3,\"loss_scale\":1024,\"skipped\":false}\n"
     "{\"step\":4,\"loss_scale\":1024,\"skipped\":false}\n"
     "{\"step\":5,\"loss_scale\":2048,\"skipped\":false}\n"},
    {"arrays.jsonl",
     "[0,2.5,1024,true,512]\n[1,2.5,512,false,512]\n[2,2.5,512,false,1024]\n"
     "[3,2.5,1024,false,1024]\n[4,2.5,1024,false,2048]\n[5,2.5,2048,false,2048]\n"},
    {"head.csv",
     "Step,Loss,Scale,Overflow,New Scale\r\n0,2.5,1024.0,True,512.0\r\n1,nan,512.0,False,512.0\r\n"
     "2,2,512.0,False,1024.0\r\n3,2,1024.0,False,1024.0\r\n4,2,1024.0,False,2048.0\r\n"
     "5,2,2048.0,False,2048.0\r\n"},
    {"bare.csv",
     "0,2.5,1024,1,512\n1,2,512,0,512\n2,2,512,0,1024\n3,2,1024,0,1024\n"
     "4,2,1024,0,2048\n5,2,2048,0,2048\n"},
    {"tabs.tsv", "scale\tskipped\n1024\tyes\n512\tno\n512\tno\n1024\tno\n1024\tno\n2048\tno\n"},
    {"blanks.txt",
     "# written by hand\n0 2.5 1.024e3 true 512\n1 2.5 512 false 512\n"
     "2 2.5 512 false 1024\n3 2.5 1024 false 1024\n4 2.5 1024 false 2048\n"
     "5 2.5 2048 false 2048\n"},
    {"fallen.csv",
     "step,scale,scale_after\n0,1024,512\n1,512,512\n2,512,1024\n3,1024,1024\n"
     "4,1024,2048\n5,2048,2048\n"},
};

}  // namespace

TEST_CASE("scaler replay: PyTorch's scaler has every scale of a recorded run") {
  const json document =
      replay(golden, {"--mode", "amp_f16", "--preset", "pytorch", "--init-scale", "16777216",
                      "--growth-factor", "2", "--backoff", "0.5", "--growth-interval", "25"});
  CHECK(document["reproduced"] == true);
  CHECK(document["first_difference"].is_null());
  REQUIRE(document["steps"].size() == 300);
  const json rows = json::parse(tests::read_text(golden))["amp_f16"]["log"];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const json& step = document["steps"][i];
    CHECK(step["step"] == rows[i][0]);
    CHECK(step["scale_before"] == rows[i][2]);
    CHECK(step["overflow"] == rows[i][3]);
    CHECK(step["scale_after"] == rows[i][4]);
  }
  CHECK(document["skips"] == 11);
  // Neither the first scale nor the interval needs to be said: both follow from the log.
  const json inferred = replay(golden, {"--mode", "amp_f16"});
  CHECK(inferred["reproduced"] == true);
  CHECK(inferred["scaler"]["growth_interval"] == 25);
  CHECK(holds(inferred["remarks"].dump(), "follows from the log"));
}

TEST_CASE("scaler replay: the first scale that is not reproduced is named") {
  const json document = replay(golden, {"--mode", "amp_f16", "--growth-interval", "26"});
  CHECK(document["reproduced"] == false);
  CHECK(document["first_difference"]["step"] == 30);
  CHECK(document["first_difference"]["scale_after"] == 524288);
  CHECK(document["first_difference"]["logged_scale_after"] == 1048576);
  const CommandResult text =
      run_command({"scaler", "replay", golden, "--mode", "amp_f16", "--growth-interval", "26"});
  CHECK(text.status == 1);
  CHECK(holds(text.out, "not reproduced: first at step 30"));
  // Flax grows one step later, whatever the interval.
  CHECK(replay(golden, {"--mode", "amp_f16", "--preset", "flax", "--growth-interval",
                        "24"})["reproduced"] == true);
  CHECK(replay(golden, {"--mode", "amp_f16", "--preset", "megatron", "--hysteresis",
                        "2"})["reproduced"] == false);
}

TEST_CASE("scaler replay: rows are found wherever a recorder puts them") {
  const TemporaryFolder folder;
  for (const Spelling& spelling : spellings) {
    tests::write_text(folder.path(spelling.name), spelling.text);
    CAPTURE(spelling.name);
    const json document = replay(folder.path(spelling.name), {"--growth-interval", "2"});
    CHECK(document["reproduced"] == true);
    REQUIRE(document["steps"].size() == 6);
    CHECK(document["steps"][0]["overflow"] == true);
    CHECK(document["steps"][0]["scale_after"] == 512);
    CHECK(document["steps"][5]["step"] == 5);
    CHECK(document["skips"] == 1);
  }
  tests::write_text(folder.path("runs.json"),
                    R"([{"mode":"lr0.1","log":)" + spellings[0].text +
                        R"(},{"mode":"fp32","log":[[0,1,1.0,false,1.0]]}])");
  CHECK(replay(folder.path("runs.json"), {"--growth-interval", "2", "--mode", "lr0.1"})["skips"] ==
        1);
  // Text is a log whatever its name.
  tests::write_text(folder.path("run42"), spellings[0].text);
  CHECK(replay(folder.path("run42"), {"--growth-interval", "2"})["reproduced"] == true);
  // The interval that the file states is used.
  CHECK(replay(folder.path("lines.jsonl"))["scaler"]["growth_interval"] == 2);
}

/// A record of an event file, with the check sums that its writer makes.
std::string event_record(const std::string& bytes) {
  const auto crc = [](const std::string& text) {
    std::uint32_t sum = 0xFFFFFFFFU;
    for (const char c : text) {
      sum ^= static_cast<std::uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1U) ^ ((sum & 1U) * 0x82F63B78U);
    }
    sum = ~sum;
    return ((sum >> 15U) | (sum << 17U)) + 0xA282EAD8U;
  };
  const auto raw = [](auto number) {
    std::string text(sizeof number, '\0');
    std::memcpy(text.data(), &number, sizeof number);
    return text;
  };
  const std::string length = raw(static_cast<std::uint64_t>(bytes.size()));
  return length + raw(crc(length)) + bytes + raw(crc(bytes));
}

/// Event{step, summary{value{tag, simple_value}}}
std::string scalar_event(int step, const std::string& tag, float value) {
  std::string number(4, '\0');
  std::memcpy(number.data(), &value, 4);
  const auto field = [](char key, const std::string& text) {
    return std::string{key, static_cast<char>(text.size())} + text;
  };
  const std::string summary = field(0x0a, field(0x0a, tag) + std::string(1, 0x15) + number);
  return event_record(std::string{0x10, static_cast<char>(step)} + field(0x2a, summary));
}

TEST_CASE("scaler replay: logs of wandb, Megatron-LM and TensorBoard") {
  const TemporaryFolder folder;
  const auto changes = [](const json& document) {
    std::vector<double> scales;
    for (const json& step : document["steps"]) scales.push_back(step["scale_before"]);
    return scales;
  };
  const std::vector<double> expected = {1024, 512, 512, 1024, 1024};
  const std::vector<std::string> rules = {"--growth-interval", "2"};

  const std::string wandb = folder.path("wandb.csv");
  tests::write_text(wandb,
                    "\"Step\",\"run, 7 - train/loss_scale\",\"run, 7 - train/loss_scale__MIN\"\n"
                    "0,1024,1024\n1,512,512\n2,512,512\n3,1024,1024\n4,1024,\n5,2048,2048\n");
  const json of_wandb = replay(wandb, rules);
  CHECK(of_wandb["reproduced"] == true);
  CHECK(changes(of_wandb) == expected);
  CHECK(of_wandb["skips"] == 1);

  // Two columns that both could be the scale: a name decides.
  const std::string named = folder.path("named.csv");
  tests::write_text(named,
                    "_step,loss_scale,amp/grad multiplier\n0,1,1024\n1,1,512\n2,1,512\n3,1,1024\n"
                    "4,1,1024\n5,1,2048\n");
  std::vector<std::string> with_column = rules;
  with_column.insert(with_column.end(), {"--column", "scale=amp/grad multiplier"});
  CHECK(changes(replay(named, with_column)) == expected);
  with_column.back() = "scale=amp/grad multiplyer";
  with_column.insert(with_column.begin(), {"scaler", "replay", named});
  const CommandResult wrong = run_command(with_column);
  CHECK(wrong.status == 2);
  CHECK(holds(wrong.error, "did you mean amp/grad multiplier"));

  const std::string megatron = folder.path("train.log");
  const auto line = [](int step, const std::string& scale, int skipped) {
    return " [2026-01-01 00:00:00] iteration     " + std::to_string(step) +
           "/     100 | consumed samples:     64 | lm loss: 1.0E+00 | loss scale: " + scale +
           " | grad norm: 1.0 | number of skipped iterations:   " + std::to_string(skipped) +
           " | number of nan iterations:   0 |\n";
  };
  tests::write_text(megatron, "loading data\n" + line(1, "1024.0", 0) + line(2, "512.0", 1) +
                                  "eval\n" + line(4, "1024.0", 0) + line(6, "2048.0", 0));
  std::vector<std::string> of_megatron = rules;
  of_megatron.insert(of_megatron.end(), {"--preset", "megatron", "--hysteresis", "1"});
  const json document = replay(megatron, of_megatron);
  CHECK(document["reproduced"] == true);
  CHECK(changes(document) == expected);
  CHECK(document["steps"][0]["step"] == 2);
  of_megatron[1] = "3";
  CHECK(replay(megatron, of_megatron)["reproduced"] == false);

  const std::string events = folder.path("events.out.tfevents.1.host");
  std::string bytes = event_record(std::string(1, 0x1a) + std::string(1, 13) + "brain.Event:2");
  const std::vector<float> scales = {1024, 512, 512, 1024, 1024, 2048};
  for (int i = 0; i < 6; ++i) {
    bytes += scalar_event(i, "train/loss", 1.5F);
    bytes += scalar_event(i, "train/loss_scale", scales[static_cast<std::size_t>(i)]);
  }
  tests::write_text(events, bytes);
  CHECK(changes(replay(events, rules)) == expected);
  // A folder with one such file stands for it.
  const TemporaryFolder board;
  tests::write_text(board.path("events.out.tfevents.1.host"), bytes);
  CHECK(changes(replay(board.path(""), rules)) == expected);
  bytes[bytes.size() - 10] = static_cast<char>(bytes[bytes.size() - 10] ^ 1);
  tests::write_text(events, bytes);
  const CommandResult damaged = run_command({"scaler", "replay", events});
  CHECK(damaged.status == 2);
  CHECK(holds(damaged.error, "damaged at byte"));
}

TEST_CASE("scaler replay: nonsense is one line") {
  const TemporaryFolder folder;
  const std::vector<Spelling> bad = {
      {"empty.json", ""},
      {"blank.csv", " \n\n"},
      {"broken.json", "{\"log\":[[0,1,2,"},
      {"nothing.json", "{}"},
      {"huge.json", "[[0,1,1e999,true,512]]"},
      {"words.csv", "hello world\n"},
      {"norows.json", "{\"log\":[]}"},
      {"head_only.csv", "step,loss,scale,overflow,scale_after\n"},
      {"truth.json", "[[0,1,1024,true,512],[1,1,512,\"perhaps\",512]]"},
      {"two.csv", "step,scale,overflow\n0,1024,2\n"},
      {"nan.json", "[[0,1,NaN,true,512]]"},
      {"order.json", "[[1,1,1024,true,512],[0,1,512,false,512]]"},
      {"fraction.json", "[[0.5,1,1024,true,512]]"},
      {"negative.json", "[[-1,1,1024,true,512]]"},
      {"short_row.json", "[[0,1,1024,true,512],[1,1]]"},
      {"row.json", "[[0,1,1024,true,512],7]"},
      {"scale.json", "[[0,1,\"big\",true,512]]"},
      {"unequal.json", "{\"scale\":[1024,512],\"overflow\":[true]}"},
      {"runs.json", "{\"a\":[[0,1,1024,true,512]],\"b\":[[0,1,1024,true,512]]}"},
  };
  for (const Spelling& spelling : bad) {
    tests::write_text(folder.path(spelling.name), spelling.text);
    const CommandResult result =
        run_command({"scaler", "replay", folder.path(spelling.name), "--json"});
    CAPTURE(spelling.name, result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, spelling.name));
  }
  tests::write_text(
      folder.path("ranks.csv"),
      "step,rank,loss,scale,found_inf\n0,0,3,65536,0\n0,1,3,65536,0\n1,0,3,65536,0\n");
  CHECK(holds(run_command({"scaler", "replay", folder.path("ranks.csv")}).error,
              "row 2: step 0 comes again: if several ranks wrote the log, keep the rows of one\n"));
  tests::write_text(folder.path("good.json"), spellings[0].text);
  const std::vector<std::vector<std::string>> words = {
      {"--preset", "torch"},
      {"--growth-factor", "1"},
      {"--growth-interval", "0"},
      {"--backoff", "1"},
      {"--init-scale", "2^x"},
      {"--init-scale", "many"},
      {"--mode", "amp"},
      {"--compare"},
      {"--hysteresis", "0"},
      {"--growth-tracker", "-1"},
      {"--growth-test", "sometimes"},
      {"--preset", "keras3", "--growth-factor", "3"},
      {"--preset", "keras2", "--backoff", "0.3"},
      {"--alarm-skips", "0"},
      {"--preset", "flax", "--init-scale", "-1"}};
  for (std::vector<std::string> more : words) {
    more.insert(more.begin(), {"scaler", "replay", folder.path("good.json")});
    const CommandResult result = run_command(more);
    CAPTURE(more, result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
  }
  CHECK(run_command({"scaler", "replay", folder.path("none.json")}).status == 2);
  CHECK(run_command({"scaler", "replay", golden}).status == 2);
  CHECK(holds(run_command({"scaler", "replay", golden}).error, "amp_f16, fp32"));
  CHECK(run_command({"scaler", "replay", golden, "--mode", "amp_f61"}).status == 2);
}

TEST_CASE("scaler replay: a checkpoint's tracker, a log that jumps, one that outlives its scaler") {
  const TemporaryFolder folder;
  tests::write_text(folder.path("resumed.json"),
                    "[[7,1,1024,false,2048],[8,1,2048,false,2048],[10,1,4096,true,2048]]");
  const json resumed =
      replay(folder.path("resumed.json"), {"--growth-interval", "3", "--growth-tracker", "2"});
  CHECK(resumed["reproduced"] == false);
  CHECK(resumed["first_difference"]["step"] == 10);
  CHECK(holds(resumed["remarks"].dump(), "steps are missing before step 10"));
  CHECK(holds(resumed["remarks"].dump(), "not the one after the step before"));
  tests::write_text(folder.path("floor.json"), "[[0,1,1,true,1],[1,1,1,true,1]]");
  CHECK(replay(folder.path("floor.json"), {"--preset", "keras2"})["reproduced"] == true);
  const json raised = replay(folder.path("floor.json"), {"--preset", "deepspeed"});
  CHECK(raised["reproduced"] == false);
  CHECK(raised["first_difference"]["step"] == 1);
  CHECK(raised["alarms"][0]["alarm"] == "raised");
}

TEST_CASE("scaler replay: a trace decides what overflows, and which tensor forced it") {
  const TemporaryFolder folder;
  const auto tensor = [](const std::string& name, std::vector<float> values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return formats::owning_tensor(name, formats::fp32, formats::Packing::container,
                                  {static_cast<std::int64_t>(values.size())}, std::move(bytes));
  };
  // FP16's overflow begins at 65520: 60 * 1024 is in, 64 * 1024 out.
  const std::vector tensors = {
      tensor("step0.out.wgrad", {60}),   tensor("step0.fc.wgrad", {1, -64, 2}),
      tensor("step0.fc.weight", {1e9F}), tensor("step1.fc.wgrad", {60}),
      tensor("step2.fc.wgrad", {0, 60}), tensor("step3.fc.wgrad", {60}),
      tensor("step4.fc.wgrad", {1})};
  formats::write_tensors(folder.path("t.safetensors"), {}, tensors);
  const json document =
      replay(folder.path("t.safetensors"), {"--init-scale", "2^10", "--growth-interval", "2"});
  const auto scales = [](const json& steps) {
    std::vector<double> all;
    for (const json& step : steps) all.push_back(step["scale_after"].get<double>());
    return all;
  };
  CHECK(scales(document["steps"]) == std::vector<double>{512, 512, 1024, 1024, 2048});
  const json& cause = document["steps"][0]["forced_by"];
  REQUIRE(cause.size() == 1);
  CHECK(cause[0]["tensor"] == "step0.fc.wgrad");
  CHECK(cause[0]["index"] == 1);
  CHECK(cause[0]["scaled_amax"] == 65536);
  CHECK(document["skips"] == 1);
  const json larger = replay(folder.path("t.safetensors"), {"--init-scale", "2^20"});
  REQUIRE(larger["steps"][0]["forced_by"].size() == 2);  // the largest first
  CHECK(larger["steps"][0]["forced_by"][1]["tensor"] == "step0.out.wgrad");
  CHECK_FALSE(document.contains("reproduced"));
  // BF16 has room.
  CHECK(replay(folder.path("t.safetensors"), {"--format", "bf16"})["skips"] == 0);
  // The recorded gradients may be scaled already; the sidecar says so.
  tests::write_text(folder.path("t.safetensors.json"), R"({"loss_scale": 1024})");
  CHECK(replay(folder.path("t.safetensors"), {"--init-scale", "2^20"})["skips"] == 1);
  const json all = replay(folder.path("t.safetensors"), {"--init-scale", "2^20", "--compare"});
  CHECK(all["scalers"].size() == 7);
  CHECK(all["scalers"][5]["scaler"]["preset"] == "megatron");
  CHECK(all["scalers"][5]["final_scale"] == 0x1p20);  // forgiven
  CHECK(all["scalers"][4]["final_scale"] == 0x1p19);
  CHECK(run_command({"scaler", "replay", folder.path("t.safetensors"), "--mode", "x"}).status == 2);

  formats::write_tensors(folder.path("nameless.safetensors"), {}, std::vector{tensor("a", {1})});
  const CommandResult nameless =
      run_command({"scaler", "replay", folder.path("nameless.safetensors")});
  CHECK(nameless.status == 2);
  CHECK(holds(nameless.error, "no step"));
  CHECK(replay(trace, {"--init-scale", "2^32"})["skips"] == 2);
}

TEST_CASE("scaler schedule: overflows as they are given") {
  json document = scaler({"schedule", "overflow*166,clean"});
  CHECK(document["steps"].size() == 167);
  CHECK(document["steps"][164]["scale_after"] == 0x1p-149);
  CHECK(document["steps"][165]["scale_after"] == 0);
  document = scaler({"schedule", "clean*2", "--preset", "keras3", "--growth-interval", "1",
                     "--init-scale", "2^126"});
  CHECK(document["steps"][1]["scale_after"] == "Infinity");
  CHECK(document["alarms"][0]["alarm"] == "infinite");
  document = scaler({"schedule", "overflow*40", "--preset", "deepspeed"});
  CHECK(document["steps"].size() == 33);  // it raises
  CHECK(scaler({"schedule", "clean,overflow", "--compare"})["scalers"].size() == 7);
  for (const char* bad : {"", "clean*", "clean*-1", "dirty", "clean,", "clean*99999999999999999"})
    CHECK(run_command({"scaler", "schedule", bad}).status == 2);
  const CommandResult text = run_command({"scaler", "schedule", "overflow*5"});
  CHECK(holds(text.out, "4 steps in a row were skipped"));
}

TEST_CASE(
    "a picture has the log's scale wherever that changes, not where the scaler's does alone") {
  tools::ScalerLog log;
  const std::vector<double> scales = {65536, 65536, 32768, 32768, 31000, 31000};
  for (std::size_t i = 0; i < scales.size(); ++i)
    log.rows.push_back({i, {}, scales[i], i == 2, {}});
  const experiments::LossScaler pytorch(experiments::find_scaler("pytorch").value());
  const experiments::Figure figure = tools::scale_figure({tools::replay_log(pytorch, log, 0)});
  const experiments::Curve& logged = figure.curves.back();
  CHECK(logged.name == "pytorch, log");
  CHECK(logged.x == std::vector<double>{0, 2, 3, 4, 5});
  CHECK(logged.y == std::vector<double>{65536, 32768, 32768, 31000, 31000});
}

TEST_CASE("scaler presets: a row for each") {
  CHECK(scaler({"presets"})["presets"].size() == 7);
  CHECK(holds(run_command({"scaler", "presets"}).out, "megatron"));
}

// What `guardbit trace` reads, and what it refuses.

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/files/npz.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/torch_scratch.hpp"
#include "tests/places.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace {

using namespace guardbit;
using namespace formats::pickled;
using nlohmann::json;
using tests::CommandResult;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;
using tests::tensor_of;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_sanitizer = true;
#elif defined(__has_feature)
constexpr bool address_sanitizer = __has_feature(address_sanitizer);
#else
constexpr bool address_sanitizer = false;
#endif

const std::string traces = tests::in_source("tests/golden/traces/");

json trace(std::vector<std::string> words) {
  words.insert(words.begin(), "trace");
  words.insert(words.end(), {"--json", "--formats", "fp16", "--scales", "0"});
  return tests::json_of(words);
}

std::string words_of(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

bool has_hdf5() {
  return run_command({"trace", traces + "datasets.h5"}).error.find("need") == std::string::npos &&
         run_command({"trace", traces + "datasets.h5"}).error.find("build") == std::string::npos;
}

TEST_CASE("trace: what torch.save wrote, with step and scale from the file") {
  const TemporaryFolder folder;
  const std::string value =
      dict({text("step"), number(9), text("loss_scale"), number(1024), text("grads"),
            dict({text("fc1.weight"), tensor(storage("FloatStorage", "0", 3), 0, {3}, {1})})});
  tests::write_text(folder.path("x.pt"),
                    formats::torch_file(value, {{"0", words_of({0x1p-26F, 1.0F, 0.0F})}}));
  const json document = trace({folder.path("x.pt")});
  REQUIRE(document["tensors"].size() == 1);
  const json& one = document["tensors"][0];
  CHECK(one["tensor"] == "fc1.weight");
  CHECK(one["role"] == "wgrad");
  CHECK(one["step"] == 9);
  CHECK(one["loss_scale"] == 1024);
  CHECK(one["formats"]["fp16"]["underflow"]["0"] == 1);
}

TEST_CASE("trace: HDF5 datasets are read as NumPy wrote them", "[tool]") {
  if (!has_hdf5()) {
    WARN("SKIPPED: no HDF5 here");
    return;
  }
  const json document = trace({traces + "datasets.h5"});
  std::vector<std::string> names;
  for (const json& one : document["tensors"]) names.push_back(one["name"]);
  CHECK(names == std::vector<std::string>{"big_endian.grad", "deep/rank_2/fc2.grad", "empty.grad",
                                          "fc1.grad", "half.act", "raw.bf16", "scalar.grad"});
  const json& plain = document["tensors"][3];
  CHECK(plain["step"] == 5);
  CHECK(plain["loss_scale"] == 1024);
  CHECK(plain["shape"] == json{4, 6});
  CHECK(plain["zeros"] == 1);
  CHECK(plain["amax"] == 12 * 0x1p-26);
  CHECK(plain["sum_abs"] == 144 * 0x1p-26);
  CHECK(plain["formats"]["fp16"]["underflow"]["0"] == 4);  // 1 and 2 times 2^-26, either sign
  for (const std::size_t same : {0U, 1U}) {
    for (const char* key : {"zeros", "exact_sum_abs", "exact_sum_squares", "binades", "formats"})
      CHECK(document["tensors"][same][key] == plain[key]);
  }
  CHECK(document["tensors"][1]["rank"] == 2);
  CHECK(document["tensors"][4]["format"] == "fp16");
  CHECK(document["tensors"][5]["format"] == "bf16");
  CHECK(document["skipped"].size() == 2);

  const TemporaryFolder folder;
  // Standard input gives the same.
  const CommandResult piped =
      run_shell(folder, "guardbit trace - --json < '" +
                            std::filesystem::absolute(traces + "datasets.h5").string() + "'");
  CHECK(piped.error.empty());
  CHECK(json::parse(piped.out)["tensors"][3]["exact_sum_abs"] == plain["exact_sum_abs"]);
  const std::string whole = tests::read_text(traces + "datasets.h5");
  tests::write_text(folder.path("half.h5"), whole.substr(0, whole.size() / 2));
  tests::write_text(folder.path("none.h5"), "");
  for (const std::string& file : {folder.path("half.h5"), folder.path("none.h5"),
                                  traces + "bomb.h5", traces + "external.h5"}) {
    const CommandResult result = run_command({"trace", file});
    CAPTURE(file, result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
  }
}

TEST_CASE("trace: hostile files are one line each, or a stated skip with the rest counted") {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& name, const std::string& content) {
    tests::write_text(folder.path(name), content);
  };
  const std::string three = storage("FloatStorage", "0", 3);
  const std::string safe =
      formats::torch_file(tensor(three, 0, {3}, {1}), {{"0", words_of({1.0F, 2.0F, 3.0F})}});
  put("call.pt",
      formats::torch_file(global("os", "system") + tuple({text("touch owned")}) + "R", {}));
  put("stack.pt", formats::torch_file("\x8c\x08"
                                      "builtins\x8c\x04"
                                      "eval\x93" +
                                          tuple({text("open('owned', 'w')")}) + "R",
                                      {}));
  put("past.pt", formats::torch_file(tensor(three, 1, {3}, {1}), {{"0", std::string(12, '\0')}}));
  put("short.pt", safe.substr(0, safe.size() / 2));
  put("empty.pt", "");
  put("legacy.pt", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.");
  put("empty.safetensors", "");
  put("empty.npy", "");
  put("empty.npz", "");
  put("empty.h5", "");
  const auto safetensors = [&](const std::string& name, const std::string& header) {
    put(name, formats::little_endian(header.size(), 8) + header + std::string(8, '\0'));
  };
  safetensors("overlap.safetensors", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})");
  safetensors("outside.safetensors", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})");
  safetensors("backwards.safetensors", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})");
  put("lies.npz", formats::zip_of({{"a.npy", "\x93NUMPY"}}));
  std::vector<std::string> bad;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(".")))
    bad.push_back(entry.path().filename().string());
  CHECK(bad.size() == 14);
  for (const std::string& name : bad) {
    const CommandResult result = run_command({"trace", folder.path(name)});
    CAPTURE(name, result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.find(name) != std::string::npos);
  }
  put("good.pt", safe);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector nans = {tensor_of("nans", {nan, nan}), tensor_of("none", {})};
  formats::write_safetensors(folder.path("nans.safetensors"), {}, nans);
  const json kept = trace({folder.path("."), "--keep-going"});
  CHECK(kept["tensors"].size() == 3);
  CHECK(kept["skipped"].size() == bad.size());
  CHECK(kept["first_nonfinite"]["name"] == "nans");
  CHECK(run_command({"trace", folder.path("."), "--json"}).status == 2);
  CHECK_FALSE(std::filesystem::exists("owned"));
  CHECK_FALSE(std::filesystem::exists(folder.path("owned")));
}

TEST_CASE("trace: an HDF5 file that crashes libhdf5 is one line", "[tool]") {
  if (!has_hdf5()) {
    WARN("SKIPPED: no HDF5 here");
    return;
  }
  const TemporaryFolder folder;
  // With this the memory that libhdf5 1.10 reads before it was written holds no zeros.
  const CommandResult result =
      tests::run_shell(folder, "MALLOC_PERTURB_=65 guardbit trace '" +
                                   tests::in_source("tests/golden/traces/crashing.h5") + "'");
  CAPTURE(result.error);
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  CHECK(is_one_error_line(result.error));
}

/// The most private memory that commands may take, until it goes away.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_DATA, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { ::setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

// 128 MiB of zeros are counted in less memory than that.
TEST_CASE("trace: deflated arrays are not unpacked whole, and bombs not at all", "[long]") {
  const TemporaryFolder folder;
  const auto zeros = [&](const std::string& name, std::size_t arrays) {
    const auto data = std::make_shared<std::vector<std::byte>>(std::size_t{64} << 20);
    std::vector<formats::Tensor> tensors;
    for (std::size_t i = 0; i < arrays; ++i) {
      tensors.push_back({"z" + std::to_string(i),
                         formats::fp32,
                         formats::Packing::container,
                         {std::int64_t{16} << 20},
                         *data,
                         data});
    }
    formats::write_npz(folder.path(name), tensors, formats::ZipMethod::deflated);
  };
  zeros("large.npz", 2);
  {
    // A sanitizer takes terabytes of addresses.
    std::optional<MemoryLimit> limit;
    if (!address_sanitizer) limit.emplace(rlim_t{100} << 20);
    CHECK(trace({folder.path("large.npz"), "--threads", "1"})["total"]["zeros"] == 32 << 20);
  }
  // Two MB that nothing compresses, of which the directory says that they are two GB.
  std::mt19937 random(1);
  std::vector<float> noise(std::size_t{1} << 19);
  for (float& x : noise) x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  formats::write_npz(folder.path("bomb.npz"), std::vector{tensor_of("noise", noise)},
                     formats::ZipMethod::deflated);
  std::string bomb = tests::read_text(folder.path("bomb.npz"));
  bomb.replace(bomb.find("PK\x01\x02") + 24, 4, formats::little_endian(2'000'000'000, 4));
  tests::write_text(folder.path("bomb.npz"), bomb);
  const CommandResult result = run_command({"trace", folder.path("bomb.npz")});
  CAPTURE(result.error);
  CHECK(result.status == 2);
  CHECK(is_one_error_line(result.error));
}

}  // namespace

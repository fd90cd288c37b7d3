#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "emulator/capture/capture.hpp"
#include "emulator/model/mma.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

// tools/scripts/rdna_captures.py, on headers of the form that AMD publishes: on some of our own,
// and on AMD's where GUARDBIT_RDNA_FIXTURES names a folder with them.
namespace {

using namespace guardbit;
namespace fs = std::filesystem;

/// A folder that is removed at the end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(fs::temp_directory_path() / ("guardbit_rdna_" + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool makes_captures(const fs::path& fixtures, const fs::path& folder) {
  const std::string command = "python3 '" + tests::in_source("tools/scripts/rdna_captures.py") +
                              "' '" + fixtures.string() + "' '" + folder.string() +
                              "' >/dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}

struct Agreement {
  std::int64_t outputs = 0, mismatches = 0;
};

Agreement agreement_of(const fs::path& capture_file) {
  emulator::Capture capture = emulator::read_capture(capture_file.string());
  emulator::BoundBatch& x = capture.operands;
  std::vector<std::byte> computed(
      static_cast<std::size_t>(x.outputs() * x.recorded.container_bytes));
  emulator::MatrixBatch batch = x.batch;
  batch.d = emulator::codes_of(capture.instruction.d, computed.data());
  emulator::execute(capture.instruction, batch, 0, batch.count);
  const auto found = emulator::compare(
      capture.instruction, batch, x.recorded,
      emulator::codes_of(capture.instruction.d, std::as_const(computed).data()), 1);
  return {x.outputs(), found.mismatches};
}

}  // namespace

TEST_CASE("captures of published answers: the script reads lists of cases") {
  const TemporaryFolder fixtures("headers"), captures("captures");
  // The last answer is wrong.
  std::ofstream(fixtures.path() / "gfx1201_cases.h") << R"(
// Comments with 0x1 are skipped.
inline constexpr std::array<Case, 1> kGfx12DotF16Cases = {{
    {0x3c003c00u, 0x3c003c00u, 0xc0000000u, 0x00000000u},
}};
inline constexpr std::array<Case, 1> kGfx12DotBF16Cases = {{
    {0x3f803f80u, 0x3f803f80u, 0x3f800000u, 0x40400000u},
}};
inline constexpr std::array<Wmma, 1> kGfx12WmmaF16Cases = {{
    {{0x6c00, 0x0, 0x0000, 0x0000, 0x3c00, 0x0, 0x0, 0x0, 0x6c00, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0},
     {0x6c00, 0x0000, 0x0000, 0x0000, 0x3c00, 0x0, 0x0, 0x0, 0xec00, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0},
     0x00000000u, 0x3f800000u, 0x00000000u},
}};
inline constexpr std::array<Wmma, 1> kGfx12WmmaBF16Cases = {{
    {{0x3f80, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0},
     {0x3f80, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0},
     0x00000000u, 0x3f800000u, 0x3f800001u},
}};
)";
  REQUIRE(makes_captures(fixtures.path(), captures.path()));
  const auto mismatches = [&](const std::string& name) {
    const Agreement found = agreement_of(captures.path() / (name + ".safetensors"));
    CHECK(found.outputs == (name.find("wmma") == std::string::npos ? 1 : 256));
    return found.mismatches;
  };
  CHECK(mismatches("gfx1201-v_dot2_f32_f16") == 0);
  CHECK(mismatches("gfx1201-v_dot2_f32_bf16") == 0);
  CHECK(mismatches("gfx1201-v_wmma_f32_16x16x16_f16_w32") == 0);
  CHECK(mismatches("gfx1201-v_wmma_f32_16x16x16_f16_w64") == 0);
  CHECK(mismatches("gfx1201-v_wmma_f32_16x16x16_bf16_w32") == 0);
  CHECK(mismatches("gfx1201-v_wmma_f32_16x16x16_bf16_w64") == 256);
  CHECK_FALSE(makes_captures(captures.path() / "nothing", captures.path()));
}

TEST_CASE("RDNA: the published answers of two Radeon cards are reproduced", "[shared]") {
  const char* const place = std::getenv("GUARDBIT_RDNA_FIXTURES");
  if (place == nullptr) {
    std::cout << "SKIPPED: GUARDBIT_RDNA_FIXTURES names no folder with AMD's float_dot headers\n";
    return;
  }
  const TemporaryFolder captures("published");
  REQUIRE(makes_captures(place, captures.path()));
  std::int64_t outputs = 0;
  for (const auto& entry : fs::directory_iterator(captures.path())) {
    INFO(entry.path().filename().string());
    const Agreement found = agreement_of(entry.path());
    CHECK(found.mismatches == 0);
    outputs += found.outputs;
  }
  CHECK(outputs >= 700);
}

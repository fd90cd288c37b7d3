#include "tests/mutation/recordings.hpp"

#include <algorithm>
#include <filesystem>

#include "emulator/capture/capture.hpp"
#include "emulator/model/mma.hpp"
#include "tests/places.hpp"

namespace guardbit::tests {

namespace {

/// One output of a batch, element (m, n) of an execution.
struct Place {
  std::int64_t execution = 0;
  int m = 0, n = 0;
};

TestVector dense_vector(const emulator::Capture& capture, const Place& at, std::uint64_t d) {
  const emulator::GatheredOperands operands =
      emulator::gather(capture.instruction, capture.operands.batch, at.execution, at.m, at.n);
  const auto list = [](const auto& codes, std::size_t size) {
    return std::vector<std::uint64_t>(codes.begin(),
                                      codes.begin() + static_cast<std::ptrdiff_t>(size));
  };
  TestVector v;
  v.purpose = "recorded";
  v.x = {list(operands.a, operands.count), list(operands.b, operands.count),
         list(operands.a_scale, operands.scales), list(operands.b_scale, operands.scales),
         operands.c};
  v.d = d;
  return v;
}

/// The same output with A, positions and all of B's column as the instruction got them.
TestVector sparse_vector(const emulator::Capture& capture, const Place& at, TestVector v) {
  const emulator::MatrixBatch& batch = capture.operands.batch;
  const auto stored = static_cast<std::int64_t>(v.x.a.size());
  const emulator::Shape& shape = batch.shape;
  v.x.b.clear();
  for (std::int64_t s = 0; s < stored; ++s) {
    v.e.push_back(batch.e[(at.execution * shape.m + at.m) * stored + s]);
  }
  for (int k = 0; k < shape.k; ++k) {
    const std::uint64_t code = batch.b[(at.execution * shape.k + k) * shape.n + at.n];
    v.x.b.push_back(emulator::negated(capture.instruction.b, code, batch.modifiers.negate_b));
  }
  return v;
}

}  // namespace

std::vector<RecordedInstruction> read_recordings(std::int64_t outputs) {
  const auto folder = std::filesystem::path(tests::in_source("tests/golden"));
  std::vector<std::string> files;
  if (std::filesystem::exists(folder)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      // Calls of libraries, programs and gradients record no single instruction.
      const std::string of = entry.path().parent_path().filename().string();
      if (entry.path().extension() == ".safetensors" && of != "atlas" && of != "gemm" &&
          of != "compiled" && of != "nccl" && of != "operators" && of != "traces")
        files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<RecordedInstruction> recordings;
  for (const std::string& file : files) {
    const emulator::Capture capture = emulator::read_capture(file);
    const emulator::Shape& shape = capture.operands.batch.shape;
    const std::int64_t total = capture.operands.outputs();
    RecordedInstruction recorded{capture.instruction, {}, {}};
    for (std::int64_t i = 0; i < std::min(total, outputs); ++i) {
      const std::int64_t at = i * total / std::min(total, outputs);
      const Place place{at / (shape.m * shape.n), static_cast<int>(at / shape.n % shape.m),
                        static_cast<int>(at % shape.n)};
      TestVector v = dense_vector(capture, place, capture.operands.recorded[at]);
      MatrixInstruction dense = capture.instruction;
      dense.sparsity = {};
      if (computed(dense, v) != v.d) continue;
      if (capture.instruction.sparsity.group_elements != 0) {
        recorded.sparse.push_back(sparse_vector(capture, place, v));
      }
      recorded.dense.push_back(std::move(v));
    }
    recordings.push_back(std::move(recorded));
  }
  return recordings;
}

}  // namespace guardbit::tests

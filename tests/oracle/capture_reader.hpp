#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace guardbit::oracle {

/// A second reader of safetensors files, for trusted recordings only: it shares no code with the
/// project's.
struct RecordedTensor {
  std::string dtype;  // "F16", "U8" ...
  std::vector<std::size_t> shape;
  std::vector<std::uint64_t> codes;  // one per element, row-major
};
struct Recording {
  std::map<std::string, std::string> metadata;
  std::map<std::string, RecordedTensor> tensors;
};
/// Throws std::runtime_error when the file is not what it should be.
Recording read_recording(const std::filesystem::path& file);

/// The folder of recordings outside the clone: $GUARDBIT_SHARED, else ../shared; nothing where it
/// is absent.
std::optional<std::filesystem::path> shared_folder();

}  // namespace guardbit::oracle

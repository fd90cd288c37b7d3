#pragma once

#include <optional>
#include <string>

#include "formats/files/tensor_file.hpp"

// Tensors in memory that read_tensors and open_tensors find by a name, as they find a file by its
// path: for programs whose arrays come from elsewhere.
namespace guardbit::formats {

/// While it lives, `name` is a file of these tensors. Names begin with '<', so that none is taken
/// for a path by accident.
class MemoryFile {
 public:
  explicit MemoryFile(TensorFile content);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  /// "<arrays 3>": of this one alone
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// What the name means, if it means one; from any thread.
std::optional<TensorFile> find_memory_file(const std::string& name);

}  // namespace guardbit::formats

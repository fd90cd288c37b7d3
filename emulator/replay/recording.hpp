#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/replay/call.hpp"
#include "formats/files/mapped_file.hpp"

// A recording: every operator that a program called, with its operands and results, in one
// safetensors file.
namespace guardbit::emulator::replay {

struct Recording {
  std::string path;
  /// without the list of calls
  std::map<std::string, std::string> metadata;
  /// In the order of execution. Tensors of equal content view the same bytes of the file.
  std::vector<Call> calls;
  /// PyTorch's version, as in 2.11.0+cu130; empty where it is not said
  std::string library;
  formats::MappedFile file;
};

/// Recordings that name no devices: tensors that the CPU's generator drew, and what was computed of
/// them before they were copied, are taken for the CPU's.
/// formats::Error for whatever does not fit: one line with file and place.
Recording read_recording(const std::string& path);
Recording read_recording(const formats::MappedFile& file);

/// Lets the system take back the memory of the file's pages, which are read again when needed. Only
/// for recordings whose file map_file gave: other memory would be lost.
void forget_pages(const Recording& recording);

}  // namespace guardbit::emulator::replay

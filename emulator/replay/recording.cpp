#include "emulator/replay/recording.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "emulator/replay/call_text.hpp"
#include "formats/files/safetensors.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::emulator::replay {
namespace {

std::string taken(std::map<std::string, std::string>& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return "";
  std::string value = std::move(found->second);
  metadata.erase(found);
  return value;
}

}  // namespace

Recording read_recording(const formats::MappedFile& file) {
  Recording recording;
  recording.path = file.path;
  recording.file = file;
  const std::string where = formats::printable(file.path);
  formats::TensorFile tensors = formats::read_safetensors(file);
  if (const auto kind = tensors.metadata.find("kind");
      kind != tensors.metadata.end() && kind->second != "recording")
    throw formats::Error(
        where, "not a recording of operators but of kind " + formats::in_quotes(kind->second));
  const std::string calls = taken(tensors.metadata, "ops");
  if (calls.empty())
    throw formats::Error(where, "not a recording of operators: its metadata has no list \"ops\"");
  std::unordered_map<std::string_view, Tensor> contents;
  for (const formats::Tensor& tensor : tensors.tensors) {
    if (tensor.packing != formats::Packing::container)
      throw formats::Error(where + ": tensor " + formats::in_quotes(tensor.name),
                           "recordings hold no codes of less than a byte");
    contents.emplace(tensor.name, Tensor{.type = tensor.format,
                                         .shape = tensor.shape,
                                         .stride = operators::contiguous_stride(tensor.shape),
                                         .offset = 0,
                                         .is_on_gpu = true,
                                         .bytes = tensor.bytes,
                                         .owner = nullptr});
  }
  recording.calls = parse_calls(where + ": ops", calls, [&](std::string_view name) {
    const auto found = contents.find(name);
    return found == contents.end() ? nullptr : &found->second;
  });
  recording.metadata = std::move(tensors.metadata);
  if (const auto version = recording.metadata.find("torch"); version != recording.metadata.end())
    recording.library = version->second;
  return recording;
}

Recording read_recording(const std::string& path) {
  return read_recording(formats::map_file(path));
}

void forget_pages(const Recording& recording) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(recording.file.bytes.data());
  const auto end = begin + recording.file.bytes.size();
  const auto first = (begin + page - 1) / page * page, last = end / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace guardbit::emulator::replay

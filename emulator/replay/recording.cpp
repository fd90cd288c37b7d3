#include "emulator/replay/recording.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "emulator/replay/call_text.hpp"
#include "emulator/replay/json_reader.hpp"
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

using Contents = std::unordered_set<const std::byte*>;

bool is_copy(const Call& call) {
  return call.op.starts_with("aten._to_copy.") || call.op.starts_with("aten.copy_.");
}

bool makes_cpu_tensors(const Call& call) {
  const Value* device = call.find(std::numeric_limits<std::size_t>::max(), "device");
  const auto* name = device == nullptr ? nullptr : std::get_if<std::string>(&device->content);
  return name != nullptr && name->starts_with("cpu");
}

/// Which calls are the CPU's, in a recording that does not say so.
void infer_devices(std::vector<Call>& calls) {
  Contents of_cpu;
  for (Call& call : calls) {
    bool is_of_cpu = makes_cpu_tensors(call);
    for (const Value& value : call.args) {
      for (const Tensor* tensor : tensors_of(value)) {
        const bool is_known = tensor->rank() > 0 && of_cpu.contains(tensor->bytes.data());
        is_of_cpu = is_of_cpu || is_known;
      }
    }
    const Value* device = call.find(std::numeric_limits<std::size_t>::max(), "device");
    if (is_copy(call) &&
        (device != nullptr ? !makes_cpu_tensors(call) : call.op.starts_with("aten.copy_."))) {
      // From there on the content may be the GPU's.
      for (const Value& value : call.args) {
        for (const Tensor* tensor : tensors_of(value)) of_cpu.erase(tensor->bytes.data());
      }
      continue;
    }
    if (!is_of_cpu) continue;
    call.is_likely_of_cpu = true;
    for (const Tensor* tensor : tensors_of(call.out)) of_cpu.insert(tensor->bytes.data());
  }
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
                                         .owner = file.owner});
  }
  recording.calls = parse_calls(where + ": ops", calls, [&](std::string_view name) {
    const auto found = contents.find(name);
    return found == contents.end() ? nullptr : &found->second;
  });
  // The first recordings lack a kind, and the tensors' devices.
  if (!tensors.metadata.contains("kind")) infer_devices(recording.calls);
  if (const std::string flags = taken(tensors.metadata, "flags"); !flags.empty())
    tensors.metadata.merge(JsonReader(where + ": flags", flags).flags());
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

#include "emulator/capture/function_capture.hpp"

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/functions/function_toolkits.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;
using formats::Tensor;

std::string text_of(const formats::TensorFile& file, const std::string& key,
                    const std::string& where) {
  const auto entry = file.metadata.find(key);
  if (entry == file.metadata.end())
    throw Error(where, "not a capture of a function: metadata '" + key + "' is missing");
  return entry->second;
}

const Tensor& tensor_of(const formats::TensorFile& file, const char* name,
                        const formats::Format& format, const FunctionCapture& capture,
                        const std::string& where) {
  const Tensor* const tensor = file.find(name);
  const std::string function(capture.function->name);
  if (tensor == nullptr)
    throw Error(where, "tensor '" + std::string(name) + "' is missing, which " + function + " has");
  if (tensor->format != format)
    throw Error(where, "tensor '" + std::string(name) + "' is " + formats::name_of(tensor->format) +
                           "; of " + function + " it is " + formats::name_of(format));
  return *tensor;
}

/// The function that the metadata names, as the toolkit that it names compiles it.
void find_function(const formats::TensorFile& file, const std::string& where,
                   FunctionCapture& capture) {
  if (const std::string version = text_of(file, "capture", where); version != "1")
    throw Error(where, "capture version " + formats::in_quotes(version) + " is not known", "1");
  capture.arch = text_of(file, "arch", where);
  capture.function = &require_function(capture.arch, text_of(file, "function", where), where);
  const auto toolkit = file.metadata.find("toolkit");
  if (toolkit == file.metadata.end()) return;
  require_function_toolkit(*capture.function, toolkit->second, where + ": toolkit");
}

}  // namespace

bool is_function_capture(const formats::TensorFile& file) {
  const auto kind = file.metadata.find("kind");
  return kind != file.metadata.end() && kind->second == "function";
}

FunctionCapture make_function_capture(const formats::TensorFile& file, const std::string& where) {
  FunctionCapture capture;
  capture.path = where;
  find_function(file, where, capture);
  const Function& function = *capture.function;
  const Tensor& first = tensor_of(file, "d", function.formats.results[0], capture, where);
  const auto count = static_cast<std::size_t>(formats::element_count(first.shape));
  for (std::size_t i = 0; i < function.results; ++i) {
    const Tensor& d =
        tensor_of(file, result_names.at(i), function.formats.results.at(i), capture, where);
    if (d.shape != first.shape) throw Error(where, "tensors 'd' and 'd1' have different shapes");
    capture.recorded.push_back(formats::codes_of(d));
  }
  for (std::size_t i = 0; i < function.operands; ++i) {
    const Tensor& x =
        tensor_of(file, operand_names.at(i), function.formats.operands.at(i), capture, where);
    std::vector<std::uint64_t> codes = formats::codes_of(x);
    if (x.shape.empty() && codes.size() == 1) codes.resize(count, codes[0]);
    if (codes.size() != count || (!x.shape.empty() && x.shape != first.shape))
      throw Error(where, "tensors '" + std::string(operand_names.at(i)) +
                             "' and 'd' have different shapes");
    capture.operands.push_back(std::move(codes));
  }
  for (std::size_t i = function.operands; i < most_operands; ++i)
    if (file.find(operand_names.at(i)) != nullptr)
      throw Error(where, "tensor '" + std::string(operand_names.at(i)) +
                             "' is one too many: " + std::string(function.name) + " takes " +
                             std::to_string(function.operands));
  return capture;
}

}  // namespace guardbit::emulator

#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/files/tensor_file.hpp"
#include "formats/files/tensor_output.hpp"
#include "formats/tensors/tensor.hpp"
#include "tools/cast/cast_options.hpp"
#include "tools/cast/cast_report.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"

// The loop of `cast` over the tensors of a file, whatever it makes of each.
namespace guardbit::tools {

/// To be told of the elements of a tensor that are done; throws where the user wants an end.
using CastProgress = std::function<void(std::size_t done)>;

/// What becomes of a tensor.
template <class Result>
struct Casting {
  /// name of the format
  std::string to;
  /// The tensors that one becomes, without their bytes.
  std::function<std::vector<formats::Tensor>(const formats::Tensor&)> parts;
  /// Makes them; a writer for each.
  std::function<Result(const formats::Tensor&, const std::vector<formats::TensorWriter>& parts,
                       const CastProgress&)>
      convert;
};

/// Casts the tensors one after the other; `writers` has those of each tensor's parts.
template <class Result>
std::vector<Result> cast_tensors(const std::vector<formats::Tensor>& tensors,
                                 const std::vector<std::vector<formats::TensorWriter>>& writers,
                                 const Casting<Result>& casting, const Interruption& interruption) {
  const auto size = [](const formats::Tensor& tensor) {
    return static_cast<std::size_t>(formats::element_count(tensor.shape));
  };
  std::size_t total = 0, before = 0;
  for (const formats::Tensor& tensor : tensors) total += size(tensor);
  ProgressLine progress("converting", total);
  std::vector<Result> results;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    results.push_back(casting.convert(tensors[i], writers[i], [&](std::size_t done) {
      interruption.check(": nothing written");
      progress.update(before + done);
    }));
    before += size(tensors[i]);
  }
  return results;
}

/// Casts tensors of a file and writes what they become while it is made; the exit status. No file
/// appears where the user interrupts it.
template <class Result>
int run_cast(const CastOptions& options, const formats::TensorFile& file,
             const std::vector<formats::Tensor>& tensors, const Casting<Result>& casting) {
  const Interruption interruption;
  std::vector<formats::Tensor> described;
  std::vector<std::vector<formats::TensorWriter>> writers(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::vector<formats::Tensor> parts = casting.parts(tensors[i]);
    writers[i].resize(parts.size());
    std::ranges::move(parts, std::back_inserter(described));
  }
  formats::TensorOutput output(options.output, file.metadata, std::move(described));
  std::size_t part = 0;
  for (std::vector<formats::TensorWriter>& of_tensor : writers)
    for (formats::TensorWriter& writer : of_tensor) writer = output.writer(part++);
  const std::vector<Result> results = cast_tensors(tensors, writers, casting, interruption);
  output.commit();
  if (options.json) {
    nlohmann::ordered_json document = {{"input", options.input}, {"output", options.output}};
    document["tensors"] = nlohmann::ordered_json::array();
    for (const Result& result : results) document["tensors"].push_back(to_json(result));
    print_json(document);
  } else {
    print_table(results, casting.to);
  }
  interruption.check(" after the output was written");
  return 0;
}

}  // namespace guardbit::tools

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
#include "tools/console/interruption.hpp"
#include "tools/console/terminal.hpp"

// The loop of `cast` over the tensors of a file, whatever it makes of each.
namespace guardbit::tools {

/// To be told of the elements of a tensor that are done; throws where the user wants an end.
using CastProgress = std::function<void(std::size_t done)>;

/// What becomes of a tensor, and how that is written, printed and put into JSON.
template <class Result>
struct Casting {
  /// The tensors that one becomes, without their bytes.
  std::function<std::vector<formats::Tensor>(const formats::Tensor&)> parts;
  /// Makes them; a writer for each.
  std::function<Result(const formats::Tensor&, const std::vector<formats::TensorWriter>& parts,
                       const CastProgress&)>
      convert;
  std::function<void(const std::vector<Result>&)> print;
  std::function<nlohmann::ordered_json(const Result&)> to_json;
};

/// Casts tensors of a file and writes what they become while it is made; the exit status. No file
/// appears where the user interrupts it.
template <class Result>
int run_cast(const CastOptions& options, const formats::TensorFile& file,
             const std::vector<formats::Tensor>& tensors, const Casting<Result>& casting) {
  const Interruption interruption;
  std::vector<Result> results;
  results.reserve(tensors.size());
  std::vector<formats::Tensor> described;
  for (const formats::Tensor& tensor : tensors)
    std::ranges::move(casting.parts(tensor), std::back_inserter(described));
  formats::TensorOutput output(options.output, file.metadata, std::move(described));
  std::size_t part = 0;
  {
    std::size_t total = 0;
    for (const formats::Tensor& tensor : tensors)
      total += static_cast<std::size_t>(formats::element_count(tensor.shape));
    ProgressLine progress("converting", total);
    std::size_t before = 0;
    for (const formats::Tensor& tensor : tensors) {
      std::vector<formats::TensorWriter> parts;
      for (std::size_t n = casting.parts(tensor).size(); n > 0; --n)
        parts.push_back(output.writer(part++));
      results.push_back(casting.convert(tensor, parts, [&](std::size_t done) {
        interruption.check(": nothing written");
        progress.update(before + done);
      }));
      before += static_cast<std::size_t>(formats::element_count(tensor.shape));
    }
  }
  output.commit();
  if (options.json) {
    nlohmann::ordered_json document = {{"input", options.input}, {"output", options.output}};
    document["tensors"] = nlohmann::ordered_json::array();
    for (const Result& result : results) document["tensors"].push_back(casting.to_json(result));
    std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    casting.print(results);
  }
  interruption.check(" after the output was written");
  return 0;
}

}  // namespace guardbit::tools

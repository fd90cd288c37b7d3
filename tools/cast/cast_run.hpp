#pragma once

#include <cstddef>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/files/array_file.hpp"
#include "formats/tensors/tensor.hpp"
#include "tools/cast/cast_options.hpp"
#include "tools/console/interruption.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

/// To be told of the elements of a tensor that are done; throws where the user wants an end.
using CastProgress = std::function<void(std::size_t done)>;

/// What becomes of a tensor, and how that is written, printed and put into JSON.
template <class Result>
struct Casting {
  std::function<Result(const formats::Tensor&, const CastProgress&)> convert;
  std::function<std::vector<formats::Tensor>(const Result&)> outputs;
  std::function<void(const std::vector<Result>&)> print;
  std::function<nlohmann::ordered_json(const Result&)> to_json;
};

/// Casts tensors of a file and writes what they become; the exit status. Nothing is written where
/// the user interrupts it.
template <class Result>
int run_cast(const CastOptions& options, const formats::TensorFile& file,
             const std::vector<formats::Tensor>& tensors, const Casting<Result>& casting) {
  struct Interrupted {};
  const Interruption interruption;
  std::vector<Result> results;
  results.reserve(tensors.size());
  std::vector<formats::Tensor> outputs;
  try {
    std::size_t total = 0;
    for (const formats::Tensor& tensor : tensors)
      total += static_cast<std::size_t>(formats::element_count(tensor.shape));
    ProgressLine progress("converting", total);
    std::size_t before = 0;
    for (const formats::Tensor& tensor : tensors) {
      results.push_back(casting.convert(tensor, [&](std::size_t done) {
        if (interruption.asked_for()) throw Interrupted{};
        progress.update(before + done);
      }));
      before += static_cast<std::size_t>(formats::element_count(tensor.shape));
      for (formats::Tensor& output : casting.outputs(results.back()))
        outputs.push_back(std::move(output));
    }
  } catch (const Interrupted&) {
    std::cerr << "guardbit: interrupted: nothing written\n";
    return interruption.exit_status();
  }
  formats::write_tensors(options.output, file.metadata, outputs);
  if (options.json) {
    nlohmann::ordered_json document = {{"input", options.input}, {"output", options.output}};
    document["tensors"] = nlohmann::ordered_json::array();
    for (const Result& result : results) document["tensors"].push_back(casting.to_json(result));
    std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    casting.print(results);
  }
  return interruption.asked_for() ? interruption.exit_status() : 0;
}

}  // namespace guardbit::tools

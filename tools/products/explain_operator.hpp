#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "emulator/operator_search/operator_search.hpp"

// `explain --operator`: the rule behind a reduction, a softmax or a norm.
namespace guardbit::tools {

/// What the command line says.
struct AskedOperator {
  /// a word of SearchedOperator, and FILE or FILE:TENSOR
  std::string op, input, output;
  std::optional<std::int64_t> dimension;
  double epsilon = 1e-5;
};

/// Reads the files. formats::Error that begins with the option for whatever does not fit.
emulator::OperatorQuestion operator_question(const AskedOperator& asked, int threads);

void print_operator_answer(std::ostream& out, const AskedOperator& asked,
                           const emulator::OperatorAnswer& answer);
nlohmann::ordered_json operator_answer_json(const AskedOperator& asked,
                                            const emulator::OperatorAnswer& answer);

}  // namespace guardbit::tools

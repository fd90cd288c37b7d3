#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace guardbit::tools {

/// Columns of a loss scaler's log.
enum class ScalerColumn : std::size_t { step, loss, scale, overflow, scale_after };
inline constexpr std::array<std::string_view, 5> scaler_column_titles = {"step", "loss", "scale",
                                                                         "overflow", "scale after"};

/// Columns that the user names: the name in the file.
using NamedColumns = std::map<ScalerColumn, std::string>;

/// Rows of cells that may be a run, where they lie, and what the columns are.
struct ScalerRows {
  /// keys that lead to it, joined by dots
  std::string path;
  std::vector<std::vector<nlohmann::json>> rows;
  std::array<std::optional<std::size_t>, scaler_column_titles.size()> places;
  /// that stand beside the rows
  std::map<std::string, double> parameters;
  /// by place, and no truth value among the cells
  bool is_guess = false;
  /// of a scale alone: what overflowed follows from the next row
  bool is_scale_alone = false;

  std::optional<std::size_t> place(ScalerColumn column) const {
    return places[static_cast<std::size_t>(column)];
  }
};

/// Everything in a JSON document that may be a run: arrays of arrays or of objects, and objects of
/// columns, at any depth.
/// Names that were seen go to `seen`.
std::vector<ScalerRows> find_scaler_rows(const nlohmann::json& document, const NamedColumns& named,
                                         std::vector<std::string>& seen);

/// A cell as a number; words for truth, infinity and NaN are numbers, too, and a tensor of one
/// element is its element.
std::optional<double> number_of_cell(const nlohmann::json& cell);

/// Without blanks and quotes at the ends.
std::string trimmed(std::string_view text);
std::vector<std::string> split_at(std::string_view text, char separator);

/// The names of columns that are understood: "step: step, iter, …; loss: …".
std::string scaler_log_columns();

}  // namespace guardbit::tools

#include "tools/scaler/scaler_log.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "tools/console/read_json.hpp"
#include "tools/scaler/scaler_log_text.hpp"

namespace guardbit::tools {

using nlohmann::json;

namespace {

/// Python writes NaN and Infinity where JSON has no such numbers; as words they can be read.
std::string quoting_specials(const std::string& text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      result.append(text, i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    bool replaced = false;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (in_string || text.compare(i, word.size(), word) != 0) continue;
      result += '"';
      result += word;
      result += '"';
      i += word.size();
      replaced = true;
      break;
    }
    if (!replaced) result += text[i++];
  }
  return result;
}

/// A line of JSON each; nothing where any is none.
std::optional<json> parse_lines(const std::string& text, const std::string& where) {
  json rows = json::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (trimmed(line).empty()) continue;
    json row = json::parse(line, limited_depth(where), false);
    if (row.is_discarded() || !row.is_structured()) return std::nullopt;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// A table with separators, as an array of rows.
json parse_table(const std::string& text) {
  json rows = json::array();
  std::istringstream stream(text);
  char separator = '\0';
  for (std::string line; std::getline(stream, line);) {
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    if (separator == '\0') {
      separator = ' ';
      for (const char candidate : {',', ';', '\t'}) {
        if (line.find(candidate) != std::string::npos) {
          separator = candidate;
          break;
        }
      }
    }
    json row = json::array();
    for (const std::string& part : cells_of_line(line, separator)) {
      const std::string word = trimmed(part);
      if (separator == ' ' && word.empty()) continue;
      const std::string lower = formats::lower_case(word);
      const auto number = number_of_cell(json(word));
      if (lower == "true" || lower == "false") {
        row.push_back(lower == "true");
      } else {
        row.push_back(number ? json(*number) : json(word));
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

json parse(const std::string& file, const std::string& text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos) throw formats::Error(formats::printable(file), "is empty");
  if (text[start] != '{' && text[start] != '[') return parse_table(text);
  const std::string readable = quoting_specials(text);
  try {
    return json::parse(readable, limited_depth(formats::printable(file)));
  } catch (const json::exception& error) {  // a number past FP64, too
    if (auto lines = parse_lines(readable, formats::printable(file))) return std::move(*lines);
    throw formats::Error(
        formats::printable(file),
        "not JSON: " + formats::printable(formats::without_library_words(error.what())));
  }
}

bool has_truth_values(const ScalerRows& candidate) {
  return std::all_of(candidate.rows.begin(), candidate.rows.end(), [&](const auto& row) {
    const std::size_t place = candidate.place(ScalerColumn::overflow).value_or(row.size());
    return place < row.size() && (row[place] == 0 || row[place] == 1);
  });
}

/// The run that `wanted` names, of those found.
const ScalerRows& chosen(const std::string& file, const std::vector<ScalerRows>& found,
                         const std::string& wanted) {
  if (found.empty())
    throw formats::Error(
        formats::printable(file),
        "no rows of step, loss, scale, overflow, scale after; columns are known by place or by name: " +
            scaler_log_columns() + "; --column scale=NAME names one");
  std::vector<const ScalerRows*> fitting;
  std::string names;
  for (const ScalerRows& candidate : found) {
    if (!candidate.path.empty()) names += (names.empty() ? "" : ", ") + candidate.path;
    // Names may hold dots, too.
    const bool is_part = ("." + candidate.path + ".").find("." + wanted + ".") != std::string::npos;
    if (wanted.empty() || is_part) fitting.push_back(&candidate);
  }
  if (fitting.empty())
    throw formats::Error(formats::printable(file), "no run " + formats::in_quotes(wanted),
                         names.empty() ? "the file has one run without a name; leave out --mode"
                                       : formats::printable(names));
  // Other arrays of numbers look like rows, too.
  if (fitting.size() > 1) {
    std::erase_if(fitting, [](const ScalerRows* candidate) {
      return candidate->is_guess && !has_truth_values(*candidate);
    });
  }
  if (fitting.empty()) fitting.push_back(&found.front());
  if (fitting.size() > 1)
    throw formats::Error(
        formats::printable(file),
        "holds " + std::to_string(fitting.size()) + " runs; choose one with --mode",
        formats::printable(names));
  return *fitting.front();
}

class RowReader {
 public:
  RowReader(const std::string& file, const ScalerRows& candidate)
      : file_(file), candidate_(candidate) {}

  ScalerLogRow operator()(std::size_t index) const {
    const std::vector<json>& cells = candidate_.rows[index];
    ScalerLogRow row;
    row.step = index;
    if (candidate_.place(ScalerColumn::step)) {
      const double value = required(cells, index, ScalerColumn::step);
      if (!(value >= 0 && value < 0x1p53) || value != std::floor(value))
        refuse(index, "the step is not a whole number");
      row.step = static_cast<std::uint64_t>(value);
    }
    // Losses may be missing, infinite or NaN: nothing follows from them.
    if (const json* cell = find(cells, ScalerColumn::loss)) row.loss = number_of_cell(*cell);
    row.scale = scale_at(cells, index, ScalerColumn::scale);
    if (candidate_.place(ScalerColumn::overflow)) {
      const double truth = required(cells, index, ScalerColumn::overflow);
      if (truth != 0 && truth != 1) refuse(index, "overflow is neither true nor false");
      row.overflow = truth == 1;
    }
    const json* after = find(cells, ScalerColumn::scale_after);
    if (after != nullptr && !after->is_null())
      row.scale_after = scale_at(cells, index, ScalerColumn::scale_after);
    return row;
  }

  [[noreturn]] void refuse(std::size_t index, const std::string& what) const {
    throw formats::Error(formats::printable(file_),
                         "row " + std::to_string(index + 1) + ": " + what);
  }

 private:
  const json* find(const std::vector<json>& cells, ScalerColumn column) const {
    const auto place = candidate_.place(column);
    return place && *place < cells.size() ? &cells[*place] : nullptr;
  }

  double required(const std::vector<json>& cells, std::size_t index, ScalerColumn column) const {
    const json* cell = find(cells, column);
    const std::string title(scaler_column_titles[static_cast<std::size_t>(column)]);
    if (cell == nullptr || cell->is_null() ||
        (cell->is_string() && trimmed(cell->get_ref<const std::string&>()).empty()))
      refuse(index, "no " + title);
    const auto value = number_of_cell(*cell);
    if (!value)
      refuse(index, "the " + title + " is " +
                        formats::printable(
                            cell->dump(-1, ' ', false, json::error_handler_t::replace), 40));
    return *value;
  }

  double scale_at(const std::vector<json>& cells, std::size_t index, ScalerColumn column) const {
    const double value = required(cells, index, column);
    if (std::isnan(value))
      refuse(index, "the " + std::string(scaler_column_titles[static_cast<std::size_t>(column)]) +
                        " is NaN");
    if (std::signbit(value))
      refuse(index, "the " + std::string(scaler_column_titles[static_cast<std::size_t>(column)]) +
                        " is below zero");
    return value;
  }

  const std::string& file_;
  const ScalerRows& candidate_;
};

}  // namespace

namespace {

std::string out_of_order(std::uint64_t before, std::uint64_t step) {
  const std::string name = "step " + std::to_string(step);
  if (step == before)
    return name + " comes again: if several ranks wrote the log, keep the rows of one";
  return name + " does not come after step " + std::to_string(before);
}

/// Marks as the steps between them. `first_step`: of those that lead to a mark, counted from the
/// mark before.
ScalerLog log_of_marks(const std::string& file, const std::vector<ScaleMark>& marks,
                       std::uint64_t first_step) {
  const auto refuse = [&](std::size_t mark, const std::string& what) {
    throw formats::Error(formats::printable(file), "row " + std::to_string(mark + 1) + ": " + what);
  };
  constexpr std::size_t longest = 10'000'000;
  ScalerLog log;
  if (marks.size() < 2)
    throw formats::Error(formats::printable(file),
                         "a log of scales alone needs two rows, what overflowed is between them");
  const std::uint64_t first_rows = marks[1].step - marks[0].step;
  log.may_begin_after_overflow =
      marks[0].skipped ? *marks[0].skipped != 0 || marks[0].step > first_rows : marks[0].step > 1;
  for (std::size_t m = 1; m < marks.size(); ++m) {
    const ScaleMark &from = marks[m - 1], &to = marks[m];
    if (std::signbit(from.scale) || std::signbit(to.scale))
      refuse(std::signbit(from.scale) ? m - 1 : m, "the scale is below zero");
    if (to.step <= from.step) refuse(m, out_of_order(from.step, to.step));
    const std::uint64_t steps = to.step - from.step;
    if (steps > longest - log.rows.size())
      refuse(m, "more than " + std::to_string(longest) + " steps");
    std::uint64_t skipped = to.scale < from.scale ? 1 : 0;
    if (to.skipped) {
      skipped = *to.skipped;
    } else {
      log.overflow_inferred = true;
      // Scales fall by halves, if nothing else is known.
      for (double scale = from.scale / 2; scale > to.scale && skipped != 0 && skipped < steps;
           scale /= 2)
        ++skipped;
    }
    if (skipped > steps) refuse(m, "more steps skipped than there are");
    log.has_gaps = log.has_gaps || (steps > 1 && skipped != 0);
    for (std::uint64_t i = 0; i < steps; ++i) {
      ScalerLogRow row;
      row.step = from.step + first_step + i;
      row.scale = from.scale;
      row.is_stated = i == 0 || i + 1 == steps;
      row.is_scale_stated = i == 0;
      row.overflow = i + skipped >= steps;
      if (i + 1 == steps) row.scale_after = to.scale;
      log.rows.push_back(row);
    }
  }
  return log;
}

/// The rows of a scale alone, those without one left out.
std::vector<ScaleMark> marks_of(const std::string& file, const ScalerRows& candidate) {
  const RowReader reader(file, candidate);
  const std::size_t at = *candidate.place(ScalerColumn::scale);
  std::vector<ScaleMark> marks;
  for (std::size_t i = 0; i < candidate.rows.size(); ++i) {
    const std::vector<json>& cells = candidate.rows[i];
    if (at >= cells.size() || cells[at].is_null() || cells[at] == json("")) continue;
    const ScalerLogRow row = reader(i);
    marks.push_back({row.step, row.scale, std::nullopt});
  }
  return marks;
}

/// Every name that was given must be that of a column.
void require_seen(const std::string& file, const NamedColumns& named,
                  const std::vector<std::string>& seen) {
  std::string list;
  const std::vector<std::string_view> names(seen.begin(), seen.end());
  for (const std::string& name : seen)
    list += (list.empty() ? "" : ", ") + formats::printable(name, 80);
  for (const auto& [column, name] : named)
    if (std::find(seen.begin(), seen.end(), name) == seen.end())
      throw formats::Error(formats::printable(file), formats::unknown_name("column", name, names),
                           list);
}

}  // namespace

ScalerLog read_scaler_log(const std::string& file, const std::string& run,
                          const NamedColumns& named) {
  std::string text = formats::read_text(file);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (const auto marks = megatron_marks(text); !marks.empty()) return log_of_marks(file, marks, 1);
  const json document = is_event_file(text) ? event_rows(file, text) : parse(file, text);
  std::vector<std::string> seen;
  const std::vector<ScalerRows> found = find_scaler_rows(document, named, seen);
  require_seen(file, named, seen);
  const ScalerRows& candidate = chosen(file, found, run);
  if (candidate.is_scale_alone) {
    ScalerLog log = log_of_marks(file, marks_of(file, candidate), 0);
    log.run = candidate.path;
    log.parameters = candidate.parameters;
    return log;
  }
  const RowReader reader(file, candidate);

  ScalerLog log;
  log.run = candidate.path;
  log.parameters = candidate.parameters;
  log.overflow_inferred = !candidate.place(ScalerColumn::overflow);
  for (std::size_t i = 0; i < candidate.rows.size(); ++i) {
    ScalerLogRow row = reader(i);
    if (!log.rows.empty() && row.step <= log.rows.back().step)
      reader.refuse(i, out_of_order(log.rows.back().step, row.step));
    if (log.overflow_inferred) {
      if (!row.scale_after) reader.refuse(i, "no overflow and no scale after");
      row.overflow = *row.scale_after < row.scale;
    }
    log.rows.push_back(row);
  }
  log.may_begin_after_overflow = !log.rows.empty() && log.rows.front().step > 1;
  return log;
}

}  // namespace guardbit::tools

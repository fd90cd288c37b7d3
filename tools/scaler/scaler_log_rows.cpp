#include "tools/scaler/scaler_log_rows.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/support/suggestions.hpp"

namespace guardbit::tools {

using nlohmann::json;

namespace {

enum LogColumn : std::size_t { step, loss, scale, overflow, scale_after, column_count };

// The first name of each column is ours; the others are those that recorders use.
constexpr std::array<std::string_view, column_count> column_names = {
    "step,iter,iteration,global_step,i,t,_step", "loss,train_loss,lm_loss",
    "scale,scale_before,loss_scale,scale_in,old_scale,s,s0,amp_scale,grad_scale,value",
    "overflow,found_inf,skipped,inf,has_overflow,found,is_overflow,skip,overflowed,inf_found,found_inf_or_nan,nonfinite,step_skipped",
    "scale_after,new_scale,after,next_scale,scale_out,s1,loss_scale_after,scale_next"};

using Places = std::array<std::optional<std::size_t>, column_count>;

/// What stands last in "run - group/name".
std::string last_part(const std::string& name) {
  const std::size_t slash = name.rfind('/'), dash = name.rfind(" - ");
  if (slash != std::string::npos && (dash == std::string::npos || dash < slash))
    return name.substr(slash + 1);
  return dash == std::string::npos ? name : name.substr(dash + 3);
}

/// The column of that name, and the name's rank among its names.
std::optional<std::pair<LogColumn, std::size_t>> known_column(const std::string& name) {
  std::string plain = formats::lower_case(trimmed(name));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  for (std::size_t c = 0; c < column_count; ++c) {
    const auto names = split_at(column_names[c], ',');
    const auto found = std::find(names.begin(), names.end(), plain);
    if (found != names.end())
      return std::pair(LogColumn(c), static_cast<std::size_t>(found - names.begin()));
  }
  return std::nullopt;
}

/// The same; what the user named comes first, and what only ends as a known name last.
std::optional<std::pair<LogColumn, std::size_t>> column_of(const std::string& name,
                                                           const NamedColumns& named) {
  constexpr std::size_t many = 1000;
  const std::string whole = trimmed(name);
  for (const auto& [column, wanted] : named)
    if (whole == wanted) return std::pair(LogColumn(column), 0);
  const auto free = [&](const auto& found) {
    return found && !named.contains(ScalerColumn(found->first));
  };
  if (const auto found = known_column(whole); free(found))
    return std::pair(found->first, 1 + found->second);
  if (const auto found = known_column(last_part(whole)); free(found))
    return std::pair(found->first, many + found->second);
  return std::nullopt;
}

/// Columns by place: [step, loss, scale, overflow, scale after], the last or the loss left out;
/// where there are truth values their place says which.
Places places_of(const std::vector<json>& row) {
  Places places;
  std::optional<std::size_t> truth;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].is_boolean() && !truth) truth = i;
  }
  const std::size_t at = truth.value_or(row.size() == 3 ? 2 : 3);
  if (at < 2 || at >= row.size()) return places;
  places[step] = 0;
  if (at == 3) places[loss] = 1;
  places[scale] = at - 1;
  places[overflow] = at;
  if (at + 1 < row.size()) places[scale_after] = at + 1;
  return places;
}

/// Of several columns that could be the same one, that whose name comes first in column_names.
Places places_by_name(const std::vector<std::string>& names, const NamedColumns& named) {
  Places places;
  std::array<std::size_t, column_count> ranks{};
  for (std::size_t at = 0; at < names.size(); ++at) {
    const auto known = column_of(names[at], named);
    if (!known) continue;
    const auto [column, rank] = *known;
    if (places[column] && ranks[column] <= rank) continue;
    places[column] = at;
    ranks[column] = rank;
  }
  return places;
}

bool serve(const Places& places) {
  return places[scale] && (places[overflow] || places[scale_after]);
}

/// A scale that is known by its name serves with the next row's.
bool is_scale_alone(const Places& places) { return places[scale] && !serve(places); }

/// Finds every run in a JSON document.
class Search {
 public:
  std::vector<ScalerRows> found;
  /// the scale alone, step by step
  std::vector<ScalerRows> scales;
  std::vector<std::string> seen;

  explicit Search(const NamedColumns& named) : named_(named) {}

  void operator()(const json& node, const std::string& path, std::map<std::string, double> around,
                  int depth = 0) {
    constexpr int deepest = 16;
    if (depth > deepest) return;
    if (node.is_array()) {
      if (!take_rows(node, path, around, nullptr)) {
        for (std::size_t i = 0; i < node.size() && i < 1000; ++i) {
          if (node[i].is_structured())
            (*this)(node[i], joined(path, std::to_string(i)), around, depth + 1);
        }
      }
      return;
    }
    if (!node.is_object()) return;
    for (const auto& [key, value] : node.items()) note_parameter(key, value, around);
    for (const auto& [key, value] : node.items()) {
      if (value.is_object()) {
        for (const auto& [inner, parameter] : value.items())
          note_parameter(inner, parameter, around);
      }
    }
    if (take_columns(node, path, around)) return;
    const json* names = nullptr;
    for (const char* key : {"columns", "header", "fields"}) {
      if (node.contains(key) && node[key].is_array()) names = &node[key];
    }
    std::string own = path;  // with what the object calls itself
    for (const char* key : {"mode", "name", "run"}) {
      if (node.contains(key) && node[key].is_string())
        own = joined(own, node[key].get_ref<const std::string&>());
    }
    for (const auto& [key, value] : node.items()) {
      if (&value == names) continue;
      const bool plain = key == "log" || key == "rows" || key == "steps" || key == "data";
      const std::string below = plain ? own : joined(own, key);
      if (names != nullptr && value.is_array() && take_rows(value, below, around, names)) continue;
      if (value.is_structured()) (*this)(value, below, around, depth + 1);
    }
  }

 private:
  /// Keeps rows with such columns; says whether they are a run for sure.
  bool keep(ScalerRows candidate) {
    candidate.is_scale_alone = is_scale_alone(candidate.places);
    const bool serves = serve(candidate.places);
    if (serves || candidate.is_scale_alone)
      (serves ? found : scales).push_back(std::move(candidate));
    return serves;
  }

  static std::vector<std::string> keys_of(const json& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
  }

  Places named_places(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (std::find(seen.begin(), seen.end(), trimmed(name)) == seen.end())
        seen.push_back(trimmed(name));
    return places_by_name(names, named_);
  }

  static std::string joined(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

  static void note_parameter(const std::string& key, const json& value,
                             std::map<std::string, double>& parameters) {
    for (const char* known : {"init_scale", "growth_factor", "backoff_factor", "growth_interval"}) {
      if (key == known && value.is_number()) parameters[key] = value.get<double>();
    }
  }

  bool take_rows(const json& node, const std::string& path, std::map<std::string, double> around,
                 const json* names) {
    if (node.empty()) return false;
    return node[0].is_object() ? take_objects(node, path, std::move(around))
                               : take_arrays(node, path, around, names);
  }

  bool take_objects(const json& node, const std::string& path,
                    std::map<std::string, double> around) {
    // Lines before the first row may describe the run.
    std::vector<std::string> keys;
    ScalerRows candidate = {path, {}, {}, {}, false};
    const bool any_serves = std::any_of(node.begin(), node.end(), [&](const json& row) {
      return row.is_object() && serve(named_places(keys_of(row)));
    });
    for (const json& row : node) {
      if (candidate.rows.empty() && row.is_object()) {
        keys = keys_of(row);
        for (const auto& [key, value] : row.items()) note_parameter(key, value, around);
        candidate.places = named_places(keys);
        if (!(any_serves ? serve(candidate.places) : is_scale_alone(candidate.places))) continue;
      }
      std::vector<json> cells;
      cells.reserve(keys.size());
      for (const std::string& key : keys)
        cells.push_back(row.is_object() && row.contains(key) ? row[key] : json());
      candidate.rows.push_back(std::move(cells));
    }
    candidate.parameters = std::move(around);
    return keep(std::move(candidate));
  }

  bool take_arrays(const json& node, const std::string& path,
                   const std::map<std::string, double>& around, const json* names) {
    if (!node[0].is_array()) return false;
    const auto is_string = [](const json& cell) { return cell.is_string(); };
    const auto words_of = [&](const json& row) {
      std::vector<std::string> words;
      for (const json& cell : row) words.push_back(is_string(cell) ? cell.get<std::string>() : "");
      return words;
    };
    ScalerRows candidate = {path, {}, {}, around, false};
    const std::vector<json> first(node[0].begin(), node[0].end());
    const bool has_head = std::all_of(first.begin(), first.end(), is_string);
    if (names != nullptr || has_head) {
      candidate.places = named_places(words_of(names != nullptr ? *names : node[0]));
    } else {
      candidate.places = places_of(first);
      candidate.is_guess = std::none_of(first.begin(), first.end(),
                                        [](const json& cell) { return cell.is_boolean(); });
    }
    if (!candidate.places[scale]) return false;
    for (const json& row : node) {
      candidate.rows.emplace_back();
      if (row.is_array()) candidate.rows.back().assign(row.begin(), row.end());
    }
    if (has_head) candidate.rows.erase(candidate.rows.begin());
    if (candidate.rows.empty()) return false;
    return keep(std::move(candidate));
  }

  bool take_columns(const json& node, const std::string& path,
                    const std::map<std::string, double>& around) {
    ScalerRows candidate = {path, {}, {}, around, false};
    std::vector<std::string> keys;
    for (const auto& [key, value] : node.items()) {
      if (value.is_array() && !value.empty() && number_of_cell(value[0])) keys.push_back(key);
    }
    candidate.places = named_places(keys);
    if (!candidate.places[scale]) return false;
    const std::size_t length = node[keys[*candidate.places[scale]]].size();
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<json> cells;
      cells.reserve(keys.size());
      for (const std::string& key : keys)
        cells.push_back(i < node[key].size() ? node[key][i] : json());
      candidate.rows.push_back(std::move(cells));
    }
    return keep(std::move(candidate));
  }

  const NamedColumns& named_;
};

}  // namespace

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
  }
  return parts;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\"";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

std::optional<double> number_of_cell(const json& cell) {
  if (cell.is_boolean()) return cell.get<bool>() ? 1 : 0;
  if (cell.is_number()) return cell.get<double>();
  // found_inf is a tensor of one element: [0.0]
  if (cell.is_array() && cell.size() == 1) return number_of_cell(cell[0]);
  if (!cell.is_string()) return std::nullopt;
  std::string word = formats::lower_case(trimmed(cell.get_ref<const std::string&>()));
  if (word == "true" || word == "yes") return 1;
  if (word == "false" || word == "no") return 0;
  if (word.starts_with('+')) word.erase(0, 1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc::result_out_of_range || end != word.data() + word.size() || word.empty())
    return std::nullopt;
  return value;
}

std::vector<ScalerRows> find_scaler_rows(const json& document, const NamedColumns& named,
                                         std::vector<std::string>& seen) {
  Search search(named);
  search(document, "", {});
  seen = std::move(search.seen);
  return std::move(search.found.empty() ? search.scales : search.found);
}

std::string scaler_log_columns() {
  std::string text;
  for (std::size_t c = 0; c < column_count; ++c) {
    text += (c == 0 ? "" : "; ") + std::string(scaler_column_titles[c]) + ": ";
    for (const char letter : column_names[c]) text += letter == ',' ? ", " : std::string(1, letter);
  }
  return text;
}

}  // namespace guardbit::tools

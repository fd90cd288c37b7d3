#pragma once

#include <algorithm>
#include <functional>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/console/terminal.hpp"

// Tables of records: one description of a column gives text, Markdown, HTML, JSON and CSV.
namespace guardbit::tools {

/// Where a column's cells stand, if anywhere: `none` for what is in JSON and CSV only.
enum class Side : char { left = 'l', right = 'r', none = '-' };

/// How a table's text differs from the one on a terminal.
enum class Form : std::uint8_t { terminal, markdown };

/// What a table says of a record in one place: in text, Markdown, HTML, JSON and CSV.
template <class Record>
struct Column {
  using Json = nlohmann::ordered_json;

  /// in JSON and CSV; empty: in neither
  std::string key;
  /// above the column
  std::string head;
  Side side = Side::left;
  /// a discarded one: the record has no such key
  std::function<Json(const Record&)> value;
  /// The cell; without it, the value as it is.
  std::function<std::string(const Record&)> text = {};
  /// In JSON, keys of a lower rank come first; those of the same one stand as they are listed.
  int rank = 0;
  /// in Markdown in backquotes
  bool is_code = false;
  /// left out of a table in which all its cells are empty
  bool is_optional = false;
};

/// No value: the key is left out.
inline nlohmann::ordered_json absent() {
  return nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded);
}

/// The number, or null.
template <class Optional>
nlohmann::ordered_json or_null(const Optional& x) {
  return x ? nlohmann::ordered_json(*x) : nlohmann::ordered_json(nullptr);
}

/// A value as a cell or a field: words without quotes, nothing for null.
std::string plain_text(const nlohmann::ordered_json& value);

/// Fields of a line of a CSV file (RFC 4180).
void print_csv_line(std::ostream& out, const std::vector<std::string>& fields);

/// The columns of a table, listed in the order in which they are printed.
template <class Record>
class Columns {
 public:
  using Json = nlohmann::ordered_json;

  Columns(std::initializer_list<Column<Record>> list) : Columns(std::vector(list)) {}
  explicit Columns(std::vector<Column<Record>> list) : list_(std::move(list)), by_rank_(list_) {
    std::stable_sort(by_rank_.begin(), by_rank_.end(),
                     [](const auto& a, const auto& b) { return a.rank < b.rank; });
  }

  /// The columns of two tables of the same records, as JSON has them together.
  friend Columns operator+(const Columns& a, const Columns& b) {
    std::vector<Column<Record>> all = a.list_;
    all.insert(all.end(), b.list_.begin(), b.list_.end());
    return Columns(std::move(all));
  }

  /// The columns for records of another type, each of which has a record of this one.
  template <class Other>
  Columns<Other> of(const std::function<const Record&(const Other&)>& record) const {
    std::vector<Column<Other>> all;
    for (const Column<Record>& c : list_) {
      Column<Other>& x = all.emplace_back();
      x = {c.key, c.head, c.side, {}, {}, c.rank, c.is_code, c.is_optional};
      if (c.value) x.value = [c, record](const Other& o) { return c.value(record(o)); };
      if (c.text) x.text = [c, record](const Other& o) { return c.text(record(o)); };
    }
    return Columns<Other>(std::move(all));
  }

  /// each(column, cell) for the columns that stand in a table.
  template <class Each>
  void for_each_cell(const Record& record, Each each) const {
    for (const Column<Record>& c : list_)
      if (c.side != Side::none) each(c, cell(c, record, Form::terminal));
  }

  template <class Records>
  Table table(const Records& records, Form form = Form::terminal) const {
    std::string alignment;
    std::vector<std::vector<std::string>> rows(1 + std::size(records));
    for (const Column<Record>& c : list_) {
      if (c.side == Side::none) continue;
      std::vector<std::string> cells;
      cells.reserve(std::size(records));
      for (const Record& record : records) cells.push_back(cell(c, record, form));
      const auto is_empty = [](const std::string& text) { return text.empty(); };
      if (c.is_optional && std::ranges::all_of(cells, is_empty)) continue;
      alignment += static_cast<char>(c.side);
      rows[0].push_back(c.head);
      for (std::size_t i = 0; i < cells.size(); ++i) rows[i + 1].push_back(std::move(cells[i]));
    }
    Table table(alignment);
    for (std::vector<std::string>& row : rows) table.add(std::move(row));
    return table;
  }

  /// Adds the record's keys to an object.
  void add_to(Json& object, const Record& record) const {
    for (const Column<Record>& c : by_rank_) {
      if (c.key.empty()) continue;
      Json value = c.value(record);
      if (!value.is_discarded()) object[c.key] = std::move(value);
    }
  }
  Json json(const Record& record) const {
    Json object = Json::object();
    add_to(object, record);
    return object;
  }
  template <class Records>
  Json json_list(const Records& records) const {
    Json all = Json::array();
    for (const Record& record : records) all.push_back(json(record));
    return all;
  }

  template <class Records>
  void print(std::ostream& out, const Records& records, Form form = Form::terminal) const {
    const Table all = table(records, form);
    form == Form::markdown ? all.print_markdown(out) : all.print(out);
  }
  template <class Records>
  void print_csv(std::ostream& out, const Records& records) const {
    std::vector<std::string> fields;
    for (const Column<Record>& c : list_)
      if (!c.key.empty()) fields.push_back(c.key);
    print_csv_line(out, fields);
    for (const Record& record : records) {
      fields.clear();
      for (const Column<Record>& c : list_)
        if (!c.key.empty()) fields.push_back(plain_text(c.value(record)));
      print_csv_line(out, fields);
    }
  }

 private:
  static std::string cell(const Column<Record>& c, const Record& record, Form form) {
    std::string text = c.text ? c.text(record) : plain_text(c.value(record));
    return c.is_code && form == Form::markdown ? "`" + text + "`" : text;
  }

  std::vector<Column<Record>> list_, by_rank_;
};

}  // namespace guardbit::tools

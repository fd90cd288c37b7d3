#include "tools/report/page_parts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tools/console/terminal.hpp"
#include "tools/report/page.hpp"

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Figure;

std::string numbers_of(const Figure& figure) {
  const bool has_rows = !figure.categories.empty();
  HtmlTable table(has_rows ? "lln" : "lnn", figure.title,
                  {"curve", escaped(figure.x_label), escaped(figure.y_label)});
  for (const Curve& c : figure.curves) {
    for (std::size_t i = 0; i < c.x.size(); ++i)
      table.add(std::array{escaped(c.name),
                           has_rows
                               ? escaped(figure.categories.at(static_cast<std::size_t>(c.x[i])))
                               : number(c.x[i], "%.6g"),
                           number(c.y[i], "%.6g")});
  }
  return "<details><summary>Numbers of the plot</summary>" + table.finish() + "</details>";
}

}  // namespace

const char* const report_style = R"(
:root{--good:#156f36;--bad:#b3261e;--open:#7a5200;--box:#f3f5f8}
@media(prefers-color-scheme:dark){:root{--good:#5fd38d;--bad:#ff9a90;--open:#e6c35c;--box:#1f242b}}
a{color:var(--c0)}a:focus-visible,summary:focus-visible,.scroll:focus-visible,pre:focus-visible{outline:3px solid var(--c0);outline-offset:2px}
.skip{position:absolute;left:-100rem}.skip:focus{left:1.5rem;top:.5rem;background:var(--back);padding:.3rem}
.reproduced,.complete{color:var(--good)}.differs{color:var(--bad)}.undecidable,.incomplete{color:var(--open)}.verdict{font-weight:600;white-space:nowrap}
th,td{text-align:left;white-space:normal;vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}td.w{min-width:12rem}@media(max-width:600px){th,td{padding:.2rem .35rem}td.w{min-width:7.5rem}}caption{text-align:left;font-weight:600;padding:.6rem 0 .2rem}
section{border-top:1px solid var(--line);margin-top:2.5rem}h2{overflow-wrap:anywhere}h2 .verdict{float:right;font-size:1rem}
pre{background:var(--box);padding:.6rem .8rem;overflow-x:auto;border-radius:4px}dt{font-weight:600;margin-top:.4rem}dd{margin:0;overflow-wrap:anywhere}
@media print{:root{--box:#fff}pre{break-inside:avoid}section{break-inside:auto;break-before:page}pre{white-space:pre-wrap;border:1px solid #999}td.w{min-width:0}.skip{display:none}a{color:inherit;text-decoration:none}table{font-size:9px}}
)";

std::string badge(const std::string& verdict) {
  const char* const sign = verdict == "reproduced" || verdict == "complete" ? "✓"
                           : verdict == "differs"                           ? "✗"
                           : verdict == "undecidable"                       ? "?"
                                                                            : "…";
  return "<span class=\"verdict " + verdict + "\"><span aria-hidden=\"true\">" + sign + "</span> " +
         verdict + "</span>";
}

HtmlTable::HtmlTable(std::string columns, const std::string& caption,
                     const std::vector<std::string>& head)
    : columns_(std::move(columns)) {
  html_ = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + escaped(caption) +
          "\"><table><caption>" + escaped(caption) + "</caption><thead><tr>";
  for (std::size_t i = 0; i < head.size(); ++i)
    html_.append("<th scope=\"col\"").append(side(i)).append(">").append(head[i]).append("</th>");
  html_ += "</tr></thead><tbody>";
}

void HtmlTable::add(std::span<const std::string> cells) {
  html_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    html_.append("<td").append(side(i)).append(">").append(cells[i]).append("</td>");
  html_ += "</tr>";
}

std::string HtmlTable::finish() const { return html_ + "</tbody></table></div>"; }

const char* HtmlTable::side(std::size_t i) const {
  return columns_[i] == 'n' ? " class=\"n\"" : columns_[i] == 'w' ? " class=\"w\"" : "";
}

std::string html_table(const std::string& caption, const Table& table) {
  std::string columns = table.alignment();
  std::ranges::replace(columns, 'r', 'n');
  std::vector<std::vector<std::string>> rows = table.rows();
  for (std::vector<std::string>& row : rows)
    for (std::string& cell : row) cell = escaped(cell);
  HtmlTable html(columns, caption, rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) html.add(rows[i]);
  return html.finish();
}

std::string drawing_of(const Drawing& wide, const Drawing& narrow) {
  return "<figure class=\"wide\">" + wide.inline_svg() + "</figure><figure class=\"narrow\">" +
         narrow.inline_svg() + "</figure>";
}

std::string drawing_of(const Figure& figure, const std::vector<Strip>& strips) {
  return drawing_of(chart(figure, {.width = wide_picture}, strips),
                    chart(figure, {.width = narrow_picture}, strips));
}

std::string drawing_with_numbers(const Figure& figure) {
  if (drawn_part(figure).curves.empty()) return {};
  return drawing_of(figure) + numbers_of(figure);
}

}  // namespace guardbit::tools

#include "tools/page/page_parts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/console/terminal.hpp"
#include "tools/page/page.hpp"
#include "tools/page/plot.hpp"

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Figure;

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : digits[group >> (18 - 6 * k) & 63U];
  }
  return text;
}

std::string data_address(const std::string& svg) {
  return "data:image/svg+xml;base64," + base64(svg);
}

/// What a reader who sees no pictures is told; the table below the picture has every number.
std::string alternative_text(const Figure& figure) {
  std::string text = figure.title + ". Across: " + figure.x_label +
                     (figure.log_x ? ", logarithmic" : "") + ". Up: " + figure.y_label +
                     (figure.log_y ? ", logarithmic." : ".");
  for (const Curve& c : figure.curves) {
    if (c.x.empty()) continue;
    text.append(" ").append(c.name).append(": from ").append(number(c.y.front()));
    text.append(" at ").append(number(c.x.front())).append(" to ").append(number(c.y.back()));
    text.append(" at ").append(number(c.x.back())).append(".");
  }
  return text;
}

std::string numbers_of(const Figure& figure) {
  HtmlTable table("lnn", figure.title, {"curve", escaped(figure.x_label), escaped(figure.y_label)});
  for (const Curve& c : figure.curves) {
    for (std::size_t i = 0; i < c.x.size(); ++i)
      table.add(std::array{escaped(c.name), number(c.x[i], "%.6g"), number(c.y[i], "%.6g")});
  }
  return "<details><summary>Numbers of the plot</summary>" + table.finish() + "</details>";
}

}  // namespace

// Drawings have a white ground; where the page is dark they are inverted, hues kept.
const char* const report_style = R"(
:root{--good:#156f36;--bad:#b3261e;--open:#7a5200;--box:#f3f5f8}
@media(prefers-color-scheme:dark){:root{--good:#5fd38d;--bad:#ff9a90;--open:#e6c35c;--box:#1f242b}figure img{filter:invert(.915) hue-rotate(180deg) brightness(1.3)}}
a{color:var(--c0)}a:focus-visible,summary:focus-visible,.scroll:focus-visible,pre:focus-visible{outline:3px solid var(--c0);outline-offset:2px}
.skip{position:absolute;left:-100rem}.skip:focus{left:1.5rem;top:.5rem;background:var(--back);padding:.3rem}
.reproduced,.complete{color:var(--good)}.differs{color:var(--bad)}.undecidable,.incomplete{color:var(--open)}.verdict{font-weight:600;white-space:nowrap}
th,td{text-align:left;white-space:normal;vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}td.w{min-width:12rem}@media(max-width:600px){th,td{padding:.2rem .35rem}td.w{min-width:7.5rem}}caption{text-align:left;font-weight:600;padding:.6rem 0 .2rem}
section{border-top:1px solid var(--line);margin-top:2.5rem}h2{overflow-wrap:anywhere}h2 .verdict{float:right;font-size:1rem}figure{margin:1rem 0}figure img{width:100%;max-width:50rem;height:auto;display:block}figure pre{font-size:.75rem}
pre{background:var(--box);padding:.6rem .8rem;overflow-x:auto;border-radius:4px}.wraps{white-space:pre-wrap;overflow-wrap:anywhere}dt{font-weight:600;margin-top:.4rem}dd{margin:0;overflow-wrap:anywhere}
@media print{:root{--box:#fff}figure img{filter:none;max-width:150mm}figure,pre{break-inside:avoid}section{break-inside:auto;break-before:page}pre{white-space:pre-wrap;border:1px solid #999}td.w{min-width:0}.skip{display:none}a{color:inherit;text-decoration:none}table{font-size:9px}}
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

std::string drawing_of(const Figure& figure) {
  if (!has_gnuplot()) {
    const std::string text = text_plot(figure);
    return text.empty() ? "" : "<figure><pre tabindex=\"0\">" + escaped(text) + "</pre></figure>";
  }
  const std::optional<std::string> wide = svg_of(figure), narrow = svg_of(figure, {440, 460});
  if (!wide || !narrow) return {};
  return "<figure><picture><source media=\"screen and (max-width:600px)\" srcset=\"" +
         data_address(*narrow) + "\"><img src=\"" + data_address(*wide) + "\" alt=\"" +
         escaped(alternative_text(figure)) + "\"></picture></figure>" + numbers_of(figure);
}

}  // namespace guardbit::tools

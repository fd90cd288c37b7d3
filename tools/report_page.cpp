#include "tools/report_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>

#include "tools/experiment_text.hpp"
#include "tools/page.hpp"
#include "tools/plot.hpp"

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Experiment;
using experiments::Figure;
using experiments::Finding;
using experiments::Outcome;
using experiments::Parameter;

// Drawings have a white ground; where the page is dark they are inverted, hues kept.
constexpr const char* style = R"(
:root{--good:#156f36;--bad:#b3261e;--open:#7a5200;--box:#f3f5f8}
@media(prefers-color-scheme:dark){:root{--good:#5fd38d;--bad:#ff9a90;--open:#e6c35c;--box:#1f242b}figure img{filter:invert(.915) hue-rotate(180deg)}}
a{color:var(--c0)}a:focus-visible,summary:focus-visible,.scroll:focus-visible,pre:focus-visible{outline:3px solid var(--c0);outline-offset:2px}
.skip{position:absolute;left:-100rem}.skip:focus{left:1.5rem;top:.5rem;background:var(--back);padding:.3rem}
.reproduced{color:var(--good)}.differs{color:var(--bad)}.undecidable,.incomplete{color:var(--open)}.verdict{font-weight:600;white-space:nowrap}
th,td{text-align:left;white-space:normal;vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}td.w{min-width:12rem}@media(max-width:600px){th,td{padding:.2rem .35rem}td.w{min-width:7.5rem}}caption{text-align:left;font-weight:600;padding:.6rem 0 .2rem}
section{border-top:1px solid var(--line);margin-top:2.5rem}h2{overflow-wrap:anywhere}h2 .verdict{float:right;font-size:1rem}figure{margin:1rem 0}figure img{width:100%;max-width:50rem;height:auto;display:block}figure pre{font-size:.75rem}
pre{background:var(--box);padding:.6rem .8rem;overflow-x:auto;border-radius:4px}.wraps{white-space:pre-wrap;overflow-wrap:anywhere}dt{font-weight:600;margin-top:.4rem}dd{margin:0;overflow-wrap:anywhere}
@media print{:root{--box:#fff}figure img{filter:none;max-width:150mm}figure,pre{break-inside:avoid}section{break-inside:auto;break-before:page}pre{white-space:pre-wrap;border:1px solid #999}td.w{min-width:0}.skip{display:none}a{color:inherit;text-decoration:none}table{font-size:9px}}
)";

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

/// A sign beside the word, so that colour is not all that tells verdicts apart.
std::string badge(const std::string& verdict) {
  const char* const sign = verdict == "reproduced"    ? "✓"
                           : verdict == "differs"     ? "✗"
                           : verdict == "undecidable" ? "?"
                                                      : "…";
  return "<span class=\"verdict " + verdict + "\"><span aria-hidden=\"true\">" + sign + "</span> " +
         verdict + "</span>";
}

/// A table that scrolls by itself where it is wider than the page, by keys too.
class HtmlTable {
 public:
  /// One letter per column: 'l' text, 'w' longer text, 'n' number.
  HtmlTable(std::string columns, const std::string& caption, std::span<const char* const> head)
      : columns_(std::move(columns)) {
    html_ = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
            escaped(caption) + "\"><table><caption>" + escaped(caption) + "</caption><thead><tr>";
    for (std::size_t i = 0; i < head.size(); ++i)
      html_.append("<th scope=\"col\"").append(side(i)).append(">").append(head[i]).append("</th>");
    html_ += "</tr></thead><tbody>";
  }

  /// Cells are HTML. The first one names the row.
  void add(std::span<const std::string> cells) {
    html_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i)
      html_.append("<td").append(side(i)).append(">").append(cells[i]).append("</td>");
    html_ += "</tr>";
  }

  std::string finish() const { return html_ + "</tbody></table></div>"; }

 private:
  const char* side(std::size_t i) const {
    return columns_[i] == 'n' ? " class=\"n\"" : columns_[i] == 'w' ? " class=\"w\"" : "";
  }

  std::string columns_, html_;
};

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
  HtmlTable table(
      "lnn", figure.title,
      std::array{"curve", escaped(figure.x_label).c_str(), escaped(figure.y_label).c_str()});
  for (const Curve& c : figure.curves) {
    for (std::size_t i = 0; i < c.x.size(); ++i)
      table.add(std::array{escaped(c.name), number(c.x[i], "%.6g"), number(c.y[i], "%.6g")});
  }
  return "<details><summary>Numbers of the plot</summary>" + table.finish() + "</details>";
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

std::string findings_of(const Outcome& outcome) {
  HtmlTable table(
      "wnnlww", "What was measured, beside what it should be",
      std::array{"what", "measured", "expected", "how we know", "why the tolerance", "verdict"});
  HtmlTable others("wn", "Numbers without a reference", std::array{"what", "measured"});
  std::size_t compared = 0;
  for (const Finding& f : outcome.findings) {
    if (!f.reference) {
      others.add(std::array{escaped(f.key), escaped(measured_text(f))});
      continue;
    }
    ++compared;
    const experiments::Reference& r = *f.reference;
    table.add(std::array{
        escaped(f.key), escaped(measured_text(f)), escaped(expected_text(r)),
        badge(std::string(word_of(f.verdict()))),
        escaped(r.source) + " <em>(" + std::string(experiments::word_of(r.certainty)) + ")</em>",
        escaped(reason_of(r))});
  }
  std::string html = compared == 0 ? "" : table.finish();
  const std::size_t rest = outcome.findings.size() - compared;
  if (rest != 0)
    html += "<details><summary>" + std::to_string(rest) + " numbers without a reference</summary>" +
            others.finish() + "</details>";
  for (const std::string& note : outcome.notes) html += "<p>" + escaped(note) + "</p>";
  return html;
}

std::string joined(const auto& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

std::string parameters_of(const ReportedRun& run) {
  HtmlTable table("lwwl", "Parameters", std::array{"name", "value", "meaning", "may be"});
  for (const Parameter& p : run.experiment->parameters) {
    table.add(std::array{"<code>" + escaped(p.name) + "</code>",
                         escaped(joined(run.record.identity.settings.words(p.name), ", ")),
                         escaped(p.meaning), escaped(range_of(p))});
  }
  const RunIdentity& identity = run.record.identity;
  std::string html = run.experiment->parameters.empty() ? "" : table.finish();
  html += "<dl>";
  const auto fact = [&](const char* what, const std::string& value) {
    if (value.empty()) return;
    html.append("<dt>").append(what).append("</dt><dd>").append(escaped(value)).append("</dd>");
  };
  fact("Seed", std::to_string(identity.seed));
  fact("Formats", joined(run.record.formats, ", "));
  fact("Plans", joined(run.record.plans, "; "));
  fact("Program", "guardbit " + identity.version + ", fingerprint " + identity.program);
  fact("Record", run.file);
  return html + "</dl>";
}

std::string section_of(const ReportedRun& run, const std::string& anchor) {
  const Experiment& x = *run.experiment;
  std::string html = "<section id=\"" + anchor + "\" aria-labelledby=\"" + anchor +
                     "-title\"><h2 id=\"" + anchor + "-title\">" + std::string(x.name) + " " +
                     escaped(x.slug) + " " + badge(verdict_of(run)) + "</h2><p><strong>" +
                     escaped(x.question) + "</strong></p><p>" + escaped(x.method) +
                     "</p><p>Expected: " + escaped(x.expected) + "</p>";
  if (run.outcome) {
    html += drawing_of(run.outcome->figure) + findings_of(*run.outcome);
  } else {
    html += "<p>This run was interrupted; its record keeps " +
            std::to_string(run.record.points.size()) +
            " points, and the command below, with <code>-o</code> and its folder, goes on from "
            "them.</p>";
  }
  return html + parameters_of(run) + "<h3>To run it again</h3><pre class=\"wraps\"><code>" +
         escaped(command_of(run)) + "</code></pre></section>";
}

/// Two runs of an experiment are told apart by their files.
std::map<std::string_view, int> runs_by_name(const ReportedFolder& folder) {
  std::map<std::string_view, int> counts;
  for (const ReportedRun& run : folder.runs) ++counts[run.experiment->name];
  return counts;
}

std::string summary_of(const ReportedFolder& folder) {
  std::map<std::string, int> verdicts;
  for (const ReportedRun& run : folder.runs) ++verdicts[verdict_of(run)];
  std::string html =
      "<p>" + std::to_string(folder.runs.size()) + (folder.runs.size() == 1 ? " run: " : " runs: ");
  const char* between = "";
  for (const char* const verdict : {"reproduced", "differs", "undecidable", "incomplete"}) {
    if (!verdicts.contains(verdict)) continue;
    html.append(between).append(std::to_string(verdicts[verdict])).append(" ");
    html.append(badge(verdict));
    between = ", ";
  }
  return html +
         ".</p><p class=\"quiet\"><em>Reproduced</em>: every reference that can be decided is met "
         "within its tolerance. <em>Undecidable</em>: nothing here can decide; relations that "
         "theory demands hold. How we know a reference: <em>measured</em> on hardware by this "
         "project, <em>read</em> in the source named, <em>recalled</em> from it and not read "
         "again, <em>derived</em> from the definitions.</p>";
}

}  // namespace

std::string report_page(const ReportedFolder& folder, const std::function<void(double)>& progress) {
  const std::map<std::string_view, int> counts = runs_by_name(folder);
  HtmlTable verdicts("lwl", "Verdicts", std::array{"run", "question", "verdict"});
  std::string sections;
  for (std::size_t i = 0; i < folder.runs.size(); ++i) {
    const ReportedRun& run = folder.runs[i];
    const std::string anchor = "run-" + std::to_string(i + 1);
    std::string name = "<a href=\"#" + anchor + "\">" + std::string(run.experiment->name) + "</a>";
    if (counts.at(run.experiment->name) > 1) name += " " + escaped(run.file);
    verdicts.add(std::array{name, escaped(run.experiment->question), badge(verdict_of(run))});
    sections += section_of(run, anchor);
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(folder.runs.size()));
  }
  std::string html = page_head("Experiments: " + folder.name, style) +
                     "<a class=\"skip\" href=\"#runs\">To the runs</a><header><h1>Experiments: " +
                     escaped(folder.name) + "</h1>" + summary_of(folder) + "</header><nav>" +
                     verdicts.finish() + "</nav>";
  for (const auto& [file, why] : folder.left_out)
    html += "<p><strong>Left out</strong> " + escaped(file) + ": " + escaped(why) + "</p>";
  return html + "<main id=\"runs\">" + sections + "</main>" + std::string(page_end);
}

}  // namespace guardbit::tools

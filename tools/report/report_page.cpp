#include "tools/report/report_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>

#include "formats/support/joined.hpp"
#include "formats/support/words.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/terminal.hpp"
#include "tools/report/experiment_text.hpp"
#include "tools/report/page.hpp"
#include "tools/report/page_parts.hpp"

namespace guardbit::tools {

namespace {

using experiments::Experiment;
using experiments::Finding;
using experiments::Outcome;
using experiments::Parameter;

std::string findings_of(const Outcome& outcome) {
  HtmlTable table("wnnlww", "What was measured, beside what it should be",
                  {"what", "measured", "expected", "verdict", "how we know", "why the tolerance"});
  HtmlTable others("wn", "Numbers without a reference", {"what", "measured"});
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
        badge(std::string(formats::word_of(f.verdict()))),
        escaped(r.source) + " <em>(" + std::string(formats::word_of(r.certainty)) + ")</em>",
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

std::string parameters_of(const ReportedRun& run) {
  HtmlTable table("lwwl", "Parameters", {"name", "value", "meaning", "may be"});
  for (const Parameter& p : run.experiment->parameters) {
    table.add(std::array{"<code>" + escaped(p.name) + "</code>",
                         escaped(formats::joined(run.record.identity.settings.words(p.name), ", ")),
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
  fact("Formats", formats::joined(run.record.formats, ", "));
  fact("Plans", formats::joined(run.record.plans, "; "));
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
    html += drawing_with_numbers(run.outcome->figure) + findings_of(*run.outcome);
  } else {
    html +=
        "<p>This run was interrupted; its record keeps " +
        std::to_string(run.record.points.size()) +
        " points, and the command below, with <code>-o</code> and its folder, goes on from them.</p>";
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
  std::string html = "<p>" + counted(folder.runs.size(), "run") + ": ";
  const char* between = "";
  for (const char* const verdict : {"reproduced", "differs", "undecidable", "incomplete"}) {
    if (!verdicts.contains(verdict)) continue;
    html.append(between).append(std::to_string(verdicts[verdict])).append(" ");
    html.append(badge(verdict));
    between = ", ";
  }
  return html +
         ".</p><p class=\"quiet\"><em>Reproduced</em>: "
         "every reference that can be decided is met within its tolerance. <em>Undecidable</em>: "
         "nothing here can decide; relations that theory demands hold. "
         "How we know a reference: <em>measured</em> on hardware by this project, <em>read</em> in the source named, "
         "<em>recalled</em> from it and not read again, <em>derived</em> from the definitions.</p>";
}

/// "fp32 99.85%, fp16_amp 99.80%"
std::string accuracies_of(const ReportedTraining& training) {
  std::string text;
  for (const TrainResult& r : training.results) {
    text.append(text.empty() ? "" : ", ").append(r.recipe);
    if (r.complete) text += number(100 * r.test.accuracy, " %.2f%%");
  }
  return text;
}

}  // namespace

std::string report_page(const ReportedFolder& folder, const std::function<void(double)>& progress) {
  const std::map<std::string_view, int> counts = runs_by_name(folder);
  HtmlTable verdicts("lwl", "Verdicts", {"run", "question", "verdict"});
  HtmlTable trainings("lwl", "Training runs", {"run", "recipes and accuracy", "state"});
  std::string sections;
  std::size_t done = 0;
  const auto add = [&](const std::string& section) {
    sections += section;
    ++done;
    if (progress)
      progress(static_cast<double>(done) /
               static_cast<double>(folder.runs.size() + folder.trainings.size()));
  };
  for (std::size_t i = 0; i < folder.runs.size(); ++i) {
    const ReportedRun& run = folder.runs[i];
    const std::string anchor = "run-" + std::to_string(i + 1);
    std::string name = "<a href=\"#" + anchor + "\">" + std::string(run.experiment->name) + "</a>";
    if (counts.at(run.experiment->name) > 1) name += " " + escaped(run.file);
    verdicts.add(std::array{name, escaped(run.experiment->question), badge(verdict_of(run))});
    add(section_of(run, anchor));
  }
  for (std::size_t i = 0; i < folder.trainings.size(); ++i) {
    const ReportedTraining& run = folder.trainings[i];
    const std::string anchor = "training-" + std::to_string(i + 1);
    trainings.add(std::array{"<a href=\"#" + anchor + "\">" + escaped(run.shown) + "</a>",
                             escaped(accuracies_of(run)),
                             badge(run.is_complete ? "complete" : "incomplete")});
    add(section_of(run, anchor));
  }
  const std::string title =
      (folder.runs.empty() ? "Training runs: " : "Experiments: ") + folder.name;
  std::string html = page_head(title, report_style) +
                     "<a class=\"skip\" href=\"#runs\">To the runs</a><header><h1>" +
                     escaped(title) + "</h1>" + (folder.runs.empty() ? "" : summary_of(folder)) +
                     "</header><nav>" + (folder.runs.empty() ? "" : verdicts.finish()) +
                     (folder.trainings.empty() ? "" : trainings.finish()) + "</nav>";
  for (const auto& [file, why] : folder.left_out)
    html += "<p><strong>Left out</strong> " + escaped(file) + ": " + escaped(why) + "</p>";
  return html + "<main id=\"runs\">" + sections + "</main>" + std::string(page_end);
}

}  // namespace guardbit::tools

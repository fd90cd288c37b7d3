#include "tools/report/page.hpp"
#include "tools/report/page_parts.hpp"
#include "tools/train/train_folder.hpp"
#include "tools/train/train_report.hpp"

// A training run as a section of a report: what came out of it, its curves, how to run it again.
namespace guardbit::tools {

namespace {

std::string integers_of(const QuantisedNetworks& integers) {
  if (integers.rows.empty()) return {};
  std::string html =
      html_table("On integers", integer_table(integers)) +
      "<p class=\"quiet\">Fake: operands rounded onto the integers' grids, products in FP32. "
      "Executed: on the instructions below, requantised between layers. "
      "Codes apart: the layer of whose input's integers the most differ.</p><ul>";
  for (const std::string& name : instructions_of(integers))
    html += "<li><code>" + escaped(name) + "</code></li>";
  html += "</ul>";
  if (!integers.pruned) return html;
  return html + html_table("2:4 pruning", pruning_table(integers)) + "<p>" +
         escaped(pruning_sentence(integers)) + "</p>";
}

}  // namespace

std::string section_of(const ReportedTraining& training, const std::string& anchor) {
  const char* const state = training.is_complete ? "complete" : "incomplete";
  std::string html = "<section id=\"" + anchor + "\" aria-labelledby=\"" + anchor +
                     "-title\"><h2 id=\"" + anchor + "-title\">Training " +
                     escaped(training.shown) + " " + badge(state) + "</h2>";
  if (!training.is_complete)
    html += "<p>This run was interrupted; the command below goes on from its checkpoints.</p>";
  html +=
      html_table("Recipes side by side", time_table(training.results)) +
      "<p class=\"quiet\">Ratio: to Eigen&#8217;s images per second. "
      "Memory: weights, gradients, the optimizer&#8217;s state and the operands of a step, in their formats.</p>" +
      html_table("Numerics", number_table(training.results)) +
      "<p class=\"quiet\">Loss: mean of the last steps. Underflow: gradients stored as zero that are none. From FP32: |w - w32| / |w32| over all weights.</p>";
  for (const experiments::Figure& figure : figures_of(training))
    html += drawing_with_numbers(figure);
  html += integers_of(training.integers);
  return html + "<details><summary>Configuration</summary><pre><code>" + escaped(training.config) +
         "</code></pre></details><h3>To run it again</h3><pre class=\"wraps\"><code>" +
         escaped(command_of(training)) + "</code></pre></section>";
}

}  // namespace guardbit::tools

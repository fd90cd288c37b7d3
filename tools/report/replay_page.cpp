#include "tools/report/replay_page.hpp"

#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"
#include "tools/console/counted.hpp"
#include "tools/report/page.hpp"

namespace guardbit::tools {

using emulator::replay::CallResult;
using emulator::replay::Summary;

std::string replay_page(const std::vector<ReplayedFile>& files) {
  std::string page = page_head("Replay");
  for (const ReplayedFile& file : files) {
    const Summary& sum = file.replay.summary;
    page += "<h1>" + escaped(formats::printable(file.path)) + "</h1>\n<p>" +
            counted(sum.calls, "call") + ": " + std::to_string(sum.exact) + " exact, " +
            std::to_string(sum.differs) + " differ, " + std::to_string(sum.unordered) +
            " unordered, " + std::to_string(sum.unmodelled) + " without a model, " +
            std::to_string(sum.data) + " data; " + percent_text(sum.outputs_exact, sum.outputs) +
            " of " + counted(sum.outputs, "output") + " exact</p>\n<table>\n" +
            "<tr><th>call</th><th>status</th><th>operator</th><th>outputs</th><th>how</th></tr>\n";
    for (std::size_t i = 0; i < file.replay.calls.size(); ++i) {
      const CallResult& call = file.replay.calls[i];
      page += "<tr><td>" + std::to_string(i) + "</td><td>" +
              std::string(formats::word_of(call.status)) + "</td><td>" +
              escaped(formats::printable(file.ops[i], 60)) + "</td><td>" +
              std::to_string(call.outputs) + "</td><td>" + escaped(words_of(call)) + "</td></tr>\n";
    }
    page += "</table>\n";
  }
  return page + std::string(page_end);
}

}  // namespace guardbit::tools

// The pages in a real browser, without network: at two widths, light and dark, and on paper.

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;

const std::string trace = tests::in_source("tests/golden/traces/transformer_fp32.safetensors");

/// Tells what a reader would stumble over.
constexpr const char* measuring = R"(<script>addEventListener("load", () => {
  // A page holds drawings for wide and for narrow windows and shows one of each pair.
  const shown = [...document.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().height > 0);
  let smallest = 1e9, overlaps = 0, outside = 0;
  for (const svg of shown) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(t => t.getBoundingClientRect());
    texts.forEach((a, i) => {
      smallest = Math.min(smallest, a.height);
      if (a.left < frame.left - 1 || a.right > frame.right + 1) ++outside;
      for (const b of texts.slice(i + 1))
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4) ++overlaps;
    });
  }
  console.log("MEASURED " + JSON.stringify({smallest, overlaps, outside, width: innerWidth,
    wide: document.documentElement.scrollWidth, drawings: shown.length,
    rows: document.querySelectorAll("tr").length,
    unseen: [...document.images].filter(i => !i.complete || i.naturalWidth < 100 || !i.alt).length, background: getComputedStyle(document.body).backgroundColor}));
});</script>)";

std::string browser() {
  for (const char* const name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system(("command -v " + std::string(name) + " >/dev/null").c_str()) == 0) return name;
  }
  return {};
}

bool run_browser(const std::string& words, const std::string& log) {
  const std::string command =
      "timeout 60 " + browser() +
      " --headless --no-sandbox --disable-gpu --hide-scrollbars --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr " +
      words + " >/dev/null 2>'" + log + "'";
  return std::system(command.c_str()) == 0;
}

json measured(const std::string& log) {
  const std::string text = tests::read_text(log);
  const std::size_t from = text.find("MEASURED {");
  INFO(text);
  REQUIRE(from != std::string::npos);
  const std::size_t begin = from + 9;
  return json::parse(text.substr(begin, text.find('}', begin) + 1 - begin));
}

/// Width and height of a PNG file.
std::array<unsigned, 2> size_of_png(const std::string& bytes) {
  if (bytes.size() < 24 || bytes.compare(0, 8, "\x89PNG\r\n\x1a\n") != 0) return {0, 0};
  const auto number = [&](std::size_t at) {
    unsigned value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  return {number(16), number(20)};
}

struct Expected {
  /// shown in the page itself, not as pictures
  int drawings = 0;
  /// at least
  int rows = 0;
};

/// Opens the page at two widths, light and dark (narrow and dark only when it must be quick), and
/// prints it.
void check_page(const std::string& page, const Expected& expected, bool quick) {
  const tests::TemporaryFolder folder;
  tests::write_text(folder.path("measured.html"), tests::read_text(page) + measuring);
  for (const unsigned width : {1280U, 500U}) {
    for (const bool dark : {false, true}) {
      if (quick && (!dark || width == 1280U)) continue;
      const std::string picture = folder.path("picture.png");
      const std::string log = folder.path("log");
      REQUIRE(run_browser("--blink-settings=preferredColorScheme=" + std::string(dark ? "0" : "1") +
                              " --window-size=" + std::to_string(width) + ",1600 --screenshot='" +
                              picture + "' 'file://" + folder.path("measured.html") + "'",
                          log));
      const json found = measured(log);
      CAPTURE(width, dark, found.dump());
      CHECK(found["width"] == width);
      CHECK(found["wide"] == width);  // only tables scroll sideways
      CHECK(found["drawings"] == expected.drawings);
      CHECK(found["rows"] > expected.rows);
      CHECK(found["smallest"] >= 9);
      CHECK(found["overlaps"] == 0);
      CHECK(found["outside"] == 0);
      CHECK(found["unseen"] == 0);
      CHECK(found["background"] == (dark ? "rgb(20, 23, 27)" : "rgb(255, 255, 255)"));
      const std::string bytes = tests::read_text(picture);
      CHECK(size_of_png(bytes) == std::array{width, 1600U});
      CHECK(bytes.size() > 30000);  // something is on it
    }
  }
  const std::string paper = folder.path("report.pdf");
  REQUIRE(run_browser("--print-to-pdf='" + paper + "' 'file://" + page + "'", folder.path("log")));
  CHECK(tests::read_text(paper).compare(0, 5, "%PDF-") == 0);
}

TEST_CASE("trace: the report reads well in a browser, wide and narrow, light and dark, printed",
          "[tool]") {
  if (browser().empty()) {
    WARN("SKIPPED: no chromium here");
    return;
  }
  const tests::TemporaryFolder folder;
  const std::string page = folder.path("report.html");
  REQUIRE(tests::run_command({"trace", trace, "--formats", "fp16,bf16,e4m3,e5m2,e4m3_1x128,mxfp4",
                              "--report", page})
              .status == 0);
  check_page(page, {7, 100}, true);
}

TEST_CASE("report: the page of the suite reads well in a browser", "[sweep]") {
  if (browser().empty()) {
    WARN("SKIPPED: no chromium here");
    return;
  }
  const tests::TemporaryFolder folder;
  const std::string page = folder.path("report.html");
  REQUIRE(tests::run_command({"experiment", "run", "--all", "--quick", "-o", folder.path("all")})
              .status == 0);
  REQUIRE(tests::run_command({"report", folder.path("all"), "-o", page}).status == 0);
  check_page(page, {0, 200}, false);
}

}  // namespace

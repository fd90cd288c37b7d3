#include "tools/plot/picture_file.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::tools {

namespace {

using formats::Error;

constexpr const char* converter = "rsvg-convert";

/// svg, pdf or png; Error for another.
std::string kind_of(const std::string& path) {
  std::string kind = std::filesystem::path(path).extension().string();
  for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (kind != ".svg" && kind != ".pdf" && kind != ".png")
    throw Error(formats::printable(path), "is no name of a picture", ".svg, .pdf or .png");
  return kind.substr(1);
}

bool has_converter() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + converter).c_str(), X_OK) == 0) return true;
  return false;
}

/// A file in memory, which ends with its owner.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("plot", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(converter, "no memory for a picture");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  int descriptor() const { return descriptor_; }
  /// From the beginning, where the next reader begins too.
  void write(std::string_view text) const {
    if (pwrite(descriptor_, text.data(), text.size(), 0) != std::ssize(text))
      throw Error(converter, "no memory for a picture");
  }
  std::string content() const {
    std::string text;
    std::array<char, 65536> part{};
    for (;;) {
      const ssize_t size =
          pread(descriptor_, part.data(), part.size(), static_cast<off_t>(text.size()));
      if (size <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  int descriptor_;
};

std::string converted(const std::string& svg, const std::string& kind, const std::string& path) {
  // Files without a name: nothing is left over, however this ends.
  const MemoryFile from, to, complaints;
  from.write(svg);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, from.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, to.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, complaints.descriptor(), STDERR_FILENO);
  // A PNG has three dots for each pixel: 288 to the inch.
  std::vector<std::string> words = {converter, "--format=" + kind, "--dpi-x=96", "--dpi-y=96"};
  if (kind == "png") words.emplace_back("--zoom=3");
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  const bool is_done =
      posix_spawnp(&child, converter, &actions, nullptr, pointers.data(), environ) == 0 &&
      waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  posix_spawn_file_actions_destroy(&actions);
  std::string picture = to.content();
  if (!is_done || picture.empty())
    throw Error(formats::printable(path), std::string(converter) + " did not draw it");
  return picture;
}

struct AskedRange {
  bool is_x = false;
  Range range;
};

AskedRange range_of(const std::string& text) {
  AskedRange asked;
  std::string_view rest = text;
  if (rest.starts_with("x=") || rest.starts_with("y=")) {
    asked.is_x = rest[0] == 'x';
    rest.remove_prefix(2);
  }
  const std::size_t colon = rest.find(':');
  const auto read = [&](std::string_view part, double& number) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    return error == std::errc() && end == part.data() + part.size() && std::isfinite(number);
  };
  if (colon == std::string_view::npos || !read(rest.substr(0, colon), asked.range.low) ||
      !read(rest.substr(colon + 1), asked.range.high) || asked.range.low >= asked.range.high)
    throw Error("--range", formats::in_quotes(text) + " is no range",
                "LO:HI with LO below HI, or x=LO:HI");
  return asked;
}

}  // namespace

void PlotOptions::require_valid() const {
  if (!asked()) {
    if (width != 0 || height != 0 || !x.empty() || !y.empty() || !ranges.empty())
      throw Error("--width, --height, --x, --y and --range", "are of a picture: --plot FILE");
    return;
  }
  const std::string kind = kind_of(path);
  if (kind != "svg" && !has_converter())
    throw Error(formats::printable(path),
                "needs rsvg-convert, which is not installed "
                "(Debian, Ubuntu: librsvg2-bin); .svg needs nothing");
  chart();
}

ChartOptions PlotOptions::chart() const {
  ChartOptions options;
  if (width != 0) options.width = width;
  options.height = height;
  if (!x.empty()) options.log_x = x == "log";
  if (!y.empty()) options.log_y = y == "log";
  for (const std::string& text : ranges) {
    const AskedRange asked = range_of(text);
    (asked.is_x ? options.x : options.y) = asked.range;
  }
  return options;
}

void add_plot_options(CLI::App& command, PlotOptions& options, const std::string& what,
                      bool has_axes) {
  command
      .add_option("--plot", options.path,
                  what + ": .svg, .pdf or .png by its name (.pdf and .png need rsvg-convert)")
      ->type_name("FILE");
  command
      .add_option(
          "--width", options.width,
          "Of the picture, in pixels of 1/96 inch (default 640); a .png has three dots for each")
      ->type_name("PIXELS")
      ->check(CLI::Range(200, 4000));
  command.add_option("--height", options.height, "The same (default: what the picture needs)")
      ->type_name("PIXELS")
      ->check(CLI::Range(100, 8000));
  if (!has_axes) return;
  // The name of the operand says what it may be already.
  CLI::Validator scale = CLI::IsMember({"lin", "log"});
  scale.description("");
  command.add_option("--x", options.x, "Axis across: linear or logarithmic (default: as suits)")
      ->type_name("{lin,log}")
      ->check(scale);
  command.add_option("--y", options.y, "Axis up, alike")->type_name("{lin,log}")->check(scale);
  command
      .add_option(
          "--range", options.ranges,
          "Numbers at the two ends of the axis up, or x=LO:HI of the axis across (default: what fits)")
      ->type_name("LO:HI");
}

void write_picture(const std::string& path, const Drawing& drawing) {
  const std::string kind = kind_of(path);
  const std::string svg = drawing.svg();
  formats::write_file(path, kind == "svg" ? svg : converted(svg, kind, path));
}

}  // namespace guardbit::tools

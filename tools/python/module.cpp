#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <string>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/version.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/terminal.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/report.hpp"

// The extension module guardbit._core. What people call stands in guardbit/*.py.

namespace guardbit::python {

namespace {

/// A text that begins with an option and the name of an array in memory, "--d d: ", begins with the
/// array; one that begins with a place of the command's help, "PATTERN: ", with the argument
/// "pattern: ".
void name_argument(std::string& text) {
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return;
  const std::string place = text.substr(0, colon);
  if (const std::size_t space = place.find(' ');
      place.starts_with("--") && place.substr(2, space - 2) == place.substr(space + 1))
    text.erase(0, space + 1);
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (place.size() > 1 && std::ranges::all_of(place, is_capital))
    text.replace(0, colon, formats::lower_case(place));
}

/// An error's text with the names of arguments in the place of a command's options: "--scale-a"
/// is scale_a. Arrays in memory have no file's name. What a caller gave stays on one line.
std::string as_python_says(std::string text) {
  if (text.starts_with("<arrays ")) text.erase(0, text.find(": ") + 2);
  name_argument(text);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins =
        text.compare(i, 2, "--") == 0 && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '(') &&
        i + 2 < text.size() && std::islower(static_cast<unsigned char>(text[i + 2])) != 0;
    if (!begins) {
      if (text[i] == '\n')
        result += "\\n";
      else
        result += text[i];
      continue;
    }
    for (i += 2; i < text.size() &&
                 (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '-');
         ++i)
      result += text[i] == '-' ? '_' : text[i];
    --i;
  }
  return result;
}

}  // namespace

}  // namespace guardbit::python

/// The command, as a program of its own: command_script.py calls it. It ends the process.
extern "C" [[noreturn]] __attribute__((visibility("default"))) void guardbit_command(int count,
                                                                                     char** words) {
  // Python has changed what these do. An interrupt that the caller ignores stays ignored.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  if (std::signal(SIGINT, SIG_DFL) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
  std::exit(guardbit::tools::command_line(count, words));
}

NB_MODULE(_core, module) {
  namespace nb = nanobind;
  using namespace guardbit;
  module.def("version", [] { return std::string(formats::version()); });
  // Texts of reports go into notebooks and tests, whatever standard output is.
  tools::never_colour();
  static PyObject* const error =
      nb::exception<formats::Error>(module, "Error", PyExc_ValueError).release().ptr();
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const formats::Error& e) {
      PyErr_SetString(error, python::as_python_says(e.what()).c_str());
    }
  });
  python::bind_arrays(module);
  python::bind_report(module);
  python::bind_files(module);
  python::bind_formats(module);
  python::bind_functions(module);
  python::bind_instructions(module);
  python::bind_operators(module);
  python::bind_products(module);
  python::bind_reports(module);
  python::bind_probe(module);
  python::bind_traces(module);
}

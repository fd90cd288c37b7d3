#include "experiments/harness/settings.hpp"

#include <string>
#include <vector>

#include "formats/support/error.hpp"
#include "tests/catch.hpp"

namespace guardbit::tests {
namespace {

using experiments::Parameter;
using experiments::parse_values;
using Words = std::vector<std::string>;

const Parameter lengths = {"K", "", "512", "", Parameter::Kind::integer, true, 1, 65536};
const Parameter rates = {"rate", "", "0.1", "", Parameter::Kind::number, true, -10, 10};
const Parameter modes = {"mode", "", "up", "", Parameter::Kind::word, true, 0, 0, "up,down"};
const Parameter one = {"one", "", "1", "", Parameter::Kind::integer, false, 1, 5};

/// What is said of a text that is refused; empty if it is not.
std::string refusal(const Parameter& parameter, const std::string& text) {
  try {
    parse_values(parameter, text, "--set K");
  } catch (const formats::Error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("values are lists of numbers and of ranges") {
  CHECK(parse_values(lengths, "512:16384:x2", "") ==
        Words{"512", "1024", "2048", "4096", "8192", "16384"});
  CHECK(parse_values(lengths, "1:4", "") == Words{"1", "2", "3", "4"});
  CHECK(parse_values(lengths, "10:20:4,7", "") == Words{"10", "14", "18", "7"});
  CHECK(parse_values(rates, "0:1:0.25", "") == Words{"0", "0.25", "0.5", "0.75", "1"});
  CHECK(parse_values(rates, "1e-1", "") == Words{"0.1"});
  CHECK(parse_values(modes, "down,up", "") == Words{"down", "up"});
  // Steps are counted from the first value, so their rounding errors do not add up.
  CHECK(parse_values(rates, "0:1:0.1", "").size() == 11);
}

TEST_CASE("values that a parameter does not take are refused with what is valid") {
  for (const std::string text : {"", "a", "1,,2", "1:", ":2", "1:2:3:4", "0", "65537", "1.5", "4:2",
                                 "1:8:x1", "1:8:0", "1:8:-1", "inf", "nan", "1:65536:0.5"}) {
    INFO(text);
    const std::string said = refusal(lengths, text);
    CHECK(said.starts_with("--set K: "));
    CHECK(said.find("(valid: 1 to 65536") != std::string::npos);
  }
  CHECK(refusal(lengths, "1:65536").find("too many") != std::string::npos);
  CHECK(refusal(modes, "left").find("(valid: up,down)") != std::string::npos);
  CHECK(refusal(one, "1,2") == "--set K: takes one value");
}

TEST_CASE("settings give their values as numbers") {
  experiments::Settings settings;
  settings.set("K", {"3", "5"});
  CHECK(settings.integers("K") == std::vector<std::int64_t>{3, 5});
  CHECK(settings.integer("K") == 3);
  const std::vector<Parameter> parameters = {
      {"K", "", "1:3", "1", Parameter::Kind::integer, true, 1, 9}, modes};
  CHECK(experiments::usual_settings(parameters, false).words("K") == Words{"1", "2", "3"});
  CHECK(experiments::usual_settings(parameters, true).words("K") == Words{"1"});
  CHECK(experiments::usual_settings(parameters, true).word("mode") == "up");
}

}  // namespace
}  // namespace guardbit::tests

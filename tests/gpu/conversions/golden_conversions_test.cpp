#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "formats/format_catalogue.hpp"
#include "gpu/conversions/conversion_digest.hpp"
#include "gpu/conversions/conversion_forms.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

/// What an H200 answered to every conversion ('guardbit gpu convert --all -o FILE'), against the
/// model on this CPU.
namespace guardbit::gpu {
namespace {

const nlohmann::json& recording() {
  static const nlohmann::json json = [] {
    std::ifstream file(tests::in_source("tests/golden/h200/conversions.json"));
    return nlohmann::json::parse(file);
  }();
  return json;
}

/// The row of a form; an empty object when there is none.
nlohmann::json recorded(const ConversionForm& form) {
  for (const nlohmann::json& row : recording().at("conversions"))
    if (row.at("name") == std::string(form.name)) return row;
  return nlohmann::json::object();
}

std::uint64_t parse_hex(const std::string& text) {
  std::uint64_t word = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), word, 16);
  REQUIRE((error == std::errc{} && end == text.data() + text.size()));
  return word;
}

/// "0fff", the key of a slice.
std::string key_of(std::uint32_t slice) {
  std::string text = "0000";
  for (std::size_t i = 4; i-- > 0; slice /= 16) text[i] = "0123456789abcdef"[slice % 16];
  return text;
}

/// The forms of each rule: many names mean the same.
std::vector<std::vector<ConversionForm>> forms_by_rule() {
  std::vector<std::vector<ConversionForm>> groups;
  for (const ConversionForm& form : conversion_forms()) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front().rule == form.rule;
    });
    if (same == groups.end()) {
      groups.push_back({form});
    } else {
      same->push_back(form);
    }
  }
  return groups;
}

bool has_few_inputs(const ConversionRule& rule) { return input_bits(rule) <= 16; }

void check_slices(std::span<const std::uint32_t> slices) {
  const std::vector<std::uint32_t> list(slices.begin(), slices.end());
  for (const auto& group : forms_by_rule()) {
    if (has_few_inputs(group.front().rule)) continue;
    const std::vector<std::uint64_t> digests = model_digests(group.front().rule, list);
    for (const ConversionForm& form : group) {
      const nlohmann::json row = recorded(form);
      for (std::size_t i = 0; i < list.size(); ++i) {
        INFO(form.name << " slice " << key_of(list[i]));
        CHECK(parse_hex(row.at("slices").at(key_of(list[i]))) == digests[i]);
      }
    }
  }
}

template <class Wanted>
int check_all_inputs(Wanted wanted) {
  int compared = 0;
  for (const auto& group : forms_by_rule()) {
    if (!wanted(group.front())) continue;
    const std::uint64_t digest = total_digest(model_digests(group.front().rule));
    for (const ConversionForm& form : group) {
      INFO(form.name);
      CHECK(parse_hex(recorded(form).at("digest")) == digest);
      ++compared;
    }
  }
  return compared;
}

}  // namespace

TEST_CASE("the recording holds every conversion, without a mismatch on the device") {
  CHECK(recording().at("conversions").size() == conversion_forms().size());
  for (const ConversionForm& form : conversion_forms()) {
    INFO(form.name);
    const nlohmann::json row = recorded(form);
    REQUIRE(row.contains("mismatches"));
    CHECK(row.at("mismatches") == 0);
    CHECK(row.at("inputs") == std::uint64_t{1} << input_bits(form.rule));
    CHECK(row.at("exhaustive") == is_exhaustive(form.rule));
  }
}

TEST_CASE("the device converted all of up to 16 bits as the model does here") {
  const int compared =
      check_all_inputs([](const ConversionForm& form) { return has_few_inputs(form.rule); });
  CHECK(compared > 300);
}

TEST_CASE("the device converted slices of larger sources as the model does here", "[long]") {
  check_slices(std::span(recorded_slices).first(1));
}

TEST_CASE("the device converted the other slices of larger sources as the model does here",
          "[sweep]") {
  check_slices(std::span(recorded_slices).subspan(1));
}

TEST_CASE("the device converted the samples of 64-bit sources as the model does here", "[sweep]") {
  const int compared =
      check_all_inputs([](const ConversionForm& form) { return !is_exhaustive(form.rule); });
  CHECK(compared > 200);
}

// The narrower floating formats, which NUMERICS 6 is about; 'guardbit gpu convert --all --on cpu'
// takes all the others as well, and hours.
TEST_CASE("the device converted all of FP32 as the model does here", "[sweep]") {
  const int compared = check_all_inputs([](const ConversionForm& form) {
    const ConversionRule& rule = form.rule;
    const bool pair_of_halves = rule.elements == 2 && formats::bits(rule.destination) == 16;
    return rule.source == formats::fp32 && !formats::is_integer(rule.destination) &&
           formats::bits(rule.destination) < 32 && !pair_of_halves && !rule.clamp &&
           !rule.flush_source;
  });
  CHECK(compared == 34);
}

}  // namespace guardbit::gpu

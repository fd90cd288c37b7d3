#include "tools/trace/trace_sidecar.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "tools/console/read_json.hpp"

namespace guardbit::tools {

experiments::TraceName meaning_of(const std::string& file, const std::string& name) {
  experiments::TraceName meaning = experiments::parse_trace_name(name);
  const std::string stem = file.substr(0, file.find_last_of('.'));
  const experiments::TraceName around = experiments::places_of_path(stem);
  if (!meaning.step) meaning.step = around.step;
  if (!meaning.rank) meaning.rank = around.rank;
  return meaning;
}

Sidecar::Sidecar(const std::string& file, const std::map<std::string, std::string>& metadata) {
  for (const char* key : {"step", "rank", "loss_scale"}) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) continue;
    const auto number = nlohmann::json::parse(found->second, nullptr, false);
    if (number.is_number()) said_[key] = number;
  }
  path_ = file + ".json";
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) return;
  const auto document = read_json(path_);
  if (!document.is_object()) throw formats::Error(formats::printable(path_), "not a JSON object");
  said_.update(document);
}

void Sidecar::complete(const std::string& name, experiments::TraceName& meaning,
                       std::optional<double>& loss_scale) const {
  take(said_, meaning, loss_scale);
  const auto tensors = said_.find("tensors");
  if (tensors == said_.end() || !tensors->is_object()) return;
  const auto own = tensors->find(name);
  if (own != tensors->end() && own->is_object()) take(*own, meaning, loss_scale);
}

void Sidecar::take(const nlohmann::json& from, experiments::TraceName& meaning,
                   std::optional<double>& loss_scale) const {
  const auto number = [&](const char* key, auto& into) {
    const auto found = from.find(key);
    if (found == from.end() || found->is_null()) return;
    using Number = typename std::remove_reference_t<decltype(into)>::value_type;
    const bool fits = std::is_integral_v<Number> ? found->is_number_unsigned() : found->is_number();
    if (!fits)
      throw formats::Error(formats::printable(path_), std::string(key) + " is not a number");
    into = found->template get<Number>();
  };
  const auto word = [&](const char* key, std::string& into) {
    const auto found = from.find(key);
    if (found != from.end() && found->is_string()) into = found->template get<std::string>();
  };
  number("step", meaning.step);
  number("rank", meaning.rank);
  number("loss_scale", loss_scale);
  word("role", meaning.role);
  word("tensor", meaning.tensor);
}

}  // namespace guardbit::tools

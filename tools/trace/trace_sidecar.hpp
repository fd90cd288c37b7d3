#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/traces/trace_name.hpp"

namespace guardbit::tools {

/// What the tensor's name says, and where it is silent the file's.
experiments::TraceName meaning_of(const std::string& file, const std::string& name);

/// What a sidecar FILE.json, and before it the file's own metadata, say of a file's tensors.
class Sidecar {
 public:
  /// Throws Error where the sidecar is there and not a JSON object.
  Sidecar(const std::string& file, const std::map<std::string, std::string>& metadata);

  /// Replaces what it says something of. Throws Error for numbers that are none.
  void complete(const std::string& name, experiments::TraceName& meaning,
                std::optional<double>& loss_scale) const;

 private:
  void take(const nlohmann::json& from, experiments::TraceName& meaning,
            std::optional<double>& loss_scale) const;

  std::string path_;
  nlohmann::json said_ = nlohmann::json::object();
};

}  // namespace guardbit::tools

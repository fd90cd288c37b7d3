#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The parameters of an experiment, and their values on the command line.
namespace guardbit::experiments {

/// Something of an experiment that `--set NAME=VALUES` changes.
struct Parameter {
  enum class Kind : std::uint8_t { integer, number, word, path };

  std::string_view name;
  std::string_view meaning;
  /// VALUES, as they are written for --set
  std::string_view usual;
  /// with --quick; empty: the usual ones
  std::string_view quick;
  Kind kind = Kind::integer;
  /// takes lists and ranges
  bool many = false;
  /// of integers and numbers
  double least = 1, most = 1;
  /// of words, comma separated
  std::string_view choices = {};
};

/// The values that VALUES stands for, each as it would be written alone: a list of values between
/// commas, and of ranges FIRST:LAST (of all integers), FIRST:LAST:STEP, FIRST:LAST:xFACTOR. Throws
/// formats::Error, beginning with `where`, for what the parameter does not take.
std::vector<std::string> parse_values(const Parameter& parameter, std::string_view text,
                                      std::string_view where);

/// What the parameters of one run are. The names are those of the experiment.
class Settings {
 public:
  void set(std::string_view name, std::vector<std::string> values);
  const std::map<std::string, std::vector<std::string>>& all() const { return values_; }

  const std::vector<std::string>& words(std::string_view name) const;
  const std::string& word(std::string_view name) const { return words(name).front(); }
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::int64_t integer(std::string_view name) const { return integers(name).front(); }
  std::vector<double> numbers(std::string_view name) const;
  double number(std::string_view name) const { return numbers(name).front(); }

  friend bool operator==(const Settings&, const Settings&) = default;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

/// The usual or the quick values of all of them.
Settings usual_settings(const std::vector<Parameter>& parameters, bool quick);

}  // namespace guardbit::experiments

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace guardbit::formats {

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  tuple,
  list,
  /// items: key, value, key, value …
  dict,
  /// text: "module.name"; nothing is imported
  global,
  /// text: the global that would be called, items: its arguments; nothing is called
  call,
  /// items: the identifier
  persistent,
};

/// A value of a pickle. Others are named by their index in Pickle::values.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  /// of booleans, too
  std::int64_t integer = 0;
  double real = 0;
  std::string text = {};
  std::vector<std::uint32_t> items = {};
};

struct Pickle {
  std::vector<PickleValue> values;
  std::uint32_t root = 0;

  const PickleValue& operator[](std::uint32_t i) const { return values[i]; }
  /// A value's item.
  const PickleValue& item(const PickleValue& of, std::size_t i) const {
    return values[of.items[i]];
  }
};

/// What a pickle may name: "module.name". Only names that `callable` holds may be called.
struct PickleNames {
  std::span<const std::string_view> known, callable;
};

/// Reads a pickle as data: objects become a record of what would be called, and nothing is. Error
/// for any name that `names` does not hold, for opcodes that plain data and such records do not
/// need (Python's pickletools.py describes them all), and for more than 2^22 values. `where` names
/// the file in errors.
Pickle read_pickle(const std::string& where, std::span<const std::byte> bytes,
                   const PickleNames& names);

}  // namespace guardbit::formats

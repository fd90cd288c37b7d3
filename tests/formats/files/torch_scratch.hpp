#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/formats/files/scratch.hpp"

namespace guardbit::formats {

/// A zip archive of stored entries (APPNOTE 4.3).
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto checksum = [](const std::string& text) {
    std::uint32_t crc = ~std::uint32_t{0};
    for (const char c : text) {
      crc ^= static_cast<unsigned char>(c);
      for (int i = 0; i < 8; ++i) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
    return ~crc;
  };
  std::string file, directory;
  for (const auto& [name, content] : entries) {
    const std::string sizes = little_endian(checksum(content), 4) +
                              little_endian(content.size(), 4) + little_endian(content.size(), 4) +
                              little_endian(name.size(), 2) + little_endian(0, 2);
    const std::string start =
        little_endian(20, 2) + little_endian(0, 4) + little_endian(0x00210000, 4);
    directory += "PK\x01\x02" + little_endian(20, 2) + start + sizes + std::string(10, '\0') +
                 little_endian(file.size(), 4) + name;
    file += "PK\x03\x04" + start + sizes + name + content;
  }
  const std::string end = "PK\x05\x06" + little_endian(0, 4) + little_endian(entries.size(), 2) +
                          little_endian(entries.size(), 2) + little_endian(directory.size(), 4) +
                          little_endian(file.size(), 4) + little_endian(0, 2);
  return file + directory + end;
}

/// Pieces of pickles, protocol 2, as torch.save writes them.
namespace pickled {

using Strings = std::vector<std::string>;

inline std::string text(const std::string& s) { return "X" + little_endian(s.size(), 4) + s; }
inline std::string number(std::int64_t n) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(n), 8);
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string joined(const Strings& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}
inline std::string tuple(const Strings& items) { return "(" + joined(items) + "t"; }
inline std::string list(const Strings& items) { return "](" + joined(items) + "e"; }
inline std::string dict(const Strings& keys_and_values) {
  return "}(" + joined(keys_and_values) + "u";
}
inline std::string numbers(const std::vector<std::int64_t>& values) {
  Strings items;
  for (const std::int64_t value : values) items.push_back(number(value));
  return tuple(items);
}
inline std::string call(const std::string& module, const std::string& name,
                        const Strings& arguments) {
  return global(module, name) + tuple(arguments) + "R";
}
inline std::string ordered_dict() { return global("collections", "OrderedDict") + ")R"; }
inline std::string storage(const std::string& type, const std::string& key, std::int64_t elements) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(elements)}) +
         "Q";
}
inline std::string tensor(const std::string& from, std::int64_t offset,
                          const std::vector<std::int64_t>& size,
                          const std::vector<std::int64_t>& stride) {
  return call("torch._utils", "_rebuild_tensor_v2",
              {from, number(offset), numbers(size), numbers(stride), "\x89", ordered_dict()});
}
/// The program around one value.
inline std::string program(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace pickled

/// What torch.save writes for this value and these storages.
inline std::string torch_file(const std::string& value,
                              const std::vector<std::pair<std::string, std::string>>& storages) {
  std::vector<std::pair<std::string, std::string>> entries = {
      {"x/data.pkl", pickled::program(value)}, {"x/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) entries.emplace_back("x/data/" + key, bytes);
  entries.emplace_back("x/version", "3\n");
  return zip_of(entries);
}

}  // namespace guardbit::formats

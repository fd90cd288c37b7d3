#include "formats/files/idx.hpp"

#include <cstddef>
#include <span>

#include "formats/catalogue.hpp"
#include "formats/error.hpp"
#include "formats/files/atomic_output.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/files/printable.hpp"
#include "formats/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr unsigned unsigned_bytes = 0x08;

std::uint32_t big_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i)
    word = word << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return word;
}

}  // namespace

Tensor read_idx(const std::string& path) {
  const MappedFile file = map_file(path);
  const std::string where = printable(path);
  const std::span<const std::byte> bytes = file.bytes;
  if (bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b})
    throw Error(where, "is compressed; unpack it first (gunzip)");
  if (bytes.size() < 4 || bytes[0] != std::byte{0} || bytes[1] != std::byte{0})
    throw Error(where, "is not an IDX file");
  if (std::to_integer<unsigned>(bytes[2]) != unsigned_bytes)
    throw Error(where,
                "holds elements of IDX type " + std::to_string(std::to_integer<unsigned>(bytes[2])),
                "8, unsigned bytes");
  Tensor tensor;
  tensor.name = where;
  tensor.format = uint8;
  const auto dimensions = std::to_integer<std::size_t>(bytes[3]);
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header) throw Error(where, "ends within its header");
  for (std::size_t i = 0; i < dimensions; ++i) tensor.shape.push_back(big_endian(bytes, 4 + 4 * i));
  const auto count = checked_element_count(tensor.shape);
  if (!count || static_cast<std::uint64_t>(*count) != bytes.size() - header)
    throw Error(where, "its header speaks of " +
                           (count ? std::to_string(*count) : "more than 2^63") + " bytes, but " +
                           std::to_string(bytes.size() - header) + " follow");
  tensor.bytes = bytes.subspan(header);
  tensor.owner = file.owner;
  return tensor;
}

void write_idx(const std::string& path, const std::vector<std::int64_t>& shape,
               const std::vector<std::uint8_t>& bytes) {
  std::vector<std::byte> header = {std::byte{0}, std::byte{0}, std::byte{unsigned_bytes},
                                   static_cast<std::byte>(shape.size())};
  for (const std::int64_t dimension : shape) {
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<std::byte>(dimension >> shift & 0xff));
  }
  AtomicOutput out(path);
  out.write(header);
  out.write(std::as_bytes(std::span(bytes)));
  out.commit();
}

}  // namespace guardbit::formats

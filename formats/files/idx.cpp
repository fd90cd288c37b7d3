#include "formats/files/idx.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/files/gzip.hpp"
#include "formats/files/mapped_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr unsigned unsigned_bytes = 0x08;
constexpr std::size_t most_unpacked = std::size_t{1} << 31;

std::uint32_t big_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i)
    word = word << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return word;
}

/// The bytes of a file from its beginning on, unpacked where they are packed.
class Bytes {
 public:
  explicit Bytes(const MappedFile& file, const std::string& where) : rest_(file.bytes) {
    if (is_gzip(file.bytes)) gzip_.emplace(file.bytes, where);
  }
  bool are_packed() const { return gzip_.has_value(); }
  /// Fewer than asked for only at the end.
  std::vector<std::byte> next(std::size_t count) {
    std::vector<std::byte> bytes(gzip_ ? count : std::min(count, rest_.size()));
    if (gzip_) {
      bytes.resize(gzip_->read(bytes));
    } else {
      std::copy_n(rest_.begin(), bytes.size(), bytes.begin());
      rest_ = rest_.subspan(bytes.size());
    }
    return bytes;
  }
  bool is_packed_beyond() {
    std::byte one{};
    return gzip_->read(std::span(&one, 1)) != 0;
  }
  /// What is left of a file that is not packed.
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
  std::optional<GzipReader> gzip_;
};

Error of_another_length(const std::string& where, std::optional<std::int64_t> count,
                        const std::string& follow) {
  return {where, "its header speaks of " + (count ? std::to_string(*count) : "more than 2^63") +
                     " bytes, but " + follow + " follow"};
}

/// The header's type and dimensions.
Tensor read_header(Bytes& bytes, const std::string& where) {
  const std::vector<std::byte> start = bytes.next(4);
  if (start.size() < 4 || start[0] != std::byte{0} || start[1] != std::byte{0})
    throw Error(where, "is not an IDX file");
  if (std::to_integer<unsigned>(start[2]) != unsigned_bytes)
    throw Error(where,
                "holds elements of IDX type " + std::to_string(std::to_integer<unsigned>(start[2])),
                "8, unsigned bytes");
  Tensor tensor;
  tensor.name = where;
  tensor.format = uint8;
  const auto dimensions = std::to_integer<std::size_t>(start[3]);
  const std::vector<std::byte> sizes = bytes.next(4 * dimensions);
  if (sizes.size() < 4 * dimensions) throw Error(where, "ends within its header");
  for (std::size_t i = 0; i < dimensions; ++i) tensor.shape.push_back(big_endian(sizes, 4 * i));
  return tensor;
}

/// Unpacks what the header speaks of and not a byte more; memory is taken only for what a file of
/// that size can hold.
void unpack(Bytes& bytes, const MappedFile& file, std::size_t count, Tensor& tensor) {
  if (count > most_unpacked)
    throw Error(tensor.name, "would unpack to " + std::to_string(count) + " bytes, more than the " +
                                 std::to_string(most_unpacked) +
                                 " that are unpacked here; unpack it first (gunzip)");
  if (count / greatest_deflate_ratio > file.bytes.size())
    throw of_another_length(tensor.name, static_cast<std::int64_t>(count), "fewer");
  const auto data = std::make_shared<std::vector<std::byte>>(bytes.next(count));
  if (data->size() != count)
    throw of_another_length(tensor.name, static_cast<std::int64_t>(count),
                            std::to_string(data->size()));
  if (bytes.is_packed_beyond())
    throw of_another_length(tensor.name, static_cast<std::int64_t>(count), "more");
  tensor.bytes = *data;
  tensor.owner = data;
}

}  // namespace

Tensor read_idx(const std::string& path) {
  const MappedFile file = map_file(path);
  const std::string where = printable(path);
  Bytes bytes(file, where);
  Tensor tensor = read_header(bytes, where);
  const auto count = checked_element_count(tensor.shape);
  if (!count) throw of_another_length(where, count, "fewer");
  if (bytes.are_packed()) {
    unpack(bytes, file, static_cast<std::size_t>(*count), tensor);
    return tensor;
  }
  if (static_cast<std::uint64_t>(*count) != bytes.rest().size())
    throw of_another_length(where, count, std::to_string(bytes.rest().size()));
  tensor.bytes = bytes.rest();
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

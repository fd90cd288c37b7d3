#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/files/mapped_file.hpp"
#include "formats/files/npy_header.hpp"
#include "formats/files/tensor_file.hpp"

namespace guardbit::formats {

/// Reads a .npy array (versions 1 to 3, either byte order, C or Fortran order) as a row-major
/// tensor named after the file. A little-endian C-ordered array views the mapped file. bf16, FP8
/// and others that NumPy knows only through extensions are stored as `V1`, `V2` or `f1`: their
/// format comes from the overrides, or from the file's name (`grad.bf16.npy`, `w_e4m3.npy`), else
/// an Error asks for it.
Tensor read_npy(const std::string& path, const FormatOverrides& overrides = {});
Tensor read_npy(const MappedFile& file, const FormatOverrides& overrides = {});

/// Writes one array. Formats that NumPy does not know are written as `|V1`, `|V2` (one code per
/// word), the form in which numpy.save leaves ml_dtypes arrays; TF32 as `<f4`.
void write_npy(const std::string& path, const Tensor& tensor);

/// An array as a file holds it. Where nothing says the format, it is that of unsigned words.
struct NpyArray {
  Tensor tensor;
  bool format_known = false;
};

/// The array whose header has been read; `data` is what follows it, kept alive by `owner`. The
/// format is `noted` where that has the elements' width, else what the dtype says, else what `name`
/// contains.
NpyArray npy_array(const std::string& where, const std::string& name, const NpyHeader& header,
                   std::span<const std::byte> data, std::shared_ptr<const void> owner,
                   const std::optional<Format>& noted = std::nullopt);

/// The same without its bytes.
NpyArray npy_description(const std::string& where, const std::string& name, const NpyHeader& header,
                         const std::optional<Format>& noted);
/// Whether the first row needs all of the data: it is column by column.
bool npy_needs_whole(const NpyHeader& header);
/// Turns whole elements as the file has them into little-endian ones.
void npy_to_little_endian(const NpyHeader& header, std::span<std::byte> data);

/// Applies the overrides; an Error for an array whose format is still unknown.
std::vector<Tensor> with_formats(const std::string& where, const FormatOverrides& overrides,
                                 const std::vector<NpyArray>& arrays);

/// Bytes of data that the header announces.
std::size_t npy_data_size(const std::string& where, const NpyHeader& header);

/// The header text of an array, of which the bytes are not looked at.
std::string npy_head(const Tensor& tensor);
/// The same, and the tensor as it is to be written after it.
std::pair<std::string, Tensor> npy_content(const std::string& where, const Tensor& tensor);

}  // namespace guardbit::formats

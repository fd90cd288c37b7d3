#include "formats/files/hdf5_file.hpp"

#include "formats/files/hdf5_library.hpp"
#include "formats/files/npy.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

#if GUARDBIT_HDF5
#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "formats/format_catalogue.hpp"
#include "formats/support/child_process.hpp"
#endif

namespace guardbit::formats {

bool is_hdf5(std::span<const std::byte> bytes) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  return bytes.size() >= signature.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()), signature.size()) ==
             signature;
}

#if GUARDBIT_HDF5

namespace {

/// H5F_ACC_RDONLY, which as a macro would call the library by name.
constexpr unsigned read_only = 0;

/// An open file, and what is asked of it again and again.
struct OpenFile {
  const Hdf5Library& h5;
  std::string where;
  std::size_t size;
  Hdf5Handle file;

  explicit OpenFile(const MappedFile& mapped)
      : h5(Hdf5Library::of(printable(mapped.path))),
        where(printable(mapped.path)),
        size(mapped.bytes.size()),
        file(opened(h5, mapped), h5.close_file) {
    if (!file.is_open()) throw Error(where, "not an HDF5 file that libhdf5 can open");
  }

  /// The library wants a file of a name; what standard input gave has none and is copied.
  static hid_t opened(const Hdf5Library& h5, const MappedFile& mapped) {
    if (mapped.path != "-") return h5.open_file(mapped.path.c_str(), read_only, H5P_DEFAULT);
    constexpr std::size_t growth = 65536;
    const Hdf5Handle access(h5.create_properties(h5.file_access), h5.close_properties);
    // It does not write to what it is given, but takes no constant.
    void* const image = const_cast<std::byte*>(mapped.bytes.data());
    if (h5.set_in_memory(access.get(), growth, 0) < 0 ||
        h5.set_image(access.get(), image, mapped.bytes.size()) < 0)
      return -1;
    return h5.open_file("standard input", read_only, access.get());
  }

  Hdf5Handle dataset(const std::string& name) const {
    return {h5.open_dataset(file.get(), name.c_str(), H5P_DEFAULT), h5.close_dataset};
  }
};

std::vector<std::string> names_of_datasets(const OpenFile& open) {
  std::vector<std::string> names;
  const auto note = [](hid_t, const char* name, const H5O_info_t* info, void* into) -> herr_t {
    if (info->type == H5O_TYPE_DATASET)
      static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  if (open.h5.visit(open.file.get(), H5_INDEX_NAME, H5_ITER_INC, note, &names) < 0)
    throw Error(open.where, "its groups are damaged");
  return names;
}

/// What an HDF5 type says; `known` is false for raw words.
struct StoredElement {
  Format format;
  bool known = true;
};

std::optional<StoredElement> element_of(const Hdf5Library& h5, hid_t type) {
  const std::size_t size = h5.type_size(type);
  const bool whole_word = size == 1 || size == 2 || size == 4 || size == 8;
  if (!whole_word) return std::nullopt;
  const int width = 8 * static_cast<int>(size);
  switch (h5.type_class(type)) {
    case H5T_INTEGER:
      if (h5.type_precision(type) != static_cast<std::size_t>(width)) return std::nullopt;
      return StoredElement{integer(width, h5.type_sign(type) == H5T_SGN_2)};
    case H5T_OPAQUE: return StoredElement{integer(width, false), false};
    case H5T_FLOAT: {
      std::size_t sign = 0, exponent = 0, exponent_size = 0, fraction = 0, fraction_size = 0;
      if (h5.type_fields(type, &sign, &exponent, &exponent_size, &fraction, &fraction_size) < 0 ||
          h5.type_leading_bit(type) != H5T_NORM_IMPLIED)
        return std::nullopt;
      for (const Format& format : {fp64, fp32, fp16, bf16, e4m3, e5m2}) {
        const auto fraction_bits = static_cast<std::size_t>(format.fraction_bits);
        const auto exponent_bits = static_cast<std::size_t>(format.exponent_bits);
        if (bits(format) == width && fraction == 0 && fraction_size == fraction_bits &&
            exponent == fraction_bits && exponent_size == exponent_bits &&
            sign == fraction_bits + exponent_bits &&
            h5.type_bias(type) == static_cast<std::size_t>(format.bias))
          return StoredElement{format};
      }
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

/// One dataset, as it is to be read.
struct Dataset {
  std::string name, place;
  /// without bytes
  NpyArray array;
  std::vector<hsize_t> shape, chunk;
  std::size_t width = 0;
};

std::vector<hsize_t> shape_of(const OpenFile& open, const std::string& place,
                              const Hdf5Handle& space) {
  const H5S_class_t kind = open.h5.extent_type(space.get());
  if (kind == H5S_NULL) return {0};
  const int rank = open.h5.rank(space.get());
  if (rank < 0) throw Error(place, "its shape is damaged");
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  if (open.h5.dimensions(space.get(), shape.data(), nullptr) < 0)
    throw Error(place, "its shape is damaged");
  return shape;
}

/// Nothing for datasets of no numbers.
std::optional<Dataset> describe(const OpenFile& open, const std::string& name) {
  const Hdf5Library& h5 = open.h5;
  Dataset described{name, open.where + ": dataset " + in_quotes(name), {}, {}, {}, 0};
  const std::string& place = described.place;
  const Hdf5Handle dataset = open.dataset(name);
  if (!dataset.is_open()) throw Error(place, "damaged");
  const Hdf5Handle type(h5.type_of_dataset(dataset.get()), h5.close_type);
  const Hdf5Handle space(h5.space_of_dataset(dataset.get()), h5.close_space);
  const Hdf5Handle properties(h5.properties_of_dataset(dataset.get()), h5.close_properties);
  if (!type.is_open() || !space.is_open() || !properties.is_open()) throw Error(place, "damaged");
  const std::optional<StoredElement> element = element_of(h5, type.get());
  if (!element) return std::nullopt;
  const H5D_layout_t layout = h5.layout(properties.get());
  if (layout == H5D_VIRTUAL || h5.external_count(properties.get()) != 0)
    throw Error(place, "its data are in other files, which are not followed");
  described.shape = shape_of(open, place, space);
  if (layout == H5D_CHUNKED) {
    described.chunk.resize(described.shape.size());
    const int rank = static_cast<int>(described.shape.size());
    if (h5.chunk(properties.get(), rank, described.chunk.data()) != rank)
      throw Error(place, "its chunks are damaged");
  }
  described.width = h5.type_size(type.get());
  NpyHeader header;  // the same question as of an .npy array: what raw words with such a name are
  for (const hsize_t dimension : described.shape) {
    if (dimension > static_cast<hsize_t>(std::numeric_limits<std::int64_t>::max()))
      throw Error(place, "its shape has too many elements");
    header.shape.push_back(static_cast<std::int64_t>(dimension));
  }
  const std::string words = std::to_string(described.width);
  header.descr = element->known ? "|u1" : "|V" + words;
  described.array = npy_description(place, name, header, std::nullopt);
  if (element->known) described.array.tensor.format = element->format;
  return described;
}

/// Reads rows (or, where a row is too long, parts of it) in order.
class WindowReader {
 public:
  WindowReader(const OpenFile& open, const Dataset& described)
      : h5_(open.h5),
        described_(described),
        dataset_(open.dataset(described.name)),
        file_space_(h5_.space_of_dataset(dataset_.get()), h5_.close_space),
        type_(memory_type()),
        start_(described.shape.size()),
        count_(described.shape.begin(), described.shape.end()) {
    if (!dataset_.is_open() || !file_space_.is_open() || !type_.is_open()) damaged();
  }

  void run(const WindowVisitor& visit) {
    if (std::ranges::count(described_.shape, 0U) > 0) return;
    below_axis(0, visit);
  }

 private:
  [[noreturn]] void damaged() const { throw Error(described_.place, "its data are damaged"); }

  Hdf5Handle memory_type() const {
    const Hdf5Handle stored(h5_.type_of_dataset(dataset_.get()), h5_.close_type);
    Hdf5Handle copy(h5_.copy_type(stored.get()), h5_.close_type);
    const H5T_class_t kind = h5_.type_class(copy.get());
    if (kind != H5T_OPAQUE && h5_.set_order(copy.get(), H5T_ORDER_LE) < 0) damaged();
    return copy;
  }

  /// Everything at the indices start_[0 … axis), in pieces along `axis` where it is too much.
  void below_axis(std::size_t axis, const WindowVisitor& visit) {
    std::uint64_t bytes = described_.width;  // of one index of `axis`; no more than all of them
    for (std::size_t i = axis + 1; i < count_.size(); ++i) bytes *= described_.shape[i];
    if (axis == count_.size()) return read(visit);
    if (bytes > window_bytes) {
      count_[axis] = 1;
      for (start_[axis] = 0; start_[axis] < described_.shape[axis]; ++start_[axis])
        below_axis(axis + 1, visit);
      start_[axis] = 0;
      count_[axis] = described_.shape[axis];
      return;
    }
    // A chunk that is cut would be unpacked for each of its parts.
    constexpr std::uint64_t longest = std::uint64_t{256} << 20;
    hsize_t rows = std::max<hsize_t>(1, window_bytes / bytes);
    if (axis == 0 && !described_.chunk.empty() && described_.chunk[0] < longest / bytes)
      rows = std::max(rows / described_.chunk[0], hsize_t{1}) * described_.chunk[0];
    for (start_[axis] = 0; start_[axis] < described_.shape[axis]; start_[axis] += rows) {
      count_[axis] = std::min(rows, described_.shape[axis] - start_[axis]);
      read(visit);
    }
    start_[axis] = 0;
    count_[axis] = described_.shape[axis];
  }

  void read(const WindowVisitor& visit) {
    std::size_t elements = 1;
    for (const hsize_t n : count_) elements *= static_cast<std::size_t>(n);
    window_.resize(elements * described_.width);
    const hsize_t length = elements;
    const Hdf5Handle memory_space(h5_.create_space(1, &length, nullptr), h5_.close_space);
    const bool selected =
        count_.empty() || h5_.select(file_space_.get(), H5S_SELECT_SET, start_.data(), nullptr,
                                     count_.data(), nullptr) >= 0;
    if (!memory_space.is_open() || !selected ||
        h5_.read(dataset_.get(), type_.get(), memory_space.get(), file_space_.get(), H5P_DEFAULT,
                 window_.data()) < 0)
      damaged();
    visit(window_, first_);
    first_ += elements;
  }

  const Hdf5Library& h5_;
  const Dataset& described_;
  Hdf5Handle dataset_, file_space_, type_;
  std::vector<hsize_t> start_, count_;
  std::vector<std::byte> window_;
  std::size_t first_ = 0;
};

std::map<std::string, std::string> numbers_of_root(const OpenFile& open) {
  const Hdf5Library& h5 = open.h5;
  std::map<std::string, std::string> numbers;
  for (const char* const name : {"step", "rank", "loss_scale"}) {
    if (h5.has_attribute(open.file.get(), name) <= 0) continue;
    const Hdf5Handle attribute(h5.open_attribute(open.file.get(), name, H5P_DEFAULT),
                               h5.close_attribute);
    const Hdf5Handle space(h5.space_of_attribute(attribute.get()), h5.close_space);
    const Hdf5Handle type(h5.type_of_attribute(attribute.get()), h5.close_type);
    const H5T_class_t kind = h5.type_class(type.get());
    double number = 0;
    if (h5.extent_type(space.get()) != H5S_SCALAR || (kind != H5T_INTEGER && kind != H5T_FLOAT) ||
        h5.read_attribute(attribute.get(), h5.native_double, &number) < 0)
      continue;
    const bool whole = number >= 0 && number < 0x1p53 && number == std::floor(number);
    if (whole) numbers[name] = std::to_string(static_cast<std::uint64_t>(number));
    // A step is whole.
    if (!whole && std::string_view(name) == "loss_scale")
      numbers[name] = nlohmann::json(number).dump();
  }
  return numbers;
}

/// Takes what the datasets announce from what is allowed.
void check_size(const Dataset& described, std::uint64_t& bytes_left) {
  const auto count = checked_element_count(described.array.tensor.shape);
  const auto bytes = count ? byte_size(described.array.tensor.format, Packing::container,
                                       static_cast<std::uint64_t>(*count))
                           : std::nullopt;
  if (!bytes || *bytes > bytes_left)
    throw Error(described.place, "the file would unpack to more than " + largest_unpacked_text());
  bytes_left -= *bytes;
}

}  // namespace

namespace {

/// What the library does of a file that was made to crash it.
constexpr const char* crash = "so damaged that libhdf5 crashes on it, or does not end";

/// It may think that long about a list of datasets, or about a window of data.
constexpr unsigned seconds = 60;

TensorStreams open_unguarded(const MappedFile& file, const FormatOverrides& overrides) {
  const auto open = std::make_shared<const OpenFile>(file);
  std::uint64_t bytes_left = largest_unpacked(open->size);
  TensorStreams streams{numbers_of_root(*open), {}, {}};
  std::vector<NpyArray> arrays;
  for (const std::string& name : names_of_datasets(*open)) {
    std::optional<Dataset> described = describe(*open, name);
    if (!described) {
      streams.left_out.emplace_back(name, "not a dataset of numbers");
      continue;
    }
    check_size(*described, bytes_left);
    arrays.push_back(described->array);
    const auto kept = std::make_shared<const Dataset>(std::move(*described));
    streams.tensors.push_back(
        {{}, [open, kept](const WindowVisitor& visit) {
           std::size_t first = 0;
           run_in_child(
               kept->place, crash, seconds,
               [&](const BytesVisitor& send) {
                 WindowReader(*open, *kept).run([&](auto bytes, std::size_t) { send(bytes); });
               },
               [&](std::span<const std::byte> bytes) {
                 visit(bytes, first);
                 first += bytes.size() / kept->width;
               });
         }});
  }
  std::vector<Tensor> tensors = with_formats(open->where, overrides, arrays);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    streams.tensors[i].tensor = std::move(tensors[i]);
  return streams;
}

}  // namespace

TensorStreams open_hdf5(const MappedFile& file, const FormatOverrides& overrides) {
  // libhdf5 (1.10 to 1.14 at least) frees and follows what damaged files make of its tables. A
  // child goes first: it is a copy of this process, so what it survives is survived here. Data are
  // read by children too.
  run_in_child(printable(file.path), crash, seconds,
               [&](const BytesVisitor&) { open_unguarded(file, overrides); }, {});
  return open_unguarded(file, overrides);
}

#else

TensorStreams open_hdf5(const MappedFile& file, const FormatOverrides&) {
  throw Error(printable(file.path),
              "HDF5 files are not read by this build: install libhdf5-dev and build again");
}

#endif

}  // namespace guardbit::formats

#include "formats/files/torch_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/files/pickle.hpp"
#include "formats/files/zip_archive.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"
#include "formats/value.hpp"

namespace guardbit::formats {
namespace {

/// A dtype's name after "torch." and the class of its storages in the same module.
struct TorchDtype {
  std::string_view dtype, storage;
  Format format;
};

constexpr std::array torch_dtypes = {
    TorchDtype{"torch.float64", "torch.DoubleStorage", fp64},
    TorchDtype{"torch.float32", "torch.FloatStorage", fp32},
    TorchDtype{"torch.float16", "torch.HalfStorage", fp16},
    TorchDtype{"torch.bfloat16", "torch.BFloat16Storage", bf16},
    TorchDtype{"torch.float8_e4m3fn", "", e4m3},
    TorchDtype{"torch.float8_e5m2", "", e5m2},
    TorchDtype{"torch.float8_e4m3fnuz", "", e4m3fnuz},
    TorchDtype{"torch.float8_e5m2fnuz", "", e5m2fnuz},
    TorchDtype{"torch.float8_e8m0fnu", "", e8m0},
    TorchDtype{"torch.int64", "torch.LongStorage", int64},
    TorchDtype{"torch.int32", "torch.IntStorage", int32},
    TorchDtype{"torch.int16", "torch.ShortStorage", int16},
    TorchDtype{"torch.int8", "torch.CharStorage", int8},
    TorchDtype{"torch.uint64", "", uint64},
    TorchDtype{"torch.uint32", "", uint32},
    TorchDtype{"torch.uint16", "", uint16},
    TorchDtype{"torch.uint8", "torch.ByteStorage", uint8},
    TorchDtype{"torch.bool", "torch.BoolStorage", b1},
};

constexpr std::string_view untyped = "torch.storage.UntypedStorage";
constexpr std::string_view tensor_v2 = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view tensor_v3 = "torch._utils._rebuild_tensor_v3";
constexpr std::string_view parameter = "torch._utils._rebuild_parameter";
constexpr std::string_view parameter_with_state = "torch._utils._rebuild_parameter_with_state";
constexpr std::string_view of_type = "torch._tensor._rebuild_from_type_v2";

constexpr std::array callable = {
    tensor_v2,
    tensor_v3,
    parameter,
    parameter_with_state,
    of_type,
    std::string_view("torch._utils._rebuild_tensor"),
    std::string_view("collections.OrderedDict"),
    std::string_view("torch.Size"),
    std::string_view("torch.device"),
    std::string_view("_codecs.encode"),
};

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names = {untyped, "torch.Tensor", "torch.nn.parameter.Parameter"};
  for (const TorchDtype& row : torch_dtypes) {
    names.push_back(row.dtype);
    if (!row.storage.empty()) names.push_back(row.storage);
  }
  return names;
}

bool is_global(const PickleValue& value, std::string_view name) {
  return value.kind == PickleKind::global && value.text == name;
}

const TorchDtype* find_dtype_of(const PickleValue& value, std::string_view TorchDtype::*column) {
  if (value.kind != PickleKind::global) return nullptr;
  const auto row = std::ranges::find(torch_dtypes, std::string_view(value.text), column);
  return row == torch_dtypes.end() ? nullptr : &*row;
}

/// Where a tensor's elements lie.
struct View {
  Tensor tensor;
  const ZipEntry* entry = nullptr;
  /// of the first element in the storage, in elements
  std::uint64_t offset = 0;
  /// elements of the storage from there to the last one
  std::uint64_t extent = 0;
  /// in elements
  std::vector<std::uint64_t> strides;
  /// bytes of an element
  std::uint64_t width = 0;
  std::uint64_t count() const { return static_cast<std::uint64_t>(element_count(tensor.shape)); }

  bool is_contiguous() const {
    std::uint64_t expected = 1;
    for (std::size_t axis = strides.size(); axis-- > 0;) {
      if (tensor.shape[axis] > 1 && strides[axis] != expected) return false;
      expected *= static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.shape[axis], 1));
    }
    return true;
  }
};

/// Turns the values of a pickle into views of the archive.
class TensorFinder {
 public:
  TensorFinder(const ZipArchive& archive, std::string folder, const Pickle& pickle,
               std::string file_name)
      : archive_(archive),
        folder_(std::move(folder)),
        where_(archive.where()),
        pickle_(pickle),
        file_name_(std::move(file_name)),
        bytes_left_(largest_unpacked(archive.file_bytes())),
        visits_left_(4 * pickle.values.size() + 1024) {}

  std::vector<View> views;
  std::map<std::string, std::string> metadata;

  void run() { visit(pickle_[pickle_.root], "", 0); }

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    throw Error(where_ + ": tensor " + in_quotes(name.empty() ? file_name_ : name), what);
  }

  void visit(const PickleValue& value, const std::string& name, int depth) {
    // Values that are shared are met again; values that hold themselves without end.
    constexpr int deepest = 64;
    if (depth > deepest || visits_left_ == 0)
      throw Error(where_, "containers within containers without end");
    --visits_left_;
    constexpr std::size_t longest_name = 4096;
    if (name.size() > longest_name) refuse(name, "its name is longer than 4096 bytes");
    const auto below = [&](const std::string& part) {
      return name.empty() ? part : name + "." + part;
    };
    if (value.kind == PickleKind::list || value.kind == PickleKind::tuple) {
      for (std::size_t i = 0; i < value.items.size(); ++i)
        visit(pickle_.item(value, i), below(std::to_string(i)), depth + 1);
    } else if (value.kind == PickleKind::dict) {
      for (std::size_t i = 0; i < value.items.size(); i += 2) {
        const PickleValue& key = pickle_.item(value, i);
        const PickleValue& item = pickle_.item(value, i + 1);
        const std::string part = key.kind == PickleKind::text      ? key.text
                                 : key.kind == PickleKind::integer ? std::to_string(key.integer)
                                                                   : "key" + std::to_string(i / 2);
        if (depth == 0) note(part, item);
        visit(item, below(part), depth + 1);
      }
    } else if (value.kind == PickleKind::call) {
      call(value.text, value, name);
    }
  }

  void note(const std::string& key, const PickleValue& value) {
    if (key != "step" && key != "rank" && key != "loss_scale") return;
    if (value.kind == PickleKind::integer && value.integer >= 0)
      metadata[key] = std::to_string(value.integer);
    if (value.kind == PickleKind::real && key == "loss_scale")
      metadata[key] = nlohmann::json(value.real).dump();
  }

  /// The items of `arguments` are those of the function.
  void call(std::string_view function, const PickleValue& arguments, const std::string& name) {
    const auto argument = [&](std::size_t i) -> const PickleValue& {
      if (i >= arguments.items.size()) refuse(name, "an argument is missing");
      return pickle_.item(arguments, i);
    };
    if (function == parameter || function == parameter_with_state) {
      const PickleValue& data = argument(0);
      if (data.kind != PickleKind::call || data.text == parameter ||
          data.text == parameter_with_state || data.text == of_type)
        refuse(name, "a parameter without its tensor");
      call(data.text, data, name);
    } else if (function == of_type) {
      const PickleValue& rebuild = argument(0);
      const PickleValue& type = argument(1);
      const PickleValue& inner = argument(2);
      if (!is_global(type, "torch.Tensor") && !is_global(type, "torch.nn.parameter.Parameter"))
        refuse(name, "a type of tensor that is not known");
      if (rebuild.kind != PickleKind::global || inner.kind != PickleKind::tuple ||
          rebuild.text == of_type)
        refuse(name, "a tensor that cannot be followed");
      call(rebuild.text, inner, name);
    } else if (function == tensor_v2 || function == "torch._utils._rebuild_tensor") {
      add(name, argument(0), argument(1), argument(2), argument(3), nullptr);
    } else if (function == tensor_v3) {
      add(name, argument(0), argument(1), argument(2), argument(3), &argument(6));
    }
  }

  std::vector<std::int64_t> whole_numbers(const std::string& name, const PickleValue& tuple,
                                          const char* what) const {
    const PickleValue* from = &tuple;
    if (from->kind == PickleKind::call && from->text == "torch.Size" && from->items.size() == 1)
      from = &pickle_.item(*from, 0);
    if (from->kind != PickleKind::tuple && from->kind != PickleKind::list)
      refuse(name, std::string(what) + " is no tuple");
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < from->items.size(); ++i) {
      const PickleValue& number = pickle_.item(*from, i);
      if (number.kind != PickleKind::integer || number.integer < 0)
        refuse(name, std::string(what) + " holds what is no whole number from 0");
      numbers.push_back(number.integer);
    }
    return numbers;
  }

  void add(const std::string& name, const PickleValue& storage, const PickleValue& offset,
           const PickleValue& size, const PickleValue& stride, const PickleValue* dtype) {
    View view;
    view.tensor.name = name.empty() ? file_name_ : name;
    view.tensor.shape = whole_numbers(name, size, "its size");
    for (const std::int64_t step : whole_numbers(name, stride, "its stride"))
      view.strides.push_back(static_cast<std::uint64_t>(step));
    if (view.strides.size() != view.tensor.shape.size())
      refuse(name, "its size and its stride have different lengths");
    if (offset.kind != PickleKind::integer || offset.integer < 0)
      refuse(name, "its offset is no whole number from 0");
    view.offset = static_cast<std::uint64_t>(offset.integer);
    find_storage(name, storage, dtype, view);
    const auto count = checked_element_count(view.tensor.shape);
    const auto bytes = count ? byte_size(view.tensor.format, Packing::container,
                                         static_cast<std::uint64_t>(*count))
                             : std::nullopt;
    if (!bytes) refuse(name, "its shape has too many elements");
    if (*count > 0) check_range(name, view);
    if (*bytes > bytes_left_) {
      refuse(name, "with it the tensors need more than " + largest_unpacked_text());
    }
    bytes_left_ -= *bytes;
    views.push_back(std::move(view));
  }

  void find_storage(const std::string& name, const PickleValue& storage, const PickleValue* dtype,
                    View& view) const {
    const PickleValue* tuple = nullptr;
    if (storage.kind == PickleKind::persistent) tuple = &pickle_.item(storage, 0);
    if (tuple == nullptr || tuple->kind != PickleKind::tuple || tuple->items.size() < 5 ||
        pickle_.item(*tuple, 0).text != "storage")
      refuse(name, "its storage is not one of the archive");
    const PickleValue& type = pickle_.item(*tuple, 1);
    const TorchDtype* row = dtype != nullptr ? find_dtype_of(*dtype, &TorchDtype::dtype)
                                             : find_dtype_of(type, &TorchDtype::storage);
    if (row == nullptr || (dtype != nullptr && !is_global(type, untyped)))
      refuse(name, "its dtype is not known");
    view.tensor.format = row->format;
    view.width = static_cast<std::uint64_t>(container_bits(row->format)) / 8;
    const std::string key = folder_ + "data/" + pickle_.item(*tuple, 2).text;
    view.entry = archive_.find(key);
    if (view.entry == nullptr) refuse(name, "the archive has no entry " + in_quotes(key));
  }

  /// Takes the strides to the last element, which must be within the storage.
  void check_range(const std::string& name, View& view) const {
    const std::uint64_t elements = view.entry->size / view.width;
    uint128 last = view.offset;
    for (std::size_t axis = 0; axis < view.strides.size() && last < elements; ++axis)
      last += uint128{static_cast<std::uint64_t>(view.tensor.shape[axis] - 1)} * view.strides[axis];
    if (last >= elements) {
      refuse(name, "it reaches past the " + std::to_string(elements) + " elements of its storage");
    }
    view.extent = static_cast<std::uint64_t>(last) - view.offset + 1;
  }

  const ZipArchive& archive_;
  std::string folder_;
  const std::string& where_;
  const Pickle& pickle_;
  std::string file_name_;
  std::uint64_t bytes_left_, visits_left_;
};

void read_contiguous(const ZipArchive& archive, const View& view, const WindowVisitor& visit) {
  ZipReader reader(archive, *view.entry);
  reader.skip(view.offset * view.width);
  const std::uint64_t size = view.count() * view.width;
  std::vector<std::byte> window(std::min<std::uint64_t>(size, window_bytes));
  for (std::uint64_t at = 0; at < size; at += window.size()) {
    window.resize(std::min<std::uint64_t>(window.size(), size - at));
    reader.read(window);
    visit(window, static_cast<std::size_t>(at / view.width));
  }
  // Only the checksum of the whole is known.
  if (view.offset == 0 && size == view.entry->size) reader.expect_end();
}

/// Transposed and repeated elements: the part of the storage that they lie in is held whole.
void read_strided(const ZipArchive& archive, const View& view, const WindowVisitor& visit) {
  std::vector<std::byte> storage;
  try {
    storage.resize(view.extent * view.width);
  } catch (const std::bad_alloc&) {
    throw Error(view.entry->place,
                "no memory for its " + std::to_string(view.extent * view.width) + " bytes");
  }
  ZipReader reader(archive, *view.entry);
  reader.skip(view.offset * view.width);
  reader.read(storage);
  const std::vector<std::int64_t>& shape = view.tensor.shape;
  std::vector<std::int64_t> index(shape.size(), 0);
  const std::uint64_t count = view.count();
  const std::uint64_t at_once = window_bytes / view.width;
  std::vector<std::byte> window(std::min(count, at_once) * view.width);
  std::uint64_t from = 0;
  for (std::uint64_t first = 0; first < count; first += at_once) {
    window.resize(std::min(at_once, count - first) * view.width);
    for (std::size_t to = 0; to < window.size(); to += view.width) {
      std::copy_n(storage.begin() + static_cast<std::ptrdiff_t>(from * view.width), view.width,
                  window.begin() + static_cast<std::ptrdiff_t>(to));
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        from += view.strides[axis];
        if (++index[axis] < shape[axis]) break;
        from -= view.strides[axis] * static_cast<std::uint64_t>(shape[axis]);
        index[axis] = 0;
      }
    }
    visit(window, static_cast<std::size_t>(first));
  }
}

std::vector<std::byte> whole_entry(const ZipArchive& archive, const ZipEntry& entry) {
  constexpr std::uint64_t longest = std::uint64_t{256} << 20;
  if (entry.size > longest) throw Error(entry.place, "it is longer than 256 MiB");
  std::vector<std::byte> bytes(entry.size);
  ZipReader reader(archive, entry);
  reader.read(bytes);
  reader.expect_end();
  return bytes;
}

/// The entry that says what the archive holds.
const ZipEntry& program_of(const ZipArchive& archive) {
  const ZipEntry* found = nullptr;
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with("/data.pkl") || std::ranges::count(entry.name, '/') != 1) continue;
    if (found != nullptr) throw Error(entry.place, "the archive has two such entries");
    found = &entry;
  }
  if (found == nullptr) throw Error(archive.where(), "not what torch.save wrote: no data.pkl");
  return *found;
}

}  // namespace

bool is_legacy_torch(std::span<const std::byte> bytes) {
  // A pickle of protocol 2 that holds one long of ten bytes: torch.serialization.MAGIC_NUMBER.
  constexpr std::string_view magic = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.";
  return bytes.size() >= magic.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()), magic.size()) == magic;
}

TensorStreams open_torch(const MappedFile& file, const FormatOverrides& overrides) {
  if (is_legacy_torch(file.bytes)) {
    throw Error(
        printable(file.path),
        "written in the form that torch.save had before PyTorch 1.6, which is not read: load it and save it again");
  }
  const auto archive = std::make_shared<const ZipArchive>(file, "what torch.save wrote");
  const ZipEntry& program = program_of(*archive);
  const std::string folder = program.name.substr(0, program.name.find('/') + 1);
  if (const ZipEntry* order = archive->find(folder + "byteorder")) {
    const std::vector<std::byte> word = whole_entry(*archive, *order);
    if (std::string_view(reinterpret_cast<const char*>(word.data()), word.size()) != "little")
      throw Error(order->place, "the byte order is not little-endian");
  }
  const std::vector<std::string_view> known = known_names();
  const Pickle pickle =
      read_pickle(program.place, whole_entry(*archive, program), {known, callable});
  TensorFinder finder(*archive, folder, pickle, std::filesystem::path(file.path).stem().string());
  finder.run();
  std::vector<Tensor> tensors;
  for (const View& view : finder.views) tensors.push_back(view.tensor);
  apply_overrides(archive->where(), overrides, tensors);
  TensorStreams streams{std::move(finder.metadata), {}, {}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto view = std::make_shared<const View>(std::move(finder.views[i]));
    streams.tensors.push_back({std::move(tensors[i]), [archive, view](const WindowVisitor& visit) {
                                 if (view->count() == 0) return;
                                 (view->is_contiguous() ? read_contiguous : read_strided)(
                                     *archive, *view, visit);
                               }});
  }
  return streams;
}

}  // namespace guardbit::formats

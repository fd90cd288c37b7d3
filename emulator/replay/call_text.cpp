#include "emulator/replay/call_text.hpp"

#include <limits>
#include <set>
#include <utility>

#include "emulator/replay/json_reader.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::emulator::replay {
namespace {

using Kind = JsonReader::Kind;

class CallReader {
 public:
  CallReader(const std::string& where, std::string_view text, const FindTensor& find)
      : json_(where, text), find_(find) {}

  std::vector<Call> read() {
    std::vector<Call> calls;
    if (json_.kind() != Kind::list) json_.refuse("a list of calls belongs here");
    json_.begin_list();
    json_.set_place("call 0");
    while (json_.next_item()) {
      calls.push_back(call());
      json_.set_place("call " + std::to_string(calls.size()));
    }
    json_.set_place("");
    json_.end();
    return calls;
  }

 private:
  /// Calls of a key of the object that comes next, each key once.
  template <class Take>
  void object(const Take& take) {
    if (json_.kind() != Kind::object) json_.refuse("an object belongs here");
    std::set<std::string> keys;
    std::string key;
    json_.begin_object();
    while (json_.next_key(key)) {
      if (!keys.insert(key).second)
        json_.refuse("the key " + formats::in_quotes(key) + " appears twice");
      take(key);
    }
  }

  Call call() {
    Call call;
    is_sampled_ = false;
    unfitting_.clear();
    object([&](const std::string& key) {
      if (key == "op") {
        call.op = text();
      } else if (key == "args") {
        call.args = list();
      } else if (key == "kwargs") {
        object([&](const std::string& name) { call.kwargs.emplace(name, value()); });
      } else if (key == "out") {
        call.out = value();
      } else if (key == "sampled") {
        is_sampled_ = true;
        object([&](const std::string& name) {
          if (name == "rows")
            call.sampled_rows = dimensions("rows");
          else if (name == "columns")
            call.sampled_columns = dimensions("columns");
          else
            json_.skip();
        });
      } else if (key == "written") {
        object([&](const std::string& name) { call.written.emplace(name, value()); });
      } else if (key == "flags") {
        call.changed_flags = json_.flags();
      } else if (key == "seed") {
        call.seed = static_cast<std::uint64_t>(integer("seed"));
      } else if (key == "philox_offset") {
        call.philox_offset = static_cast<std::uint64_t>(integer("philox_offset"));
      } else {
        json_.skip();
      }
    });
    if (call.op.empty()) json_.refuse("it names no op");
    if (!is_sampled_ && !unfitting_.empty()) json_.refuse(unfitting_);
    return call;
  }

  std::string text() {
    if (json_.kind() != Kind::string) json_.refuse("a text belongs here");
    return json_.string();
  }

  std::int64_t integer(const std::string& what) {
    if (json_.kind() == Kind::number) {
      const auto number = json_.number();
      if (const auto* whole = std::get_if<std::int64_t>(&number)) return *whole;
      // Seeds have up to 64 bits without a sign.
      const double real = std::get<double>(number);
      if (real >= 0x1p63 && real < 0x1p64)
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(real));
    }
    json_.refuse("the " + what + " holds whole numbers");
  }

  Dimensions dimensions(const std::string& what) {
    if (json_.kind() != Kind::list) json_.refuse("the " + what + " is a list of whole numbers");
    Dimensions all;
    json_.begin_list();
    while (json_.next_item()) {
      all.push_back(integer(what));
      if (all.back() < 0)
        json_.refuse("the " + what + " holds " + std::to_string(all.back()) + ", below 0");
    }
    return all;
  }

  List list() {
    if (json_.kind() != Kind::list) json_.refuse("a list belongs here");
    List all;
    json_.begin_list();
    while (json_.next_item()) all.push_back(value());
    return all;
  }

  Value value() {
    switch (json_.kind()) {
      case Kind::object: return {tensor()};
      case Kind::list: return {list()};
      case Kind::string: return {json_.string()};
      case Kind::boolean: return {json_.boolean()};
      case Kind::null: json_.null(); return {};
      case Kind::number: break;
    }
    const auto number = json_.number();
    if (const auto* whole = std::get_if<std::int64_t>(&number)) return {*whole};
    return {std::get<double>(number)};
  }

  Tensor tensor() {
    std::string name;
    std::optional<Dimensions> shape, stride;
    Tensor tensor;
    std::int64_t offset = 0;
    bool is_on_gpu = true;
    object([&](const std::string& key) {
      if (key == "tensor")
        name = text();
      else if (key == "shape")
        shape = dimensions("shape");
      else if (key == "stride")
        stride = dimensions("stride");
      else if (key == "offset")
        offset = integer("offset");
      else if (key == "device")
        is_on_gpu = !text().starts_with("cpu");
      else
        json_.skip();
    });
    const std::string quoted = formats::in_quotes(name);
    if (name.empty()) json_.refuse("an object that names no tensor");
    const Tensor* content = find_(name);
    if (content == nullptr) json_.refuse("the file has no tensor " + quoted);
    tensor = *content;
    if (!shape || !stride) json_.refuse("the tensor " + quoted + " needs shape and stride");
    if (*shape != content->shape) {
      // Sampled calls hold a part of the tensor.
      unfitting_ = "the tensor " + quoted + " has another shape in the file";
    }
    if (stride->size() != shape->size())
      json_.refuse("the tensor " + quoted + " has " + std::to_string(stride->size()) +
                   " strides for " + std::to_string(shape->size()) + " dimensions");
    check_extent(*shape, *stride, offset, quoted);
    tensor.stride = std::move(*stride);
    tensor.offset = offset;
    tensor.is_on_gpu = is_on_gpu;
    return tensor;
  }

  /// No GPU has memory for more.
  void check_extent(const Dimensions& shape, const Dimensions& stride, std::int64_t offset,
                    const std::string& quoted) {
    constexpr std::int64_t most = std::int64_t{1} << 44;
    std::int64_t extent = offset;
    bool fits = offset >= 0 && offset < most;
    for (std::size_t i = 0; fits && i < shape.size(); ++i) {
      if (shape[i] <= 1) continue;
      fits =
          stride[i] < most && shape[i] < most && (stride[i] == 0 || shape[i] <= most / stride[i]);
      if (fits) extent += (shape[i] - 1) * stride[i];
      fits = fits && extent < most;
    }
    if (!fits)
      json_.refuse("the strides of the tensor " + quoted + " reach further than any memory");
  }

  JsonReader json_;
  const FindTensor& find_;
  bool is_sampled_ = false;
  /// what would be wrong with the call if it were not sampled
  std::string unfitting_;
};

}  // namespace

std::vector<Call> parse_calls(const std::string& where, std::string_view text,
                              const FindTensor& find) {
  return CallReader(where, text, find).read();
}

}  // namespace guardbit::emulator::replay

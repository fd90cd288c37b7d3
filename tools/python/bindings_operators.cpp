#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/replay/answer.hpp"
#include "emulator/replay/plan_book.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"
#include "tools/products/plan_book_file.hpp"
#include "tools/python/array_view.hpp"
#include "tools/python/bindings.hpp"
#include "tools/python/interruptible.hpp"

// Operators of a program that runs, by the handlers that replay recordings.
namespace guardbit::python {

namespace {

using emulator::operators::Tensor;
using emulator::replay::Answer;
using emulator::replay::Call;
using emulator::replay::Status;
using emulator::replay::Value;

/// A tensor of PyTorch whose elements lie row by row at `address`; Python keeps them alive.
Tensor tensor_at(const std::string& dtype, std::vector<std::int64_t> shape,
                 std::vector<std::int64_t> stride, std::int64_t offset, bool is_on_gpu,
                 std::uintptr_t address) {
  const auto type = emulator::replay::type_of_torch_name(dtype);
  if (!type) throw formats::Error("a tensor", "the type " + dtype + " has no model");
  Tensor tensor{.type = *type,
                .shape = std::move(shape),
                .stride = std::move(stride),
                .offset = offset,
                .is_on_gpu = is_on_gpu,
                .bytes = {},
                .owner = {}};
  const auto size = static_cast<std::size_t>(tensor.count() * tensor.element_bytes());
  // NOLINTNEXTLINE(performance-no-int-to-ptr): PyTorch hands addresses out as integers.
  tensor.bytes = {reinterpret_cast<const std::byte*>(address), size};
  return tensor;
}

Value value_of(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<Tensor>(object)) return {nb::cast<Tensor>(object)};
  if (PyBool_Check(object.ptr())) return {nb::cast<bool>(object)};
  if (PyLong_Check(object.ptr())) return {nb::cast<std::int64_t>(object)};
  if (PyFloat_Check(object.ptr())) return {nb::cast<double>(object)};
  if (PyUnicode_Check(object.ptr())) return {nb::cast<std::string>(object)};
  emulator::replay::List list;
  for (const nb::handle item : nb::cast<nb::sequence>(object)) list.push_back(value_of(item));
  return {std::move(list)};
}

/// A result's elements as bytes that Python owns; those of an argument are copied.
nb::object bytes_of(const Tensor& tensor) {
  auto owned = std::make_unique<Tensor>(tensor);
  if (tensor.owner == nullptr) {
    auto copy = std::make_shared<std::vector<std::byte>>(tensor.bytes.begin(), tensor.bytes.end());
    owned->bytes = *copy;
    owned->owner = std::move(copy);
  }
  const std::size_t size = owned->bytes.size();
  auto* data = const_cast<std::byte*>(owned->bytes.data());
  nb::capsule owner(owned.release(), [](void* x) noexcept { delete static_cast<Tensor*>(x); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(data, {size}, owner));
}

nb::object result_of(const std::optional<Tensor>& tensor) {
  if (!tensor) return nb::none();
  return nb::make_tuple(formats::name_of(tensor->type), nb::cast(tensor->shape), bytes_of(*tensor));
}

/// What is computed with, and what is known of products.
class Operators {
 public:
  explicit Operators(int threads) : threads_(formats::thread_count(threads)) {}

  void read_book(const std::string& path) { tools::read_plan_book(path, book_); }
  void set_flags(std::map<std::string, std::string> flags) { flags_ = std::move(flags); }

  Answer answer(const Call& call) {
    emulator::replay::Context context{.machine = {},
                                      .flags = &flags_,
                                      .plans = &book_,
                                      .threads = threads_,
                                      .has_results = false};
    Answer answer;
    run_interruptibly([&](const Stop&) { answer = emulator::replay::answer_of(call, context); });
    return answer;
  }

 private:
  int threads_;
  std::map<std::string, std::string> flags_;
  emulator::replay::PlanBook book_;
};

nb::tuple answered(const Answer& answer) {
  nb::list results, also_changed;
  for (const auto& result : answer.results) results.append(result_of(result));
  for (const auto& [name, tensor] : answer.also_changed)
    also_changed.append(nb::make_tuple(name, result_of(tensor)));
  return nb::make_tuple(std::string(formats::word_of(answer.status)), answer.plan, results,
                        answer.changed, also_changed, answer.agree, answer.drawn);
}

}  // namespace

void bind_operators(nb::module_& module) {
  nb::class_<Tensor>(module, "OperatorTensor")
      .def(
          "__init__",
          [](Tensor* self, const std::string& dtype, std::vector<std::int64_t> shape,
             std::vector<std::int64_t> stride, std::int64_t offset, bool is_on_gpu,
             std::uintptr_t address) {
            new (self) Tensor(
                tensor_at(dtype, std::move(shape), std::move(stride), offset, is_on_gpu, address));
          },
          nb::arg("dtype"), nb::arg("shape"), nb::arg("stride"), nb::arg("offset"),
          nb::arg("is_on_gpu"), nb::arg("address"));
  nb::class_<Operators>(module, "Operators")
      .def(nb::init<int>(), nb::arg("threads"))
      .def("read_book", &Operators::read_book, nb::arg("path"))
      .def("set_flags", &Operators::set_flags, nb::arg("flags"))
      .def(
          "answer",
          [](Operators& self, std::string op, const nb::sequence& args, const nb::dict& kwargs,
             nb::handle out, std::optional<std::uint64_t> seed,
             std::optional<std::uint64_t> offset) {
            Call call;
            call.op = std::move(op);
            for (const nb::handle item : args) call.args.push_back(value_of(item));
            for (const auto& [name, item] : kwargs)
              call.kwargs.emplace(nb::cast<std::string>(name), value_of(item));
            call.out = value_of(out);
            call.seed = seed;
            call.philox_offset = offset;
            return answered(self.answer(call));
          },
          nb::arg("op"), nb::arg("args"), nb::arg("kwargs"), nb::arg("out").none(),
          nb::arg("seed").none(), nb::arg("offset").none());
}

}  // namespace guardbit::python

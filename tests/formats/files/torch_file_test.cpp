#include "formats/files/torch_file.hpp"

#include <bit>
#include <map>

#include "formats/codec.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/formats/files/torch_scratch.hpp"
#include "tests/places.hpp"

namespace guardbit::formats {
namespace {

using namespace pickled;

/// The bytes 0, 1, 2 … as elements of four bytes each begin with.
std::string counting(std::size_t elements, int width) {
  std::string bytes;
  for (std::size_t i = 0; i < elements; ++i) bytes += little_endian(i, width);
  return bytes;
}

TensorFile read(const std::string& bytes, const FormatOverrides& overrides = {}) {
  return whole_tensors("x.pt", open_torch(in_memory(bytes, "x.pt"), overrides));
}

std::string message(const std::string& value,
                    const std::vector<std::pair<std::string, std::string>>& storages = {}) {
  return error_of([&] { read(torch_file(value, storages)); });
}

TEST_CASE("torch.save: names are the keys that lead to a tensor, numbers beside them metadata") {
  const std::string a = tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1});
  const std::string value =
      dict({text("step"), number(7), text("loss_scale"), "G\x40\xf0" + std::string(6, '\0'),
            text("grads"), dict({text("fc1.weight"), a, number(3), list({a, "N", tuple({a})})}),
            text("note"), text("nothing")});
  const TensorFile file = read(torch_file(value, {{"0", counting(6, 4)}}));
  REQUIRE(file.tensors.size() == 3);
  CHECK(file.tensors[0].name == "grads.fc1.weight");
  CHECK(file.tensors[1].name == "grads.3.0");
  CHECK(file.tensors[2].name == "grads.3.2.0");
  CHECK(file.tensors[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(codes_of(file.tensors[0]) == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  CHECK(file.metadata.at("step") == "7");
  CHECK(file.metadata.at("loss_scale") == "65536.0");
  CHECK(file.metadata.size() == 2);
  CHECK(read(torch_file(a, {{"0", counting(6, 4)}})).tensors.at(0).name == "x");
}

TEST_CASE(
    "torch.save: parameters, ordered dictionaries with attributes, empty and scalar tensors") {
  const std::string data = tensor(storage("HalfStorage", "0", 2), 1, {}, {});
  const std::string parameter =
      call("torch._utils", "_rebuild_parameter", {data, "\x88", ordered_dict()});
  const std::string typed =
      call("torch._tensor", "_rebuild_from_type_v2",
           {global("torch._utils", "_rebuild_tensor_v2"), global("torch", "Tensor"),
            tuple({storage("BFloat16Storage", "1", 0), number(0), numbers({0, 4}), numbers({4, 1}),
                   "\x89", ordered_dict()}),
            dict({text("tag"), number(1)})});
  const std::string value = ordered_dict() + "(" + text("p") + parameter + text("e") + typed + "u" +
                            dict({text("_metadata"), dict({})}) + "b";
  const TensorFile file = read(torch_file(value, {{"0", counting(2, 2)}, {"1", ""}}));
  REQUIRE(file.tensors.size() == 2);
  CHECK(file.tensors[0].format == fp16);
  CHECK(codes_of(file.tensors[0]) == std::vector<std::uint64_t>{1});
  CHECK(file.tensors[1].format == bf16);
  CHECK(codes_of(file.tensors[1]).empty());
}

TEST_CASE("torch.save: transposed, repeated and shared elements come in the tensor's order") {
  const std::string whole = storage("FloatStorage", "0", 12);
  const std::string value =
      list({tensor(whole, 0, {3, 2}, {1, 3}), tensor(whole, 5, {2, 2}, {0, 1}),
            tensor(whole, 6, {6}, {1}), tensor(whole, 1, {2, 1, 2}, {4, 9, 2})});
  const TensorFile file = read(torch_file(value, {{"0", counting(12, 4)}}));
  REQUIRE(file.tensors.size() == 4);
  CHECK(codes_of(file.tensors[0]) == std::vector<std::uint64_t>{0, 3, 1, 4, 2, 5});
  CHECK(codes_of(file.tensors[1]) == std::vector<std::uint64_t>{5, 6, 5, 6});
  CHECK(codes_of(file.tensors[2]) == std::vector<std::uint64_t>{6, 7, 8, 9, 10, 11});
  CHECK(codes_of(file.tensors[3]) == std::vector<std::uint64_t>{1, 3, 5, 7});
}

TEST_CASE("torch.save: dtypes without a storage class of their own") {
  const auto v3 = [](const std::string& dtype, std::int64_t bytes) {
    return call(
        "torch._utils", "_rebuild_tensor_v3",
        {tuple({text("storage"), global("torch.storage", "UntypedStorage"), text("0"),
                text("cuda:0"), number(bytes)}) +
             "Q",
         number(1), numbers({2}), numbers({1}), "\x89", ordered_dict(), global("torch", dtype)});
  };
  const std::vector<std::pair<std::string, Format>> expected = {
      {"float8_e4m3fn", e4m3}, {"float8_e5m2", e5m2}, {"uint16", uint16}};
  for (const auto& [dtype, format] : expected) {
    CAPTURE(dtype);
    const std::string bytes = counting(3, container_bits(format) / 8);
    const TensorFile file =
        read(torch_file(v3(dtype, static_cast<std::int64_t>(bytes.size())), {{"0", bytes}}));
    REQUIRE(file.tensors.size() == 1);
    CHECK(file.tensors[0].format == format);
    CHECK(codes_of(file.tensors[0]) == std::vector<std::uint64_t>{1, 2});
  }
  CHECK(contains(message(v3("float4_e2m1fn_x2", 3), {{"0", "abc"}}), "'torch.float4_e2m1fn_x2'"));
}

TEST_CASE("torch.save: nothing but data is read from a pickle, and what was refused is named") {
  const auto short_text = [](const std::string& s) {
    return "\x8c" + little_endian(s.size(), 1) + s;
  };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {global("os", "system") + tuple({text("touch owned")}) + "R", "'os.system'"},
      {global("posix", "system"), "'posix.system'"},
      {short_text("builtins") + short_text("eval") + "\x93", "'builtins.eval'"},
      {short_text("builtins") + short_text("getattr") + "\x93", "'builtins.getattr'"},
      {global("torch", "load"), "'torch.load'"},
      {global("torch._utils", "_rebuild_sparse_tensor"), "'torch._utils._rebuild_sparse_tensor'"},
      {global("torch", "FloatStorage") + ")R", "calls 'torch.FloatStorage'"},
      {global("torch", "FloatStorage") + ")\x81", "calls 'torch.FloatStorage'"},
      {text("x") + ")R", "calls a value"},
      {global("torch._utils", "_rebuild_tensor_v2") + text("x") + "R", "without a tuple"},
      {"(" + text("ls") + "ios\nsystem\n", "opcode INST"},
      {"(" + global("torch", "Size") + "o", "opcode OBJ"},
      {"\x82\x01", "opcode EXT1"},
      {"\x8f", "opcode EMPTY_SET"},
      {"P1\n", "opcode PERSID"},
      {"N2", "opcode DUP"},
      {global("torch", "Size") + ")" + dict({}) + "\x92", "opcode NEWOBJ_EX"},
      {global("torch", "Size") + ")R" + dict({}) + "b", "sets the state"},
      {"\xff", "no opcode has the number 255"},
      {"\x80\x06", "protocol later than 5"},
      {"", "more values than there are"},
      {"t", "mark that it has not set"},
      {"h\x07", "has not remembered"},
      {")(" + number(1) + "e", "no list or dict"},
      {"}(Nu", "no list or dict"},
      {"X\xff\xff\xff\x7f", "ends early"},
      {"\x8e" + std::string(8, '\xff'), "ends early"},
      {"cos", "ends early"},
  };
  for (const auto& [value, expected] : refused) {
    CAPTURE(value, expected);
    const std::string said = message(value);
    CAPTURE(said);
    CHECK(contains(said, expected));
    CHECK(contains(said, "data.pkl': byte "));
    CHECK_FALSE(contains(said, "\n"));
  }
  CHECK(std::filesystem::exists("owned") == false);
}

TEST_CASE("torch.save: pickles that grow without end are refused") {
  // Ten levels of lists that hold the one below ten times: 10^10 leaves of a hundred bytes.
  std::string bomb = "]q" + std::string(1, '\0');
  for (char level = 1; level <= 10; ++level) {
    bomb += "](";
    for (int i = 0; i < 10; ++i) bomb += "h" + std::string(1, static_cast<char>(level - 1));
    bomb += "eq" + std::string(1, level);
  }
  CHECK(contains(message(bomb), "without end"));
  CHECK(contains(message("]q\x01h\x01"
                         "a"),
                 "without end"));  // holds itself
  const std::string long_key = text(std::string(5000, 'k'));
  CHECK(contains(message(dict({long_key, list({"N"})})), "longer than 4096 bytes"));
  CHECK(contains(message(std::string(100, ']') + std::string(99, 'a')), "without end"));
  CHECK(contains(message(std::string((std::size_t{1} << 22) + 1, ')')), "more than 2^22 values"));
}

TEST_CASE("torch.save: tensors must lie in their storages") {
  const std::string three = storage("FloatStorage", "0", 3);
  const std::vector<std::pair<std::string, std::string>> storages = {{"0", counting(3, 4)}};
  const auto said = [&](const std::string& value) { return message(value, storages); };
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  REQUIRE(said(tensor(three, 0, {3}, {1})).empty());
  CHECK(contains(said(tensor(three, 0, {4}, {1})), "past the 3 elements"));
  CHECK(contains(said(tensor(three, 1, {3}, {1})), "past the 3 elements"));
  CHECK(contains(said(tensor(three, most, {1}, {1})), "past the 3 elements"));
  CHECK(contains(said(tensor(three, 0, {2, 2}, {most, most})), "past the 3 elements"));
  CHECK(contains(said(tensor(three, 0, {2, 2, 2, 2, 2, 2}, {most, most, most, most, most, most})),
                 "past the 3 elements"));
  CHECK(contains(said(tensor(three, 0, {most, most}, {0, 0})), "too many elements"));
  CHECK(contains(said(tensor(three, 0, {most / 8}, {0})), "1 GiB and 256 times"));
  CHECK(contains(said(tensor(three, -1, {1}, {1})), "offset"));
  CHECK(contains(said(tensor(three, 0, {-1}, {1})), "its size"));
  CHECK(contains(said(tensor(three, 0, {1}, {-1})), "its stride"));
  CHECK(contains(said(tensor(three, 0, {1}, {1, 1})), "different lengths"));
  CHECK(
      contains(said(tensor(storage("FloatStorage", "1", 3), 0, {1}, {1})), "no entry 'x/data/1'"));
  CHECK(contains(said(tensor(text("storage"), 0, {1}, {1})), "storage is not one of the archive"));
  CHECK(contains(said(call("torch._utils", "_rebuild_tensor_v2", {three})), "argument is missing"));
  CHECK(contains(said(call("torch._utils", "_rebuild_parameter", {number(1)})),
                 "parameter without its tensor"));
}

TEST_CASE("torch.save: archives that are something else say so") {
  const auto said = [](const std::string& bytes) { return error_of([&] { read(bytes); }); };
  CHECK(contains(said(""), "x.pt: not what torch.save wrote: empty"));
  CHECK(contains(said(zip_of({{"a", "b"}})), "no data.pkl"));
  CHECK(contains(said(zip_of({{"a/data.pkl", "N."}, {"b/data.pkl", "N."}})), "two such entries"));
  CHECK(contains(said(zip_of({{"x/data.pkl", ""}})), "the pickle is empty"));
  CHECK(contains(said(zip_of({{"x/data.pkl", "N."}, {"x/byteorder", "big"}})), "byte order"));
  const std::string legacy = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.";
  CHECK(contains(said(legacy), "before PyTorch 1.6"));
  const std::string good =
      torch_file(tensor(storage("FloatStorage", "0", 3), 0, {3}, {1}), {{"0", counting(3, 4)}});
  for (std::size_t size = 0; size < good.size(); size += 5)
    CHECK_FALSE(said(good.substr(0, size)).empty());

  const Scratch scratch;
  write_text(scratch / "legacy", legacy);
  CHECK(contains(error_of([&] { read_tensors(scratch / "legacy"); }), "before PyTorch 1.6"));
  write_text(scratch / "good", good);
  CHECK(read_tensors(scratch / "good").tensors.size() == 1);
}

TEST_CASE("torch.save: what PyTorch 2.11 wrote") {
  const std::string folder = tests::in_source("tests/golden/traces/");
  const TensorFile file = read_tensors(folder + "torch_mixed.pt");
  CHECK(file.metadata == std::map<std::string, std::string>{
                             {"loss_scale", "1048576.0"}, {"rank", "1"}, {"step", "12"}});
  const auto values = [&](const std::string& name) {
    const Tensor* tensor = file.find(name);
    INFO(name);
    REQUIRE(tensor != nullptr);
    std::vector<double> numbers;  // in units of 2^-26
    for (const std::uint64_t code : codes_of(*tensor))
      numbers.push_back(std::bit_cast<double>(encode(fp64, decode(tensor->format, code))) * 0x1p26);
    return numbers;
  };
  std::vector<double> base, transposed;
  for (int i = 0; i < 24; ++i) base.push_back(i - 12);
  for (int column = 0; column < 6; ++column) {
    for (int row = 0; row < 4; ++row) transposed.push_back(6 * row + column - 12);
  }
  CHECK(values("grads.fc1.weight") == base);
  CHECK(values("grads.fc1.t") == transposed);
  CHECK(file.find("grads.fc1.t")->shape == std::vector<std::int64_t>{6, 4});
  CHECK(values("grads.fc1.row") == std::vector<double>{-6, -5, -4, -3, -2, -1});
  CHECK(values("grads.fc1.every") == std::vector<double>{-9, -4, 1, 6, 11});
  CHECK(values("grads.fc1.bias") == std::vector<double>(5, -12));
  CHECK(values("half.1") == base);
  CHECK(values("half.2") == base);
  CHECK(file.find("half.0")->format == fp16);
  CHECK(file.find("half.1")->format == bf16);
  CHECK(file.find("half.2")->format == fp64);
  CHECK(file.find("eight.e4m3")->format == e4m3);
  CHECK(values("eight.e4m3")[0] == -12 * 0x1p26);
  CHECK(file.find("eight.e5m2")->format == e5m2);
  CHECK(values("eight.e5m2")[0] == -12 * 0x1p26);
  CHECK(values("tuple.0") == std::vector<double>{0x1p25});
  CHECK(values("tuple.1").empty());
  CHECK(values("parameter").size() == 12);
  CHECK(values("model.1.weight") == std::vector<double>(2, 0x1p26));
  CHECK(values("ordered.a") == std::vector<double>{6, 7, 8, 9, 10, 11});
  CHECK(file.find("integers")->format == int64);
  CHECK(file.find("flags")->format == b1);
  CHECK(file.tensors.size() == 20);

  CHECK(codes_of(read_tensors(folder + "torch_protocol4.pt").tensors.at(0)) ==
        codes_of(*file.find("grads.fc1.weight")));
  const auto said = [&](const char* name) {
    return error_of([&] { read_tensors(folder + name); });
  };
  CHECK(contains(said("torch_hostile.pt"), "'posix.system'"));
  CHECK(contains(said("torch_module.pt"), "'torch.nn.modules.container.Sequential'"));
  CHECK(contains(said("torch_legacy.pt"), "before PyTorch 1.6"));
}

}  // namespace
}  // namespace guardbit::formats

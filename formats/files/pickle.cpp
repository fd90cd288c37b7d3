#include "formats/files/pickle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::formats {
namespace {

constexpr std::size_t most_values = std::size_t{1} << 22;

struct Opcode {
  std::uint8_t code;
  std::string_view name;
};

/// Those that are not carried out, for the message.
constexpr std::array refused_opcodes = {
    Opcode{'0', "POP"},          Opcode{'1', "POP_MARK"},
    Opcode{'2', "DUP"},          Opcode{'F', "FLOAT"},
    Opcode{'I', "INT"},          Opcode{'L', "LONG"},
    Opcode{'P', "PERSID"},       Opcode{'S', "STRING"},
    Opcode{'V', "UNICODE"},      Opcode{'g', "GET"},
    Opcode{'p', "PUT"},          Opcode{'d', "DICT"},
    Opcode{'i', "INST"},         Opcode{'l', "LIST"},
    Opcode{'o', "OBJ"},          Opcode{0x82, "EXT1"},
    Opcode{0x83, "EXT2"},        Opcode{0x84, "EXT4"},
    Opcode{0x8b, "LONG4"},       Opcode{0x8f, "EMPTY_SET"},
    Opcode{0x90, "ADDITEMS"},    Opcode{0x91, "FROZENSET"},
    Opcode{0x92, "NEWOBJ_EX"},   Opcode{0x96, "BYTEARRAY8"},
    Opcode{0x97, "NEXT_BUFFER"}, Opcode{0x98, "READONLY_BUFFER"},
};

/// The machine that a pickle is a program for, less all that does something.
class Machine {
 public:
  Machine(const std::string& where, std::span<const std::byte> bytes, const PickleNames& names)
      : where_(where), bytes_(bytes), names_(names) {}

  Pickle run() {
    if (bytes_.empty()) refuse("the pickle is empty");
    do {
      opcode_at_ = at_;
      step(static_cast<std::uint8_t>(unsigned_number(1)));
    } while (!stopped_);
    return std::move(pickle_);
  }

 private:
  using Index = std::uint32_t;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(where_ + ": byte " + std::to_string(opcode_at_), what);
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size() - at_) refuse("the pickle ends early");
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  std::uint64_t unsigned_number(std::size_t width) {
    std::uint64_t number = 0;
    const auto bytes = take(width);
    for (std::size_t i = width; i-- > 0;)
      number = number << 8 | std::to_integer<unsigned>(bytes[i]);
    return number;
  }
  std::string text(std::uint64_t length) {
    const auto bytes = take(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string line() {
    std::string read;
    for (;;) {
      const char c = static_cast<char>(unsigned_number(1));
      if (c == '\n') return read;
      read += c;
    }
  }

  PickleValue& value(Index i) { return pickle_.values[i]; }
  void push(PickleValue made) {
    if (pickle_.values.size() == most_values) refuse("the pickle holds more than 2^22 values");
    stack_.push_back(static_cast<Index>(pickle_.values.size()));
    pickle_.values.push_back(std::move(made));
  }
  void push_text(PickleKind kind, std::string words) {
    push({.kind = kind, .text = std::move(words)});
  }
  void push_integer(std::int64_t number) { push({.kind = PickleKind::integer, .integer = number}); }
  /// Little-endian two's complement; what int64 does not hold is kept as a real number.
  void push_long(std::span<const std::byte> bytes) {
    if (bytes.size() <= 8) {
      std::uint64_t number = 0;
      for (std::size_t i = bytes.size(); i-- > 0;)
        number = number << 8 | std::to_integer<unsigned>(bytes[i]);
      const int unused = 64 - 8 * static_cast<int>(bytes.size());
      return push_integer(unused == 64 ? 0 : static_cast<std::int64_t>(number << unused) >> unused);
    }
    double number = std::to_integer<unsigned>(bytes.back()) >= 128 ? -1 : 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
      number = number * 256 + static_cast<double>(std::to_integer<unsigned>(bytes[i]));
    push({.kind = PickleKind::real, .real = number});
  }

  /// Number of values above the last mark, or above the bottom.
  std::size_t depth() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  Index pop() {
    if (depth() == 0) refuse("the pickle takes more values than there are");
    const Index top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Index top() const {
    if (depth() == 0) refuse("the pickle takes more values than there are");
    return stack_.back();
  }
  std::vector<Index> pop_to_mark() {
    if (marks_.empty()) refuse("the pickle goes back to a mark that it has not set");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Index> above(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return above;
  }
  void push_tuple(std::vector<Index> items) {
    push({.kind = PickleKind::tuple, .items = std::move(items)});
  }
  void push_last_as_tuple(std::size_t count) {
    std::vector<Index> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push_tuple(std::move(items));
  }

  void extend(PickleKind kind, const std::vector<Index>& more) {
    PickleValue& into = value(top());
    if (into.kind != kind || (kind == PickleKind::dict && more.size() % 2 != 0))
      refuse("the pickle adds items to what is no list or dict");
    into.items.insert(into.items.end(), more.begin(), more.end());
  }

  void remember(std::uint64_t slot) { memo_[slot] = top(); }
  void recall(std::uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) refuse("the pickle recalls a value that it has not remembered");
    stack_.push_back(found->second);
  }

  void push_global(const std::string& module, const std::string& name) {
    std::string whole = module + "." + name;
    if (std::ranges::find(names_.known, whole) == names_.known.end() && !is_callable(whole)) {
      refuse(
          "the pickle names " + in_quotes(whole) +
          ", which is none of the tensors, numbers, strings and containers of them that are read; nothing was run");
    }
    push_text(PickleKind::global, std::move(whole));
  }
  bool is_callable(const std::string& name) const {
    return std::ranges::find(names_.callable, name) != names_.callable.end();
  }

  void call() {
    const Index arguments = pop();
    const Index callee = pop();
    if (value(arguments).kind != PickleKind::tuple) refuse("the pickle calls without a tuple");
    if (value(callee).kind != PickleKind::global || !is_callable(value(callee).text)) {
      refuse("the pickle calls " +
             (value(callee).kind == PickleKind::global ? in_quotes(value(callee).text)
                                                       : std::string("a value")) +
             "; nothing was run");
    }
    if (value(callee).text == "collections.OrderedDict" && value(arguments).items.empty())
      return push({.kind = PickleKind::dict});
    push({.kind = PickleKind::call, .text = value(callee).text, .items = value(arguments).items});
  }

  /// The attributes of an OrderedDict (a state_dict's _metadata) say nothing of its items.
  void build() {
    pop();
    if (value(top()).kind != PickleKind::dict) refuse("the pickle sets the state of an object");
  }

  bool step_number(std::uint8_t code) {
    switch (code) {
      case 'N': push({}); return true;
      case 0x88:
      case 0x89: push({.kind = PickleKind::boolean, .integer = code == 0x88}); return true;
      case 'K': push_integer(static_cast<std::int64_t>(unsigned_number(1))); return true;
      case 'M': push_integer(static_cast<std::int64_t>(unsigned_number(2))); return true;
      case 'J': push_integer(static_cast<std::int32_t>(unsigned_number(4))); return true;
      case 0x8a: push_long(take(unsigned_number(1))); return true;
      case 'G': {
        std::uint64_t big_endian = 0;
        for (const std::byte b : take(8))
          big_endian = big_endian << 8 | std::to_integer<unsigned>(b);
        push({.kind = PickleKind::real, .real = std::bit_cast<double>(big_endian)});
        return true;
      }
      default: return false;
    }
  }

  bool step_text(std::uint8_t code) {
    switch (code) {
      case 'X': push_text(PickleKind::text, text(unsigned_number(4))); return true;
      case 0x8c: push_text(PickleKind::text, text(unsigned_number(1))); return true;
      case 0x8d: push_text(PickleKind::text, text(unsigned_number(8))); return true;
      case 'U': push_text(PickleKind::text, text(unsigned_number(1))); return true;
      case 'T': push_text(PickleKind::text, text(unsigned_number(4))); return true;
      case 'B': push_text(PickleKind::bytes, text(unsigned_number(4))); return true;
      case 'C': push_text(PickleKind::bytes, text(unsigned_number(1))); return true;
      case 0x8e: push_text(PickleKind::bytes, text(unsigned_number(8))); return true;
      default: return false;
    }
  }

  bool step_container(std::uint8_t code) {
    switch (code) {
      case '(': marks_.push_back(stack_.size()); return true;
      case ')': push_tuple({}); return true;
      case 't': push_tuple(pop_to_mark()); return true;
      case 0x85: push_last_as_tuple(1); return true;
      case 0x86: push_last_as_tuple(2); return true;
      case 0x87: push_last_as_tuple(3); return true;
      case ']': push({.kind = PickleKind::list}); return true;
      case '}': push({.kind = PickleKind::dict}); return true;
      case 'a': {
        const Index one = pop();
        extend(PickleKind::list, {one});
        return true;
      }
      case 'e': extend(PickleKind::list, pop_to_mark()); return true;
      case 's': {
        const Index item = pop();
        const Index key = pop();
        extend(PickleKind::dict, {key, item});
        return true;
      }
      case 'u': extend(PickleKind::dict, pop_to_mark()); return true;
      default: return false;
    }
  }

  void step(std::uint8_t code) {
    if (step_number(code) || step_text(code) || step_container(code)) return;
    switch (code) {
      case 0x80:
        if (unsigned_number(1) > 5) refuse("the pickle has a protocol later than 5");
        return;
      case 0x95: take(8); return;  // FRAME: a length that says nothing new
      case 'q': return remember(unsigned_number(1));
      case 'r': return remember(unsigned_number(4));
      case 0x94: return remember(memo_.size());
      case 'h': return recall(unsigned_number(1));
      case 'j': return recall(unsigned_number(4));
      case 'c': {
        const std::string module = line();
        return push_global(module, line());
      }
      case 0x93: {
        const Index name = pop();
        const Index module = pop();
        if (value(name).kind != PickleKind::text || value(module).kind != PickleKind::text)
          refuse("the pickle names what is no string");
        return push_global(value(module).text, value(name).text);
      }
      case 'R':
      case 0x81: return call();
      case 'b': return build();
      case 'Q': {
        const Index identifier = pop();
        return push({.kind = PickleKind::persistent, .items = {identifier}});
      }
      case '.':
        pickle_.root = pop();
        stopped_ = true;
        return;
      default: break;
    }
    const auto known = std::ranges::find(refused_opcodes, code, &Opcode::code);
    refuse(known == refused_opcodes.end()
               ? "not a pickle: no opcode has the number " + std::to_string(code)
               : "the pickle uses opcode " + std::string(known->name) +
                     ", which torch.save has no need of; nothing was run");
  }

  const std::string& where_;
  std::span<const std::byte> bytes_;
  const PickleNames& names_;
  Pickle pickle_;
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Index> memo_;
  std::size_t at_ = 0, opcode_at_ = 0;
  bool stopped_ = false;
};

}  // namespace

Pickle read_pickle(const std::string& where, std::span<const std::byte> bytes,
                   const PickleNames& names) {
  return Machine(where, bytes, names).run();
}

}  // namespace guardbit::formats

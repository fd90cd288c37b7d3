#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "emulator/gemm/plan.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;

using Addition = Epilogue::Addition;
using Adder = Promotion::Adder;
using AlphaOn = Epilogue::AlphaOn;
using Tiles = StreamK::Tiles;

/// Values of other types than a plan's own and their words in it.
template <class Value, std::size_t count>
using Words = std::array<std::pair<Value, std::string_view>, count>;
constexpr Words<Rounding, 3> roundings = {{{Rounding::nearest_even, "rne"},
                                           {Rounding::nearest_away, "rna"},
                                           {Rounding::toward_zero, "rz"}}};
constexpr Words<bool, 2> tile_orders = {{{false, "along_n"}, {true, "along_m"}}};

template <class Value, std::size_t count>
std::string word_of(const Words<Value, count>& words, Value value) {
  return std::string(std::find_if(words.begin(), words.end(), [&](const auto& w) {
                       return w.first == value;
                     })->second);
}
template <class Enum>
std::string word_of(Enum value) {
  return std::string(formats::word_of(value));
}

template <class Value, std::size_t count>
bool read_word(const Words<Value, count>& words, std::string_view word, Value& value) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.second == word; });
  if (found != words.end()) value = found->first;
  return found != words.end();
}
template <class Enum>
bool read_word(std::string_view word, Enum& value) {
  const std::optional<Enum> found = formats::find_word<Enum>(word);
  value = found.value_or(value);
  return found.has_value();
}

template <class Value, std::size_t count>
std::string choices(const Words<Value, count>& words) {
  std::string list;
  for (const auto& w : words) list.append(list.empty() ? "" : ", ").append(w.second);
  return list;
}

std::string number_text(double x) {
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
  return {buffer.data(), end};
}

std::string partition_text(const Partition& p) {
  std::string text =
      std::to_string(p.parts) + "x" + std::to_string(p.tile) + ":" + word_of(p.division);
  if (p.order != SumOrder::ascending) text += ":" + word_of(p.order);
  if (p.group != 0) text += ":groups" + std::to_string(p.group);
  if (p.sums != formats::fp32) text += ":" + formats::name_of(p.sums);
  return text;
}

std::string stream_k_text(const StreamK& x) {
  std::string text = std::to_string(x.blocks) + "x" + std::to_string(x.tile_m) + "x" +
                     std::to_string(x.tile_n) + "x" + std::to_string(x.tile_k);
  if (x.tiles != Tiles::all) text += ":" + word_of(x.tiles);
  if (x.along_m) text += ":" + word_of(tile_orders, x.along_m);
  if (x.division != Division::ceil) text += ":" + word_of(x.division);
  if (x.order != SumOrder::ascending) text += ":" + word_of(x.order);
  if (x.sums != formats::fp32) text += ":" + formats::name_of(x.sums);
  return text;
}

std::string input_text(const InputConversion& x) {
  std::string text = word_of(roundings, x.rounding);
  if (x.last) text += "/" + word_of(roundings, *x.last);
  if (x.pieces == 1 && !x.has_integer_slices()) return text;
  text += ":" + std::to_string(x.pieces) + "x" + std::to_string(x.ranks);
  switch (x.cut) {
    case InputConversion::Cut::rest:
      if (x.run != 0) text += ":run" + std::to_string(x.run);
      if (x.b_first) text += ":b_first";
      break;
    case InputConversion::Cut::scaled_rest: text += ":scaled" + std::to_string(x.shift); break;
    case InputConversion::Cut::slices: text += ":slices"; break;
    case InputConversion::Cut::grouped_slices: text += ":grouped_slices"; break;
  }
  return text;
}

std::string convolution_text(const ConvolutionOrder& order) {
  std::string text = word_of(order.walk);
  if (order.channel_block != 0) text += ":block" + std::to_string(order.channel_block);
  if (order.channel_multiple != 1) text += ":fill" + std::to_string(order.channel_multiple);
  return text;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Reads the values of one plan; every refusal names the key.
class PlanReader {
 public:
  PlanReader(GemmPlan& plan, std::string_view where) : plan_(plan), where_(where) {}

  void read(std::string_view key, std::string_view value) {
    key_ = key;
    value_ = value;
    if (key == "input") return read_input();
    if (key == "conv") return read_convolution();
    if (key == "loads") return read_loads();
    if (key == "residue_first") return whole(value, plan_.residue_first);
    if (key == "products") return word(value, plan_.products);
    if (key == "promote") return read_promotion();
    if (key == "lanes") {
      read_partition(plan_.slices);
      if (plan_.slices.order == SumOrder::in_place) refuse("in_place is an order of split alone");
      return;
    }
    if (key == "split") return read_partition(plan_.split);
    if (key == "stream_k") return read_stream_k();
    if (key == "add") return word(value, plan_.epilogue.addition);
    if (key == "scales") return word(value, plan_.epilogue.scales);
    if (key == "compute") return format(value, plan_.epilogue.compute);
    if (key == "d") return format(value, plan_.epilogue.output);
    if (key == "alpha") return read_alpha();
    if (key == "beta") return real(value, plan_.epilogue.beta);
    if (key == "via") return format(value, plan_.epilogue.via.emplace());
    if (key == "activation") return word(value, plan_.epilogue.activation);
    throw Error(
        std::string(where_), "unknown key " + formats::in_quotes(key),
        "input, conv, loads, residue_first, products, promote, lanes, split, stream_k, add, scales, compute, d, alpha, beta, via, activation");
  }

 private:
  [[noreturn]] void refuse(const std::string& valid) const {
    throw Error(std::string(where_),
                std::string(key_) + "=" + formats::printable(value_, 80) + " is not valid", valid);
  }

  template <class Integer>
  void whole(std::string_view text, Integer& x) const {
    Integer read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc() || end != text.data() + text.size() || read < 0 || read > 1 << 30)
      refuse("whole numbers");
    x = read;
  }
  void real(std::string_view text, double& x) const {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (error != std::errc() || end != text.data() + text.size()) refuse("a number");
  }
  void format(std::string_view text, Format& x) const {
    x = formats::require_format(text, std::string(where_) + ": " + std::string(key_));
  }
  template <class Enum>
  void word(std::string_view text, Enum& x) const {
    if (!read_word(text, x)) refuse(formats::list_of_words<Enum>());
  }
  void rounding(std::string_view text, Rounding& x) const {
    if (!read_word(roundings, text, x)) refuse(choices(roundings));
  }

  /// "AxB" as two whole numbers.
  template <class First, class Second>
  void product(std::string_view text, First& x, Second& y) const {
    const std::size_t cross = text.find('x');
    if (cross == std::string_view::npos) refuse("two numbers as 3x64");
    whole(text.substr(0, cross), x);
    whole(text.substr(cross + 1), y);
    if (x < 1 || y < 1) refuse("numbers of at least 1");
  }

  void read_input() {
    const auto parts = split_at(value_, ':');
    InputConversion& x = plan_.input;
    const std::size_t slash = parts[0].find('/');
    rounding(parts[0].substr(0, slash), x.rounding);
    if (slash != std::string_view::npos) rounding(parts[0].substr(slash + 1), x.last.emplace());
    if (x.last && parts.size() == 1) refuse("two roundings of pieces alone, as rna/rz:2x2");
    if (parts.size() > 4) refuse("ROUNDING or ROUNDING:PIECESxRANKS[:CUT][:ORDER]");
    if (parts.size() == 1) return;
    product(parts[1], x.pieces, x.ranks);
    for (std::size_t i = 2; i < parts.size(); ++i) read_cut(parts[i]);
    if (x.b_first && x.cut != InputConversion::Cut::rest)
      refuse("an order of pairs of rests alone");
    const int most = x.has_integer_slices() ? 20 : 3;
    if (x.pieces > most || x.ranks > 2 * x.pieces - 1)
      refuse("up to " + std::to_string(most) + " pieces, and ranks up to 2 * pieces - 1");
    if (x.has_integer_slices() && x.rounding != Rounding::toward_zero)
      refuse("rz: slices are truncated");
  }

  void read_cut(std::string_view cut) {
    InputConversion& x = plan_.input;
    using Cut = InputConversion::Cut;
    if (cut == "slices") {
      x.cut = Cut::slices;
    } else if (cut == "grouped_slices") {
      x.cut = Cut::grouped_slices;
    } else if (cut == "b_first" && x.pieces > 1) {
      x.b_first = true;
    } else if (cut.starts_with("run") && x.pieces > 1) {
      whole(cut.substr(3), x.run);
      if (x.run < 1) refuse("a run of at least 1");
    } else if (cut.starts_with("scaled") && x.pieces > 1) {
      x.cut = Cut::scaled_rest;
      whole(cut.substr(6), x.shift);
      if (x.shift < 1 || x.shift > 60) refuse("a shift of 1 to 60");
    } else {
      refuse("runLENGTH, b_first or scaledSHIFT of 2 or 3 pieces, slices, grouped_slices");
    }
  }

  void read_convolution() {
    const auto parts = split_at(value_, ':');
    word(parts[0], plan_.convolution.walk);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].starts_with("block")) {
        whole(parts[i].substr(5), plan_.convolution.channel_block);
      } else if (parts[i].starts_with("fill")) {
        whole(parts[i].substr(4), plan_.convolution.channel_multiple);
      } else {
        refuse(formats::list_of_words<ConvolutionOrder::Walk>() + ", then :blockN and :fillN");
      }
    }
    if (plan_.convolution.channel_multiple < 1) refuse("fill of at least 1");
  }

  void read_alpha() {
    const auto parts = split_at(value_, ':');
    real(parts[0], plan_.epilogue.alpha);
    if (parts.size() > 2) refuse("ALPHA or ALPHA:PLACE");
    if (parts.size() == 2) word(parts[1], plan_.epilogue.alpha_on);
  }

  void read_loads() {
    const auto parts = split_at(value_, ':');
    if (parts.size() != 2) refuse("LANESxRUN:TAKE");
    LoadOrder& loads = plan_.loads;
    product(parts[0], loads.lanes, loads.run);
    whole(parts[1], loads.take);
    if (loads.take < 1 || loads.run % loads.take != 0) refuse("a TAKE that divides RUN");
  }

  void read_promotion() {
    const auto parts = split_at(value_, ':');
    whole(parts[0], plan_.promotion.interval);
    if (parts.size() > 2) refuse("INTERVAL or INTERVAL:ADDER");
    if (parts.size() == 2) word(parts[1], plan_.promotion.adder);
    if (plan_.promotion.interval == 0 && parts.size() == 2) refuse("an INTERVAL of at least 1");
  }

  void read_partition(Partition& p) {
    const auto parts = split_at(value_, ':');
    product(parts[0], p.parts, p.tile);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (read_word(parts[i], p.division) || read_word(parts[i], p.order)) continue;
      if (parts[i].starts_with("groups")) {
        whole(parts[i].substr(6), p.group);
        continue;
      }
      const auto sums = formats::find_format(parts[i]);
      if (!sums)
        refuse("PARTSxTILE, then " + formats::list_of_words<Division>() + ", " +
               formats::list_of_words<SumOrder>() + ", groupsN or a format");
      p.sums = *sums;
    }
    if (p.group != 0 && p.order != SumOrder::halves) refuse("groups of halves alone");
  }

  void read_stream_k() {
    const auto parts = split_at(value_, ':');
    StreamK& x = plan_.stream_k;
    const auto sizes = split_at(parts[0], 'x');
    if (sizes.size() != 4) refuse("BLOCKSxTILE_MxTILE_NxTILE_K");
    whole(sizes[0], x.blocks);
    for (const auto& [text, size] :
         {std::pair{sizes[1], &x.tile_m}, {sizes[2], &x.tile_n}, {sizes[3], &x.tile_k}})
      whole(text, *size);
    if (x.blocks < 1 || x.tile_m < 1 || x.tile_n < 1 || x.tile_k < 1)
      refuse("numbers of at least 1");
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (read_word(parts[i], x.tiles) || read_word(tile_orders, parts[i], x.along_m) ||
          read_word(parts[i], x.division) || read_word(parts[i], x.order))
        continue;
      const auto sums = formats::find_format(parts[i]);
      if (!sums)
        refuse("BLOCKSxTILE_MxTILE_NxTILE_K, then " + formats::list_of_words<Tiles>() + ", " +
               choices(tile_orders) + ", ceil, balanced, " + formats::list_of_words<SumOrder>() +
               " or a format");
      x.sums = *sums;
    }
    if (x.order == SumOrder::in_place) refuse("in_place is an order of split alone");
    if (x.division != Division::ceil && x.division != Division::balanced)
      refuse("ceil, balanced: shares are consecutive");
  }

  GemmPlan& plan_;
  std::string_view where_, key_, value_;
};

}  // namespace

std::vector<PlanField> fields_of(const GemmPlan& plan) {
  const GemmPlan standard;
  std::vector<PlanField> fields = {{"unit", plan.unit.arch + "/" + plan.unit.instruction}};
  const auto add = [&](bool is_default, const char* key, const std::string& value) {
    if (!is_default) fields.push_back({key, value});
  };
  add(plan.input == standard.input, "input", input_text(plan.input));
  add(plan.convolution == standard.convolution, "conv", convolution_text(plan.convolution));
  const LoadOrder& l = plan.loads;
  add(l == standard.loads, "loads",
      std::to_string(l.lanes) + "x" + std::to_string(l.run) + ":" + std::to_string(l.take));
  add(plan.residue_first == 0, "residue_first", std::to_string(plan.residue_first));
  add(plan.products == standard.products, "products", word_of(plan.products));
  const Promotion& p = plan.promotion;
  add(p == standard.promotion, "promote",
      std::to_string(p.interval) + (p.adder == Adder::add ? "" : ":" + word_of(p.adder)));
  add(plan.slices == standard.slices, "lanes", partition_text(plan.slices));
  add(plan.split == standard.split, "split", partition_text(plan.split));
  add(plan.stream_k.none(), "stream_k", stream_k_text(plan.stream_k));
  const Epilogue& e = plan.epilogue;
  add(e.addition == standard.epilogue.addition, "add", word_of(e.addition));
  add(e.scales == standard.epilogue.scales, "scales", word_of(e.scales));
  add(e.compute == formats::fp32, "compute", formats::name_of(e.compute));
  add(e.alpha == 1, "alpha",
      number_text(e.alpha) + (e.alpha_on == AlphaOn::sum ? "" : ":" + word_of(e.alpha_on)));
  add(e.beta == 0, "beta", number_text(e.beta));
  if (e.via) add(false, "via", formats::name_of(*e.via));
  add(e.activation == Activation::none, "activation", word_of(e.activation));
  add(false, "d", formats::name_of(e.output));
  return fields;
}

std::string to_text(const GemmPlan& plan) {
  std::string text;
  for (const PlanField& field : fields_of(plan))
    text += text.empty() ? field.value : " " + field.key + "=" + field.value;
  return text;
}

namespace {

/// Functions are those of FP32 numbers.
void require_computable(const Epilogue& e, std::string_view where) {
  const std::string name(formats::word_of(e.activation));
  if (is_smooth(e.activation) && e.compute != formats::fp32 && e.compute != formats::fp16)
    throw Error(std::string(where),
                "activation=" + name + " does not go with compute=" + formats::name_of(e.compute),
                "compute=fp32, compute=fp16");
  if (e.activation == Activation::gelu_erfc && !has_steps_of_gelu_erfc(e.output))
    throw Error(std::string(where),
                "activation=" + name + " does not go with d=" + formats::name_of(e.output),
                "d=fp32, d=fp16, d=bf16");
}

}  // namespace

GemmPlan parse_plan(std::string_view text, std::string_view where) {
  GemmPlan plan;
  PlanReader reader(plan, where);
  bool has_unit = false;
  for (const std::string_view token : split_at(text, ' ')) {
    if (token.empty()) continue;
    if (const std::size_t equals = token.find('='); equals != std::string_view::npos) {
      reader.read(token.substr(0, equals), token.substr(equals + 1));
      continue;
    }
    const std::size_t slash = token.find('/');
    if (has_unit || slash == std::string_view::npos || slash == 0 || slash + 1 == token.size())
      throw Error(std::string(where), formats::in_quotes(token) + " is no part of a plan",
                  "one unit as ARCH/INSTRUCTION, and key=value");
    plan.unit = {std::string(token.substr(0, slash)), std::string(token.substr(slash + 1))};
    has_unit = true;
  }
  if (!has_unit) throw Error(std::string(where), "the plan names no unit", "ARCH/INSTRUCTION");
  if (!plan.stream_k.none() && !plan.split.whole())
    throw Error(std::string(where), "the plan has both split and stream_k", "one of them");
  require_computable(plan.epilogue, where);
  return plan;
}

}  // namespace guardbit::emulator

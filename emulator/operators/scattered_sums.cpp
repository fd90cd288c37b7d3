#include "emulator/operators/scattered_sums.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "emulator/operators/broadcast.hpp"
#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/rows.hpp"
#include "emulator/operators/trees.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::int64_t most_ordered_indices = 3072;
constexpr std::size_t ordered_chunk = 32, piece_size = 10;
/// All orders of so many terms are tried.
constexpr std::size_t most_permuted = 7;

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Is there an order in which the terms, added to `start` with a rounding to the type each time,
/// give the wanted number? Nothing where there are too many to try.
std::optional<bool> is_possible(const formats::Format& type, float start, std::vector<float> terms,
                                float wanted, const formats::Format& result_type) {
  if (terms.size() > most_permuted) return std::nullopt;
  std::ranges::sort(terms);
  do {
    float sum = start;
    for (const float term : terms) sum = rounded_to(type, sum + term);
    if (same_bits(rounded_to(result_type, sum), wanted)) return true;
  } while (std::ranges::next_permutation(terms).found);
  return false;
}

/// Few indices: chunks of 32 in order. In a chunk a row's gradients are added first, then the row.
template <class View>
Tensor gradient_in_chunks(const Tensor& gradient, const std::vector<std::int64_t>& indices,
                          std::int64_t rows, std::int64_t padding, std::size_t width) {
  const View gradients(gradient);
  const InType stored{gradient.type};
  using Number = std::decay_t<decltype(gradients[0])>;
  std::vector<Number> table(static_cast<std::size_t>(rows) * width);
  for (std::size_t begin = 0; begin < indices.size(); begin += ordered_chunk) {
    const std::size_t end = std::min(begin + ordered_chunk, indices.size());
    std::map<std::int64_t, std::vector<Number>> sums;
    for (std::size_t i = begin; i < end; ++i) {
      if (indices[i] == padding) continue;
      const auto own = gradients.part(i * width, width);
      auto [found, is_new] = sums.try_emplace(indices[i], own.begin(), own.end());
      if (is_new) continue;
      for (std::size_t c = 0; c < width; ++c) found->second[c] += own[c];
    }
    for (const auto& [row, sum] : sums) {
      Number* to = table.data() + static_cast<std::size_t>(row) * width;
      for (std::size_t c = 0; c < width; ++c) to[c] = stored(to[c] + stored(sum[c]));
    }
  }
  return tensor_of_numbers(gradient.type, {rows, static_cast<std::int64_t>(width)}, table);
}

/// Many indices: each row's gradients in pieces of 10, which atomics add in any order.
std::int64_t impossible_in_pieces(const Tensor& gradient, const std::vector<std::int64_t>& indices,
                                  std::int64_t padding, std::size_t width, const Tensor& recorded) {
  const NumberView gradients(gradient), wanted(recorded);
  std::map<std::int64_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != padding) places[indices[i]].push_back(i);
  }
  std::int64_t impossible = 0;
  for (const auto& [row, own] : places) {
    for (std::size_t c = 0; c < width; ++c) {
      std::vector<float> pieces;
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (i % piece_size == 0) pieces.push_back(0);
        pieces.back() += gradients[own[i] * width + c];
      }
      const auto found =
          is_possible(formats::fp32, 0, std::move(pieces),
                      wanted[static_cast<std::size_t>(row) * width + c], gradient.type);
      if (found && !*found) ++impossible;
    }
  }
  return impossible;
}

constexpr std::size_t list_chunk = 65536, list_threads = 512, list_accumulators = 4;

/// What a norm adds of its elements, and how two sums meet.
enum class ListNorm : std::uint8_t { magnitudes, squares, greatest };

template <ListNorm kind, class Number>
Number with_element(Number own, Number x) {
  if constexpr (kind == ListNorm::squares) return std::fma(x, x, own);
  if constexpr (kind == ListNorm::magnitudes) return own + std::fabs(x);
  return std::isnan(own) || own > std::fabs(x) ? own : std::fabs(x);
}
template <ListNorm kind, class Number>
Number of_threads(std::span<Number> values) {
  if constexpr (kind != ListNorm::greatest) return sum_of_two_stages(values);
  Number greatest = 0;
  for (const Number x : values) greatest = with_element<kind>(greatest, x);
  return greatest;
}

template <ListNorm kind, class Number>
Number chunk_norm(std::span<const Number> chunk, bool in_vectors) {
  std::vector<Number> slots(list_threads * list_accumulators);
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const std::size_t in_round = i % slots.size();
    const std::size_t t = in_vectors ? in_round / list_accumulators : in_round % list_threads;
    const std::size_t k = in_vectors ? in_round % list_accumulators : in_round / list_threads;
    Number& own = slots[t * list_accumulators + k];
    own = with_element<kind>(own, chunk[i]);
  }
  std::vector<Number> threads(list_threads);
  for (std::size_t t = 0; t < list_threads; ++t) {
    for (std::size_t k = 0; k < list_accumulators; ++k) {
      const Number own = slots[t * list_accumulators + k];
      threads[t] =
          kind == ListNorm::greatest ? with_element<kind>(threads[t], own) : threads[t] + own;
    }
  }
  return of_threads<kind>(std::span(threads));
}

/// Of a tensor without gaps.
template <ListNorm kind, class Number>
Number list_norm(const Tensor& tensor) {
  const Tensor in_order = in_memory_order(tensor);
  const ViewOf<Number> numbers(in_order);
  const bool starts_aligned =
      is_aligned(tensor, static_cast<int>(list_accumulators) * tensor.element_bytes());
  std::vector<Number> threads(list_threads);
  for (std::size_t begin = 0; begin < numbers.size(); begin += list_chunk) {
    const std::size_t rest = numbers.size() - begin;
    const auto chunk = numbers.part(begin, std::min(rest, list_chunk));
    const Number own = chunk_norm<kind>(chunk, starts_aligned && rest % list_accumulators == 0);
    Number& thread = threads[begin / list_chunk % list_threads];
    thread = kind == ListNorm::greatest ? with_element<kind>(thread, own) : thread + own;
  }
  return of_threads<kind>(std::span(threads));
}

}  // namespace

ScatteredSum embedding_gradient(const Tensor& gradient, const Tensor& indices, std::int64_t rows,
                                std::int64_t padding, const Tensor* recorded) {
  const std::vector<std::int64_t> all = places_of(indices, rows);
  const auto width = static_cast<std::size_t>(gradient.shape.back());
  if (static_cast<std::int64_t>(all.size() * width) != gradient.count())
    throw UnknownShape{"indices for another number of rows"};
  if (static_cast<std::int64_t>(all.size()) <= most_ordered_indices)
    return {gradient.type == formats::fp64
                ? gradient_in_chunks<DoubleView>(gradient, all, rows, padding, width)
                : gradient_in_chunks<NumberView>(gradient, all, rows, padding, width),
            "chunks of 32 indices"};
  ScatteredSum sum{std::nullopt, "pieces of 10, which atomics add in no fixed order"};
  if (recorded != nullptr && gradient.type != formats::fp64)
    sum.impossible = impossible_in_pieces(gradient, all, padding, width, *recorded);
  return sum;
}

ScatteredSum index_add(const Tensor& input, std::int64_t dimension, const Tensor& indices,
                       const Tensor& source, double factor, const Tensor* recorded) {
  const auto d = dimension_of(input, dimension);
  const Rows rows = rows_along(input, d);
  const std::int64_t size = rows.size, inner = rows.inner;
  const std::vector<std::int64_t> all = places_of(indices, size);
  const NumberView starts(input), sources(source);
  const auto taken = static_cast<std::int64_t>(all.size());
  if (size == 0 || source.count() != input.count() / size * taken)
    throw UnknownShape{"indices for another number of elements"};
  const float scale = rounded_to(input.type, static_cast<float>(factor));
  std::vector<std::vector<float>> terms(starts.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t outer = at / inner / taken, k = at / inner % taken;
    const std::int64_t to = (outer * size + all[static_cast<std::size_t>(k)]) * inner + at % inner;
    terms[static_cast<std::size_t>(to)].push_back(
        factor == 1 ? sources[i] : rounded_to(input.type, sources[i] * scale));
  }
  const bool is_ordered =
      std::ranges::all_of(terms, [](const std::vector<float>& own) { return own.size() < 2; });
  std::vector<float> results(starts.all().begin(), starts.all().end());
  std::int64_t impossible = 0;
  std::optional<NumberView> wanted;
  if (recorded != nullptr) wanted.emplace(*recorded);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (is_ordered) {
      if (!terms[i].empty()) results[i] += terms[i][0];
    } else if (wanted) {
      const auto found = is_possible(input.type, starts[i], terms[i], (*wanted)[i], input.type);
      if (found && !*found) ++impossible;
    }
  }
  if (is_ordered)
    return {tensor_of_numbers(input.type, input.shape, results), "every place at most once"};
  ScatteredSum sum{std::nullopt, "atomics add in no fixed order"};
  if (wanted) sum.impossible = impossible;
  return sum;
}

namespace {

/// A mask as indices of its dimensions.
void add_mask(const Tensor& mask, std::vector<std::optional<Tensor>>& indices) {
  const std::vector<std::int64_t> chosen = integers_of(mask);
  std::vector<std::vector<std::int64_t>> places(mask.shape.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == 0) continue;
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t d = mask.shape.size(); d-- > 0; rest /= mask.shape[d])
      places[d].push_back(rest % mask.shape[d]);
  }
  for (const auto& own : places) {
    indices.emplace_back(
        tensor_of_integers(formats::int64, {static_cast<std::int64_t>(own.size())}, own));
  }
}

/// Which places of a tensor a list of indices names.
struct NamedPlaces {
  /// of the values
  Dimensions shape;
  /// for each value, in order
  std::vector<std::int64_t> places;
  /// elements that lie together at one index
  std::int64_t slice = 1;
};

NamedPlaces named_places(const Dimensions& shape, const std::vector<std::optional<Tensor>>& given) {
  std::vector<std::optional<Tensor>> indices;
  for (const auto& index : given) {
    if (index && (index->type == formats::b1 || index->type == formats::uint8)) {
      add_mask(*index, indices);
    } else {
      indices.push_back(index);
    }
  }
  if (indices.size() > shape.size()) throw UnknownShape{"more indices than dimensions"};
  indices.resize(shape.size());
  std::vector<const Tensor*> tensors;
  for (const auto& index : indices) {
    if (index) tensors.push_back(&*index);
  }
  const auto common = broadcast_shape(tensors);
  if (tensors.empty() || !common) throw UnknownShape{"indices that do not fit"};
  // Indices of dimensions that are no neighbours come first.
  std::size_t first = 0, last = shape.size();
  while (!indices[first]) ++first;
  while (!indices[last - 1]) --last;
  const bool is_together = last - first == tensors.size();
  const Dimensions stride = contiguous_stride(shape);
  // Dimensions of the values, each with its step in the tensor; those of the indices have none.
  NamedPlaces all;
  Dimensions step;
  const auto take = [&](std::int64_t size, std::int64_t by) {
    all.shape.push_back(size);
    step.push_back(by);
  };
  const std::size_t before = is_together ? first : 0;
  for (std::size_t d = 0; d < before; ++d) take(shape[d], stride[d]);
  for (const std::int64_t size : *common) take(size, 0);
  for (std::size_t d = before; d < shape.size(); ++d) {
    if (indices[d]) continue;
    take(shape[d], stride[d]);
    all.slice *= shape[d];
  }
  std::int64_t count = 1;
  for (const std::int64_t size : *common) count *= size;
  std::vector<std::int64_t> named(static_cast<std::size_t>(count));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!indices[d]) continue;
    const std::vector<std::int64_t> own = integers_of(*indices[d]);
    BroadcastPlaces places(indices[d]->shape, *common);
    for (std::int64_t& to : named) {
      std::int64_t at = own[static_cast<std::size_t>(places.next())];
      if (at < 0) at += shape[d];
      if (at < 0 || at >= shape[d]) throw UnknownShape{"an index past the end"};
      to += at * stride[d];
    }
  }
  std::int64_t values = 1;
  for (const std::int64_t size : all.shape) values *= size;
  all.places.resize(static_cast<std::size_t>(values));
  for (std::int64_t i = 0; i < values; ++i) {
    std::int64_t rest = i, at = 0;
    for (std::size_t d = all.shape.size(); d-- > 0; rest /= all.shape[d])
      at += rest % all.shape[d] * step[d];
    all.places[static_cast<std::size_t>(i)] =
        at + named[static_cast<std::size_t>(i / all.slice % count)];
  }
  return all;
}

/// One place's terms. Single elements: lanes of a warp take 32 at a time and meet by halves, what
/// is left follows. Slices of up to 32: in order, then the place. Longer ones are stored each time.
template <class Number>
Number sum_at_place(const InType& stored, Number start, std::span<const Number> terms,
                    std::int64_t slice) {
  Number sum = 0;
  if (slice > static_cast<std::int64_t>(warp_lanes)) {
    for (const Number term : terms) start = stored(start + term);
    return start;
  }
  std::size_t next = 0;
  if (slice == 1 && terms.size() >= warp_lanes) {
    std::array<Number, warp_lanes> lanes{};
    for (; next + warp_lanes <= terms.size(); next += warp_lanes) {
      for (std::size_t t = 0; t < warp_lanes; ++t) lanes[t] += terms[next + t];
    }
    sum = halved_sum(lanes);
  }
  for (; next < terms.size(); ++next) sum += terms[next];
  return start + sum;
}

template <class View>
Tensor with_values(const Tensor& input, const NamedPlaces& named, const Tensor& values) {
  const View numbers(values), starts(input);
  using Number = std::decay_t<decltype(numbers[0])>;
  std::vector<Number> terms(named.places.size());
  BroadcastPlaces from(values.shape, named.shape);
  for (Number& term : terms) term = numbers[static_cast<std::size_t>(from.next())];
  std::vector<std::size_t> order(terms.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return named.places[i]; });
  const Tensor result = tensor_of_bytes(input.type, input.shape, input.stride,
                                        {input.bytes.begin(), input.bytes.end()});
  std::vector<Number> own;
  for (std::size_t i = 0; i < order.size();) {
    const std::int64_t place = named.places[order[i]];
    own.clear();
    for (; i < order.size() && named.places[order[i]] == place; ++i) own.push_back(terms[order[i]]);
    const Number sum = sum_at_place(InType{input.type}, starts[static_cast<std::size_t>(place)],
                                    std::span<const Number>(own), named.slice);
    write_elements(result, place, std::span<const Number>(&sum, 1));
  }
  return result;
}

}  // namespace

Tensor add_at_places(const Tensor& input, const std::vector<std::optional<Tensor>>& indices,
                     const Tensor& values) {
  const NamedPlaces named = named_places(input.shape, indices);
  if (values.shape.size() > named.shape.size())
    throw UnknownShape{"values that do not fit the indices"};
  for (std::size_t d = 0; d < values.shape.size(); ++d) {
    const std::int64_t own = values.shape[values.shape.size() - 1 - d];
    if (own != 1 && own != named.shape[named.shape.size() - 1 - d])
      throw UnknownShape{"values that do not fit the indices"};
  }
  return input.type == formats::fp64 ? with_values<DoubleView>(input, named, values)
                                     : with_values<NumberView>(input, named, values);
}

namespace {

template <class Number>
Number norm_of(const Tensor& tensor, double order) {
  if (order == 1) return list_norm<ListNorm::magnitudes, Number>(tensor);
  if (order == 2) return std::sqrt(list_norm<ListNorm::squares, Number>(tensor));
  return list_norm<ListNorm::greatest, Number>(tensor);
}

}  // namespace

Tensor norm_of_list(const Tensor& tensor, double order,
                    const std::optional<formats::Format>& type) {
  if (tensor.type == formats::fp64)
    return tensor_of_doubles({}, std::array{norm_of<double>(tensor, order)});
  return tensor_of_numbers(type.value_or(tensor.type), {},
                           std::array{norm_of<float>(tensor, order)});
}

}  // namespace guardbit::emulator::operators

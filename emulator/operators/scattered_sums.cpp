#include "emulator/operators/scattered_sums.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
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
Tensor gradient_in_chunks(const Tensor& gradient, const std::vector<std::int64_t>& indices,
                          std::int64_t rows, std::int64_t padding, std::size_t width) {
  const NumberView gradients(gradient);
  std::vector<float> table(static_cast<std::size_t>(rows) * width);
  for (std::size_t begin = 0; begin < indices.size(); begin += ordered_chunk) {
    const std::size_t end = std::min(begin + ordered_chunk, indices.size());
    std::map<std::int64_t, std::vector<float>> sums;
    for (std::size_t i = begin; i < end; ++i) {
      if (indices[i] == padding) continue;
      const auto own = gradients.part(i * width, width);
      auto [found, is_new] = sums.try_emplace(indices[i], own.begin(), own.end());
      if (is_new) continue;
      for (std::size_t c = 0; c < width; ++c) found->second[c] += own[c];
    }
    for (const auto& [row, sum] : sums) {
      float* to = table.data() + static_cast<std::size_t>(row) * width;
      for (std::size_t c = 0; c < width; ++c)
        to[c] = rounded_to(gradient.type, to[c] + rounded_to(gradient.type, sum[c]));
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

float chunk_squares(std::span<const float> chunk, bool in_vectors) {
  std::vector<float> slots(list_threads * list_accumulators);
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const std::size_t in_round = i % slots.size();
    const std::size_t t = in_vectors ? in_round / list_accumulators : in_round % list_threads;
    const std::size_t k = in_vectors ? in_round % list_accumulators : in_round / list_threads;
    float& own = slots[t * list_accumulators + k];
    own = std::fma(chunk[i], chunk[i], own);
  }
  std::vector<float> threads(list_threads);
  for (std::size_t t = 0; t < list_threads; ++t) {
    for (std::size_t k = 0; k < list_accumulators; ++k)
      threads[t] += slots[t * list_accumulators + k];
  }
  return sum_of_two_stages(threads);
}

}  // namespace

ScatteredSum embedding_gradient(const Tensor& gradient, const Tensor& indices, std::int64_t rows,
                                std::int64_t padding, bool scales_by_frequency,
                                const Tensor* recorded) {
  const std::vector<std::int64_t> all = places_of(indices, rows);
  const auto width = static_cast<std::size_t>(gradient.shape.back());
  if (static_cast<std::int64_t>(all.size() * width) != gradient.count())
    throw UnknownShape{"indices for another number of rows"};
  if (scales_by_frequency) return {std::nullopt, "scaled by frequency, not measured"};
  if (static_cast<std::int64_t>(all.size()) <= most_ordered_indices)
    return {gradient_in_chunks(gradient, all, rows, padding, width), "chunks of 32 indices"};
  ScatteredSum sum{std::nullopt, "pieces of 10, which atomics add in no fixed order"};
  if (recorded != nullptr)
    sum.impossible = impossible_in_pieces(gradient, all, padding, width, *recorded);
  return sum;
}

ScatteredSum index_add(const Tensor& input, std::int64_t dimension, const Tensor& indices,
                       const Tensor& source, double factor, const Tensor* recorded) {
  const auto d = dimension_of(input, dimension);
  const std::vector<std::int64_t> all =
      places_of(indices, input.shape.empty() ? 1 : input.shape[d]);
  const NumberView starts(input), sources(source);
  std::int64_t inner = 1;
  for (std::size_t i = d + 1; i < input.shape.size(); ++i) inner *= input.shape[i];
  const std::int64_t size = input.shape.empty() ? 1 : input.shape[d];
  const auto taken = static_cast<std::int64_t>(all.size());
  if (size == 0 || source.count() != input.count() / size * taken)
    throw UnknownShape{"indices for another number of elements"};
  std::vector<std::vector<float>> terms(starts.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t outer = at / inner / taken, k = at / inner % taken;
    const std::int64_t to = (outer * size + all[static_cast<std::size_t>(k)]) * inner + at % inner;
    terms[static_cast<std::size_t>(to)].push_back(
        factor == 1 ? sources[i] : rounded_to(input.type, sources[i] * static_cast<float>(factor)));
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

std::vector<Tensor> norms_of_list(const std::vector<Tensor>& tensors, double order,
                                  const std::optional<formats::Format>& type) {
  if (order != 2) return {};
  std::vector<Tensor> norms;
  for (const Tensor& tensor : tensors) {
    const Tensor in_order = in_memory_order(tensor);
    const NumberView numbers(in_order);
    const bool starts_aligned =
        is_aligned(tensor, static_cast<int>(list_accumulators) * tensor.element_bytes());
    std::vector<float> threads(list_threads);
    for (std::size_t begin = 0; begin < numbers.size(); begin += list_chunk) {
      const std::size_t rest = numbers.size() - begin;
      const auto chunk = numbers.part(begin, std::min(rest, list_chunk));
      threads[begin / list_chunk % list_threads] +=
          chunk_squares(chunk, starts_aligned && rest % list_accumulators == 0);
    }
    const float norm = std::sqrt(sum_of_two_stages(threads));
    norms.push_back(tensor_of_numbers(type.value_or(tensor.type), {}, {&norm, 1}));
  }
  return norms;
}

}  // namespace guardbit::emulator::operators

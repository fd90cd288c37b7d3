#include "gpu/probes.hpp"

#include <algorithm>
#include <cstdio>

#include "formats/catalogue.hpp"
#include "gpu/probe_collector.hpp"

namespace guardbit::gpu {

namespace {

std::vector<Probe> collect(const TensorCoreInstruction& row) {
  Collector x(row);
  if (row.a == formats::fp64) {
    probe_double_precision(x);
    probe_specials(x);
  } else if (!is_integer(row.a)) {
    probe_sums(x);
    probe_specials(x);
  } else if (bits(row.a) > 1) {
    probe_saturation(x);
  }
  return x.take();
}

}  // namespace

Probes make_probes(const TensorCoreInstruction& row) {
  Probes probes;
  const std::vector<Probe> list = row.sparse ? std::vector<Probe>{} : collect(row);
  probes.batch = Batch(row, static_cast<int>(list.size()));
  probes.rotations = std::min({8, row.m, row.n});
  for (std::size_t t = 0; t < list.size(); ++t) {
    probes.labels.push_back(list[t].label);
    const auto execution = static_cast<int>(t);
    const auto at = [execution](int rows, int columns, int i, int j) {
      return element_index(rows, columns, execution, i, j);
    };
    for (int r = 0; r < probes.rotations; ++r)
      for (const Term& term : list[t].terms) {
        const int k = (term.k + r * std::max(1, row.k / 8)) % row.k;
        probes.batch.a[at(row.m, row.k, r, k)] = term.a;
        probes.batch.b[at(row.k, row.n, k, r)] = term.b;
      }
    if (!row.ignore_c)
      for (int i = 0; i < row.m; ++i)
        for (int j = 0; j < row.n; ++j) probes.batch.c[at(row.m, row.n, i, j)] = list[t].c;
  }
  return probes;
}

std::string describe_results(const TensorCoreInstruction& row, const Probes& probes) {
  std::string text;
  char word[32];
  for (std::size_t t = 0; t < probes.labels.size(); ++t) {
    std::vector<std::uint64_t> words(static_cast<std::size_t>(probes.rotations));
    for (int r = 0; r < probes.rotations; ++r)
      words[static_cast<std::size_t>(r)] =
          probes.batch.d[element_index(row.m, row.n, static_cast<int>(t), r, r)];
    if (std::equal(words.begin() + 1, words.end(), words.begin())) words.resize(1);
    text += "  " + probes.labels[t] + ":";
    for (const std::uint64_t code : words) {
      std::snprintf(word, sizeof word, " %0*llx", word_bits(row.d) / 4,
                    static_cast<unsigned long long>(code));
      text += word;
    }
    text += '\n';
  }
  return text;
}

}  // namespace guardbit::gpu

"""The C++ program that grows a decision tree."""

SOURCE = r'''
// Grows a decision tree until its leaves are pure: grow_tree IN OUT SMALLEST_LEAF.
// IN: N, F, C as int64; F columns of N ranks and N labels below C, as uint16.
// OUT: nodes of seven int32: feature (-1: a leaf), greatest rank that goes left, left, right,
// label, calls, wrong calls.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct Node {
  std::int32_t feature = -1, threshold = 0, left = -1, right = -1, label = 0, calls = 0, wrong = 0;
};

struct Cut {
  double gain = 1e-9;
  int feature = -1, threshold = 0;
};

/// Memory that is used again, of one thread.
struct Scratch {
  std::vector<std::uint32_t> start, key;
  std::vector<std::uint16_t> label, rank, right_side;
  std::vector<std::int64_t> left, right;
};

/// Every column holds the calls of a node side by side, in one order for all columns.
struct Grower {
  std::vector<std::vector<std::uint16_t>> features;
  std::vector<std::uint16_t> labels;
  std::vector<int> largest;
  std::vector<std::uint8_t> goes_left;
  std::int64_t classes = 0, smallest = 1;
  std::vector<Node> nodes;
  Scratch scratch[2];

  void sort_by(const std::uint16_t* x, const std::uint16_t* of, int most, std::int64_t n,
               Scratch& s) const {
    s.label.resize(n);
    s.rank.resize(n);
    if (n * 4 > most) {
      s.start.assign(most + 2, 0);
      for (std::int64_t i = 0; i < n; ++i) ++s.start[x[i] + 1];
      for (int b = 0; b <= most; ++b) s.start[b + 1] += s.start[b];
      for (std::int64_t i = 0; i < n; ++i) {
        const std::uint32_t at = s.start[x[i]]++;
        s.label[at] = of[i];
        s.rank[at] = x[i];
      }
      return;
    }
    s.key.resize(n);
    for (std::int64_t i = 0; i < n; ++i)
      s.key[i] = (static_cast<std::uint32_t>(x[i]) << 16) | of[i];
    std::sort(s.key.begin(), s.key.end());
    for (std::int64_t i = 0; i < n; ++i) {
      s.label[i] = s.key[i] & 65535;
      s.rank[i] = s.key[i] >> 16;
    }
  }

  /// The cut of one feature that leaves least impurity (Gini).
  void try_feature(int f, std::int64_t first, std::int64_t n,
                   const std::vector<std::int64_t>& total, double squares, Cut& best,
                   Scratch& s) const {
    sort_by(features[f].data() + first, labels.data() + first, largest[f], n, s);
    if (s.rank[0] == s.rank[n - 1]) return;
    s.left.assign(classes, 0);
    s.right = total;
    double left = 0, right = squares;
    for (std::int64_t i = 0; i + 1 < n; ++i) {
      const int c = s.label[i];
      left += 2. * s.left[c]++ + 1;
      right -= 2. * s.right[c]-- - 1;
      if (s.rank[i] == s.rank[i + 1] || i + 1 < smallest || n - i - 1 < smallest) continue;
      const double gain = left / (i + 1) + right / (n - i - 1) - squares / n;
      if (gain > best.gain + 1e-9) best = {gain, f, s.rank[i]};
    }
  }

  /// Calls work(0) and work(1), on two threads where there is enough to do.
  template <class Work>
  static void halves(std::int64_t n, const Work& work) {
    if (n <= 20000) {
      work(0);
      work(1);
      return;
    }
    std::thread other(work, 0);
    work(1);
    other.join();
  }

  Cut best_cut(std::int64_t first, std::int64_t n, const std::vector<std::int64_t>& total,
               double squares) {
    const int count = static_cast<int>(features.size());
    Cut best[2];
    halves(n, [&](int half) {
      for (int f = half; f < count; f += 2)
        try_feature(f, first, n, total, squares, best[half], scratch[half]);
    });
    return best[0].gain >= best[1].gain ? best[0] : best[1];
  }

  void divide(std::uint16_t* column, std::int64_t first, std::int64_t n, Scratch& s) const {
    s.right_side.clear();
    std::int64_t left = first;
    for (std::int64_t i = first; i < first + n; ++i) {
      if (goes_left[i])
        column[left++] = column[i];
      else
        s.right_side.push_back(column[i]);
    }
    std::copy(s.right_side.begin(), s.right_side.end(), column + left);
  }

  /// Brings the calls that go left before the others; gives their number.
  std::int64_t divide(const Cut& cut, std::int64_t first, std::int64_t n) {
    std::int64_t left = 0;
    for (std::int64_t i = first; i < first + n; ++i)
      left += goes_left[i] = features[cut.feature][i] <= cut.threshold;
    const int count = static_cast<int>(features.size());
    halves(n, [&](int half) {
      for (int f = half; f < count; f += 2) divide(features[f].data(), first, n, scratch[half]);
      if (half == 0) divide(labels.data(), first, n, scratch[half]);
    });
    return left;
  }

  void grow(std::int64_t first, std::int64_t n, int at) {
    std::vector<std::int64_t> total(classes, 0);
    for (std::int64_t i = first; i < first + n; ++i) ++total[labels[i]];
    const auto most = std::max_element(total.begin(), total.end());
    double squares = 0;
    for (const std::int64_t x : total) squares += static_cast<double>(x) * x;
    nodes[at].label = static_cast<int>(most - total.begin());
    nodes[at].calls = static_cast<int>(n);
    nodes[at].wrong = static_cast<int>(n - *most);
    if (*most == n || n < 2 * smallest) return;
    const Cut cut = best_cut(first, n, total, squares);
    if (cut.feature < 0) return;
    const std::int64_t of_left = divide(cut, first, n);
    const int left = static_cast<int>(nodes.size());
    nodes.resize(nodes.size() + 2);
    nodes[at].feature = cut.feature;
    nodes[at].threshold = cut.threshold;
    nodes[at].left = left;
    nodes[at].right = left + 1;
    total = {};
    grow(first, of_left, left);
    grow(first + of_left, n - of_left, left + 1);
  }
};

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  Grower grower;
  std::int64_t sizes[3];
  std::FILE* file = std::fopen(words[1], "rb");
  if (file == nullptr || std::fread(sizes, 8, 3, file) != 3) return 1;
  const std::size_t n = sizes[0];
  grower.features.assign(sizes[1], std::vector<std::uint16_t>(n));
  grower.labels.resize(n);
  grower.classes = sizes[2];
  grower.smallest = std::atoi(words[3]);
  for (auto& x : grower.features) {
    if (std::fread(x.data(), 2, n, file) != n) return 1;
    grower.largest.push_back(*std::max_element(x.begin(), x.end()));
  }
  if (std::fread(grower.labels.data(), 2, n, file) != n) return 1;
  std::fclose(file);
  grower.goes_left.resize(n);
  grower.nodes.resize(1);
  grower.grow(0, sizes[0], 0);
  file = std::fopen(words[2], "wb");
  if (file == nullptr) return 1;
  std::fwrite(grower.nodes.data(), sizeof(Node), grower.nodes.size(), file);
  return std::fclose(file) == 0 ? 0 : 1;
}
'''

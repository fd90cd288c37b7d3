#include <algorithm>
#include <string>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/text.hpp"
#include "gpu/cuda/screening/memory_screen.hpp"

namespace guardbit::gpu {

namespace {

constexpr const char* where = "gpu screen";
constexpr std::size_t piece_bytes = std::size_t{1} << 30;
constexpr int threads = 256, blocks = 4096;
constexpr const char* pattern_names[MemoryScreen::patterns] = {
    "memory: all bits 0", "memory: all bits 1", "memory: hash of the address",
    "memory: its complement"};

struct MemoryLog {
  static constexpr unsigned most_entries = 16;
  struct Entry {
    unsigned long long word;
    std::uint32_t expected, got;
  };
  unsigned long long mismatches;
  unsigned recorded;
  Entry entries[most_entries];
};

__device__ std::uint32_t word_of(int pattern, std::uint64_t word) {
  if (pattern == 0) return 0;
  if (pattern == 1) return ~0U;
  auto x = static_cast<std::uint32_t>(word ^ (word >> 32) * 0x85EBCA6BU);
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  x ^= x >> 16;
  return pattern == 2 ? x : ~x;
}

__device__ uint4 words_of(int pattern, std::uint64_t quad) {
  return {word_of(pattern, quad * 4), word_of(pattern, quad * 4 + 1),
          word_of(pattern, quad * 4 + 2), word_of(pattern, quad * 4 + 3)};
}

__global__ void __launch_bounds__(threads)
    fill_memory(uint4* memory, std::uint64_t quads, int pattern) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < quads;
       i += std::uint64_t{blocks} * threads)
    __stcs(memory + i, words_of(pattern, i));
}

__global__ void __launch_bounds__(threads)
    check_memory(const uint4* memory, std::uint64_t quads, int pattern, MemoryLog* log) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < quads;
       i += std::uint64_t{blocks} * threads) {
    const uint4 x = __ldcs(memory + i), y = words_of(pattern, i);
    if (((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) == 0) continue;
    const std::uint32_t got[] = {x.x, x.y, x.z, x.w}, expected[] = {y.x, y.y, y.z, y.w};
    for (int word = 0; word < 4; ++word) {
      if (got[word] == expected[word]) continue;
      atomicAdd(&log->mismatches, 1ULL);
      const unsigned entry = atomicAdd(&log->recorded, 1U);
      if (entry < MemoryLog::most_entries)
        log->entries[entry] = {i * 4 + static_cast<unsigned>(word), expected[word], got[word]};
    }
  }
}

}  // namespace

MemoryScreen::MemoryScreen(std::size_t left) : log_(sizeof(MemoryLog), where) {
  for (;;) {
    std::size_t available = 0, total = 0;
    check_cuda(cudaMemGetInfo(&available, &total), where);
    if (available < left + piece_bytes + (std::size_t{16} << 20)) return;
    try {
      pieces_.emplace_back(piece_bytes, where);
    } catch (const formats::Error&) {
      return;  // other programs take memory too
    }
  }
}

std::uint64_t MemoryScreen::bytes() const { return pieces_.size() * std::uint64_t{piece_bytes}; }

void MemoryScreen::fill(const DeviceBuffer& piece, int pattern) const {
  fill_memory<<<blocks, threads>>>(piece.as<uint4>(), piece.size() / sizeof(uint4), pattern);
  check_cuda(cudaGetLastError(), where);
}

std::uint64_t MemoryScreen::check(std::size_t piece, int pattern,
                                  std::vector<WrongWord>& wrong) const {
  log_.clear();
  const DeviceBuffer& memory = pieces_[piece];
  check_memory<<<blocks, threads>>>(memory.as<const uint4>(), memory.size() / sizeof(uint4),
                                    pattern, log_.as<MemoryLog>());
  check_cuda(cudaGetLastError(), where);
  MemoryLog log;
  log_.read(std::as_writable_bytes(std::span(&log, 1)));
  for (unsigned i = 0; i < std::min(log.recorded, MemoryLog::most_entries); ++i)
    wrong.push_back({piece, static_cast<std::size_t>(log.entries[i].word), pattern,
                     log.entries[i].expected, log.entries[i].got});
  return log.mismatches;
}

void MemoryScreen::run() {
  const int pattern = next_;
  next_ = (next_ + 1) % patterns;
  for (const DeviceBuffer& piece : pieces_) fill(piece, pattern);
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    mismatches_ += check(piece, pattern, wrong_);
    words_ += pieces_[piece].size() / sizeof(std::uint32_t);
  }
}

std::vector<ScreenFault> MemoryScreen::faults(std::size_t most) {
  std::vector<WrongWord> seen;
  std::swap(seen, wrong_);
  seen.resize(std::min(seen.size(), most));
  constexpr int repetitions = 4;
  std::vector<ScreenFault> found;
  for (const WrongWord& x : seen) {
    ScreenFault fault;
    fault.test = "memory";
    fault.instruction = pattern_names[x.pattern];
    fault.operands = "word " + std::to_string(x.word) + " of piece " + std::to_string(x.piece);
    fault.expected = formats::hex_text(formats::uint32, x.expected);
    fault.got = formats::hex_text(formats::uint32, x.got);
    for (int bit = 0; bit < 32; ++bit)
      if (((x.expected ^ x.got) >> bit & 1U) != 0) fault.bits.push_back(bit);
    fault.repeated = repetitions;
    for (int i = 0; i < repetitions; ++i) {
      std::uint32_t got = x.expected;
      std::uint32_t* const address = pieces_[x.piece].as<std::uint32_t>() + x.word;
      fill(pieces_[x.piece], x.pattern);
      check_cuda(cudaMemcpy(&got, address, sizeof got, cudaMemcpyDeviceToHost), where);
      fault.wrong_again += got != x.expected ? 1 : 0;
    }
    fault.recurrence =
        fault.wrong_again == fault.repeated ? Recurrence::permanent : Recurrence::intermittent;
    found.push_back(fault);
  }
  return found;
}

}  // namespace guardbit::gpu

#include "formats/files/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "formats/support/error.hpp"

namespace guardbit::formats {

struct GzipReader::Stream {
  Stream(std::span<const std::byte> bytes, std::string name)
      : packed(bytes), where(std::move(name)) {
    constexpr int gzip_only = 16;  // zlib.h: added to the bits of the window
    if (inflateInit2(&state, MAX_WBITS + gzip_only) != Z_OK) throw Error(where, "no memory");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(&state); }

  /// what zlib has not taken yet
  std::span<const std::byte> packed;
  std::string where;
  z_stream state{};
  /// the last member has ended
  bool is_over = false;
};

namespace {

/// As many as zlib counts at once.
uInt piece_of(std::size_t count) {
  return static_cast<uInt>(std::min<std::size_t>(count, std::numeric_limits<uInt>::max()));
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

GzipReader::GzipReader(std::span<const std::byte> packed, std::string where)
    : stream_(std::make_shared<Stream>(packed, std::move(where))) {}

std::size_t GzipReader::read(std::span<std::byte> to) {
  Stream& s = *stream_;
  std::size_t done = 0;
  while (!s.is_over && done < to.size()) {
    const uInt in = piece_of(s.packed.size()), room = piece_of(to.size() - done);
    // zlib declares what it reads without const, and does not write there.
    s.state.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(s.packed.data()));
    s.state.avail_in = in;
    s.state.next_out = reinterpret_cast<Bytef*>(to.data() + done);
    s.state.avail_out = room;
    const int result = inflate(&s.state, Z_NO_FLUSH);
    const std::size_t taken = in - s.state.avail_in, given = room - s.state.avail_out;
    s.packed = s.packed.subspan(taken);
    done += given;
    if (result == Z_STREAM_END) {
      s.is_over = s.packed.empty();
      if (!s.is_over && !is_gzip(s.packed)) throw Error(s.where, "has bytes after its gzip data");
      if (!s.is_over) inflateReset(&s.state);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw Error(s.where, "is damaged: its gzip data cannot be unpacked");
    } else if (taken == 0 && given == 0) {
      throw Error(s.where, "is cut off: its gzip data end too soon");
    }
  }
  return done;
}

}  // namespace guardbit::formats

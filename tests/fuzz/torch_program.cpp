#include <zlib.h>

#include "formats/files/torch_file.hpp"
#include "tests/fuzz/input.hpp"

using namespace guardbit;
using namespace guardbit::tests;

// A .pt archive whose data.pkl is the input: mutations then reach the pickle and what turns it into
// tensors, where those of a whole archive mostly break its checksums.
namespace {

void put(std::string& to, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(i < 8 ? number >> (8 * i) & 0xFF : 0);
}

/// A zip archive of stored entries.
class Archive {
 public:
  void add(const std::string& name, std::string_view content) {
    const std::size_t offset = bytes_.size();
    std::string common;
    put(common, 20, 2);  // version, then flags and method, time and date
    put(common, 0, 8);
    put(common,
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())),
        4);
    put(common, content.size(), 4);
    put(common, content.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    bytes_ += "PK\x03\x04" + common + name;
    bytes_ += content;
    directory_ += "PK\x01\x02";
    put(directory_, 20, 2);
    directory_ += common;
    put(directory_, 0, 10);
    put(directory_, offset, 4);
    directory_ += name;
    ++count_;
  }

  std::string finish() const {
    std::string all = bytes_ + directory_ + "PK\x05\x06";
    put(all, 0, 4);
    put(all, count_, 2);
    put(all, count_, 2);
    put(all, directory_.size(), 4);
    put(all, bytes_.size(), 4);
    put(all, 0, 2);
    return all;
  }

 private:
  std::string bytes_, directory_;
  std::uint64_t count_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Archive archive;
  archive.add("a/data.pkl", fuzz::text_of(data, size));
  archive.add("a/byteorder", "little");
  for (const char* const name : {"a/data/0", "a/data/1", "a/data/2", "a/data/3"})
    archive.add(name, std::string(256, 1));
  archive.add("a/version", "3\n");
  const std::string bytes = archive.finish();
  return fuzz::parse_or_refuse([&] {
    fuzz::touch(formats::open_torch(
        fuzz::in_memory(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())));
  });
}

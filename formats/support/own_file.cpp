#include "formats/support/own_file.hpp"

#include <link.h>

#include <cstdint>
#include <filesystem>
#include <system_error>

namespace guardbit::formats {

namespace {

struct Search {
  std::uintptr_t address;
  std::string name;
  bool is_found;
};

/// Whether the address that is looked for lies in that object's memory; the loader calls it for one
/// after the other.
int look_into(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || search.address < begin || search.address - begin >= part.p_memsz)
      continue;
    search.name = object->dlpi_name;
    search.is_found = true;
    return 1;
  }
  return 0;
}

}  // namespace

std::string own_file() {
  Search search{reinterpret_cast<std::uintptr_t>(&look_into), "", false};
  dl_iterate_phdr(look_into, &search);
  if (!search.is_found) return "";
  std::error_code error;
  // The program itself has no name there.
  const std::filesystem::path path = search.name.empty()
                                         ? std::filesystem::read_symlink("/proc/self/exe", error)
                                         : std::filesystem::absolute(search.name, error);
  return error ? std::string() : path.string();
}

}  // namespace guardbit::formats

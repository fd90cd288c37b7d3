#include "formats/files/hdf5_library.hpp"

#if GUARDBIT_HDF5

#include <dlfcn.h>

#include <type_traits>

#include "formats/support/error.hpp"

namespace guardbit::formats {
namespace {

void* loaded(const std::string& where) {
  if (void* const library = ::dlopen(GUARDBIT_HDF5_LIBRARY, RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error(where, "HDF5 files need the library " GUARDBIT_HDF5_LIBRARY
                     ", which is not installed (Debian: libhdf5-dev)");
}

Hdf5Library load(const std::string& where) {
  void* const library = loaded(where);
  Hdf5Library h5{};
  const auto symbol = [&](const char* name) {
    void* const found = ::dlsym(library, name);
    if (found == nullptr) throw Error(where, std::string("the installed libhdf5 has no ") + name);
    return found;
  };
  const auto function = [&](auto& into, const char* name) {
    into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(symbol(name));
  };
  function(h5.open, "H5open");
  function(h5.set_error_printing, "H5Eset_auto2");
  function(h5.set_plugins, "H5PLset_loading_state");
  function(h5.open_file, "H5Fopen");
  function(h5.close_file, "H5Fclose");
  function(h5.create_properties, "H5Pcreate");
  function(h5.set_in_memory, "H5Pset_fapl_core");
  function(h5.set_image, "H5Pset_file_image");
  function(h5.visit, "H5Ovisit1");
  function(h5.open_dataset, "H5Dopen2");
  function(h5.close_dataset, "H5Dclose");
  function(h5.type_of_dataset, "H5Dget_type");
  function(h5.space_of_dataset, "H5Dget_space");
  function(h5.properties_of_dataset, "H5Dget_create_plist");
  function(h5.read, "H5Dread");
  function(h5.layout, "H5Pget_layout");
  function(h5.external_count, "H5Pget_external_count");
  function(h5.chunk, "H5Pget_chunk");
  function(h5.close_properties, "H5Pclose");
  function(h5.create_space, "H5Screate_simple");
  function(h5.select, "H5Sselect_hyperslab");
  function(h5.extent_type, "H5Sget_simple_extent_type");
  function(h5.rank, "H5Sget_simple_extent_ndims");
  function(h5.dimensions, "H5Sget_simple_extent_dims");
  function(h5.close_space, "H5Sclose");
  function(h5.type_class, "H5Tget_class");
  function(h5.type_size, "H5Tget_size");
  function(h5.type_sign, "H5Tget_sign");
  function(h5.type_fields, "H5Tget_fields");
  function(h5.type_bias, "H5Tget_ebias");
  function(h5.type_leading_bit, "H5Tget_norm");
  function(h5.type_precision, "H5Tget_precision");
  function(h5.copy_type, "H5Tcopy");
  function(h5.set_order, "H5Tset_order");
  function(h5.close_type, "H5Tclose");
  function(h5.has_attribute, "H5Aexists");
  function(h5.open_attribute, "H5Aopen");
  function(h5.space_of_attribute, "H5Aget_space");
  function(h5.type_of_attribute, "H5Aget_type");
  function(h5.read_attribute, "H5Aread");
  function(h5.close_attribute, "H5Aclose");
  if (h5.open() < 0) throw Error(where, "libhdf5 does not start");
  h5.file_access = *static_cast<hid_t*>(symbol("H5P_CLS_FILE_ACCESS_ID_g"));
  h5.native_double = *static_cast<hid_t*>(symbol("H5T_NATIVE_DOUBLE_g"));
  // Errors are reported here, and a file does not choose code that is loaded.
  h5.set_error_printing(H5E_DEFAULT, nullptr, nullptr);
  h5.set_plugins(0);
  return h5;
}

}  // namespace

const Hdf5Library& Hdf5Library::of(const std::string& where) {
  static const Hdf5Library library = load(where);
  return library;
}

}  // namespace guardbit::formats

#endif

#pragma once

#if GUARDBIT_HDF5

#include <hdf5.h>

#include <string>
#include <utility>

namespace guardbit::formats {

/// The functions of libhdf5 that are used. The library is loaded when the first such file is read:
/// linked, it would bring some thirty others into every start of a program.
struct Hdf5Library {
  decltype(&::H5open) open;
  decltype(&::H5Eset_auto2) set_error_printing;
  decltype(&::H5PLset_loading_state) set_plugins;
  decltype(&::H5Fopen) open_file;
  decltype(&::H5Fclose) close_file;
  decltype(&::H5Pcreate) create_properties;
  decltype(&::H5Pset_fapl_core) set_in_memory;
  decltype(&::H5Pset_file_image) set_image;
  decltype(&::H5Ovisit1) visit;
  decltype(&::H5Dopen2) open_dataset;
  decltype(&::H5Dclose) close_dataset;
  decltype(&::H5Dget_type) type_of_dataset;
  decltype(&::H5Dget_space) space_of_dataset;
  decltype(&::H5Dget_create_plist) properties_of_dataset;
  decltype(&::H5Dread) read;
  decltype(&::H5Pget_layout) layout;
  decltype(&::H5Pget_external_count) external_count;
  decltype(&::H5Pget_chunk) chunk;
  decltype(&::H5Pclose) close_properties;
  decltype(&::H5Screate_simple) create_space;
  decltype(&::H5Sselect_hyperslab) select;
  decltype(&::H5Sget_simple_extent_type) extent_type;
  decltype(&::H5Sget_simple_extent_ndims) rank;
  decltype(&::H5Sget_simple_extent_dims) dimensions;
  decltype(&::H5Sclose) close_space;
  decltype(&::H5Tget_class) type_class;
  decltype(&::H5Tget_size) type_size;
  decltype(&::H5Tget_sign) type_sign;
  decltype(&::H5Tget_fields) type_fields;
  decltype(&::H5Tget_ebias) type_bias;
  decltype(&::H5Tget_norm) type_leading_bit;
  decltype(&::H5Tget_precision) type_precision;
  decltype(&::H5Tcopy) copy_type;
  decltype(&::H5Tset_order) set_order;
  decltype(&::H5Tclose) close_type;
  decltype(&::H5Aexists) has_attribute;
  decltype(&::H5Aopen) open_attribute;
  decltype(&::H5Aget_space) space_of_attribute;
  decltype(&::H5Aget_type) type_of_attribute;
  decltype(&::H5Aread) read_attribute;
  decltype(&::H5Aclose) close_attribute;
  hid_t native_double, file_access;

  /// The library of this process. Error of `where` when it is not installed.
  static const Hdf5Library& of(const std::string& where);
};

/// An identifier of the library and the function that closes it.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  bool is_open() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

}  // namespace guardbit::formats

#endif

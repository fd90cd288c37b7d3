#include "emulator/functions/cuda_catalogue.hpp"
#include "emulator/functions/function_catalogue.hpp"

namespace guardbit::emulator {

const std::vector<Function>& cuda_functions(CompileMode mode) {
  static const CudaCatalogue catalogue = [] {
    CudaCatalogue all;
    add_elementary_functions(all);
    add_special_functions(all);
    add_number_functions(all);
    return all;
  }();
  return catalogue.functions(mode);
}

}  // namespace guardbit::emulator

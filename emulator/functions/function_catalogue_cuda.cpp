#include "emulator/functions/cuda_catalogue.hpp"
#include "emulator/functions/function_catalogue.hpp"

namespace guardbit::emulator {

void CudaCatalogue::add_modes(std::string_view name, std::string_view meaning, const Codes& codes,
                              const InDoubles& exact) {
  for (std::size_t mode = 0; mode < codes.size(); ++mode) {
    Function function = function_of(name, meaning, codes[mode], exact);
    function.compile = static_cast<CompileMode>(mode);
    function.evidence = cuda_evidence(function.operands, function.compile);
    lists_[mode].push_back(std::move(function));
  }
}

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

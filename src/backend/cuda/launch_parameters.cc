#include "backend/cuda/launch_parameters.h"

namespace tokamak::cuda {

Status LaunchParameters::Set(const DriverApi& api, const LoadedCode& code,
                             std::span<void* const> pointers) {
  if (code.pointers == LaunchSource::Pointers::kParameter) {
    each_[0] = const_cast<void**>(pointers.data());
    return Ok();
  }
  for (size_t i = 0; i < pointers.size(); ++i) each_[i] = const_cast<void**>(&pointers[i]);
  if (code.maps.empty()) return Ok();
  // About 100 ns each.
  maps_.resize(code.maps.size());
  for (size_t i = 0; i < maps_.size(); ++i) {
    const TensorMapForm& form = code.maps[i];
    TOK_RETURN_IF_ERROR(EncodeTensorMap(api, form, pointers[form.argument], *code.label, maps_[i]));
    each_[pointers.size() + i] = &maps_[i];
  }
  return Ok();
}

}  // namespace tokamak::cuda

#include "runtime/convolution.h"

namespace tokamak {
namespace {

using Space = Convolution::Space;

int64_t Count(const std::vector<Space>& space, int64_t Space::*of) {
  int64_t count = 1;
  for (const Space& dim : space) count *= dim.*of;
  return count;
}

std::string Sizes(const std::vector<Space>& space, int64_t Space::*of) {
  std::string text;
  for (const Space& dim : space) text += (text.empty() ? "" : "x") + std::to_string(dim.*of);
  return text;
}

}  // namespace

int64_t Convolution::XCount() const {
  return batch * inputs * Count(space, &Space::x);
}
int64_t Convolution::WCount() const {
  return outputs * (inputs / groups) * Count(space, &Space::w);
}
int64_t Convolution::YCount() const {
  return batch * outputs * Count(space, &Space::y);
}

std::string ToString(const Convolution& c) {
  constexpr const char* kTypes[] = {"f32", "bf16", "f16"};
  constexpr const char* kForms[] = {"forward", "backward data", "backward filter"};
  std::string text = kTypes[static_cast<size_t>(c.type)];
  text += c.tf32 ? " (tf32) " : " ";
  text += kForms[static_cast<size_t>(c.form)];
  text += " " + std::to_string(c.batch) + " x " + Sizes(c.space, &Space::x) + " x " +
          std::to_string(c.inputs) + ", " + Sizes(c.space, &Space::w) + " to " +
          Sizes(c.space, &Space::y) + " x " + std::to_string(c.outputs);
  if (c.groups > 1) text += " in " + std::to_string(c.groups) + " groups";
  for (const Space& dim : c.space)
    text += "; " + std::to_string(dim.pad_low) + "_" + std::to_string(dim.pad_high) + " by " +
            std::to_string(dim.stride) +
            (dim.dilation > 1 ? ", dilated by " + std::to_string(dim.dilation) : "");
  return text;
}

}  // namespace tokamak

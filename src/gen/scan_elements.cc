#include "gen/scan_elements.h"

#include <algorithm>

namespace tokamak {

std::string AnalyzeScan(const FusedRegion& region, Scan& scan) {
  const Instr* found = nullptr;
  for (const Instr* instr : region.instrs) {
    if (instr->op() != Op::kScan) continue;
    if (found != nullptr) return "two scans are not fused";
    found = instr;
  }
  if (found == nullptr) return "it has no scan";
  scan = ScanOf(*found);
  int64_t count = ProductOf(scan.dims, 0, scan.dims.size());
  for (const Instr* root : region.roots)
    if (root != found && (!root->shape().IsArray() || root->shape().ElementCount() > count))
      return "its roots have different numbers of elements";
  return "";
}

Coordinates ScanElements::CarryAt(Scalar outer, Scalar inner) {
  auto split = scan_.carry_dims.begin() + static_cast<int64_t>(scan_.along);
  Coordinates at = Delinearized(b_, outer, Dims(scan_.carry_dims.begin(), split));
  Coordinates rest = Delinearized(b_, inner, Dims(split, scan_.carry_dims.end()));
  at.insert(at.end(), rest.begin(), rest.end());
  return at;
}

Coordinates ScanElements::At(Scalar outer, Scalar along, Scalar inner) {
  Coordinates at = CarryAt(outer, inner);
  at.insert(at.begin() + static_cast<int64_t>(scan_.along), along);
  return at;
}

std::vector<Element> ScanElements::InitialCarries(Scalar outer, Scalar inner) {
  std::vector<Element> first;
  for (size_t k = 0; k < scan_.carries; ++k)
    first.push_back(emitter_.At(*scan_.instr->operand(scan_.inputs + k), CarryAt(outer, inner)));
  return first;
}

std::vector<Element> ScanElements::Inputs(const Coordinates& at) {
  std::vector<Element> inputs;
  for (size_t k = 0; k < scan_.inputs; ++k)
    inputs.push_back(emitter_.At(*scan_.instr->operand(k), at));
  return inputs;
}

std::vector<Element> ScanElements::Apply(const std::vector<Element>& inputs,
                                         const std::vector<Element>& carries, bool wide) {
  std::vector<Element> arguments = inputs;
  arguments.insert(arguments.end(), carries.begin(), carries.end());
  std::optional<std::vector<Element>> results =
      ApplyBody(b_, *scan_.body, arguments, wide, &scan_.carry_dims);
  if (!results) emitter_.Fail("scan: its computation has no scalar formula");
  return emitter_.failure().empty() ? std::move(*results) : std::vector<Element>{};
}

void ScanElements::Step(ScanCarryRegisters& carries, Scalar sequence, const Coordinates& at) {
  std::vector<Element> inputs = Inputs(at);
  std::vector<Element> results = Apply(inputs, carries.Read(sequence), /*wide=*/false);
  if (results.empty()) return;
  carries.Write(sequence, {results.begin() + static_cast<int64_t>(scan_.outputs), results.end()});
  Store(at, results);
}

void ScanElements::Store(const Coordinates& at, const std::vector<Element>& outputs) {
  for (size_t k = 0; k < scan_.outputs; ++k) emitter_.Bind(*scan_.instr, k, at, outputs[k]);
  Scalar linear = Linearized(b_, at, scan_.dims);
  for (const Instr* root : region_.roots) {
    size_t parts = root == scan_.instr ? scan_.outputs : 1;
    for (size_t i = 0; i < parts; ++i) StoreRoot(*root, i, at, linear);
  }
}

// A root with fewer elements stores the first ones.
void ScanElements::StoreRoot(const Instr& root, size_t result_index, const Coordinates& at,
                             Scalar linear) {
  const Shape shape = ResultShapesOf(root.shape())[result_index];
  auto store = [&] {
    Coordinates here = shape.dims() == scan_.dims ? at : Delinearized(b_, linear, shape.dims());
    emitter_.StoreLinear(root, result_index, linear, emitter_.At(root, here, result_index));
  };
  int64_t count = ProductOf(scan_.dims, 0, scan_.dims.size());
  if (shape.ElementCount() == count) return store();
  b_.If(linear < b_.Index(shape.ElementCount()), store);
}

bool ScanElements::HasFinalCarryOutput() const {
  return std::find(region_.roots.begin(), region_.roots.end(), scan_.instr) != region_.roots.end();
}

void ScanElements::StoreFinalCarries(Scalar outer, Scalar inner,
                                     const std::vector<Element>& carries) {
  for (size_t k = 0; k < scan_.carries; ++k)
    emitter_.Store(*scan_.instr, scan_.outputs + k, CarryAt(outer, inner), carries[k]);
}

ScanCarryRegisters::ScanCarryRegisters(KernelBuilder& b, const Scan& scan, int64_t width) : b_(b) {
  for (size_t k = 0; k < scan.carries; ++k) {
    types_.push_back(scan.instr->operand(scan.inputs + k)->shape().type());
    arrays_.push_back(LocalElements(b, "carry", types_[k], Space::kRegisters, width));
  }
}

std::vector<Element> ScanCarryRegisters::Read(Scalar sequence) {
  std::vector<Element> values;
  for (size_t k = 0; k < types_.size(); ++k)
    values.push_back(ReadElement(b_, arrays_[k], types_[k], sequence));
  return values;
}

void ScanCarryRegisters::Write(Scalar sequence, const std::vector<Element>& values) {
  for (size_t k = 0; k < types_.size(); ++k) StoreElement(b_, arrays_[k], sequence, values[k]);
}

}  // namespace tokamak

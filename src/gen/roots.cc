#include "gen/roots.h"

#include <algorithm>

#include "gen/window.h"

namespace tokamak {

bool IsSliceUpdate(const Instr& root) {
  return root.op() == Op::kDynamicUpdateSlice;
}

const Shape& DomainOf(const Instr& root) {
  if (root.shape().IsTuple()) return root.shape().elements()[0];
  return IsSliceUpdate(root) ? root.operand(1)->shape() : root.shape();
}

std::string WhyNoLoopKernel(const FusedRegion& region) {
  int64_t count = DomainOf(*region.roots[0]).ElementCount();
  for (const Instr* root : region.roots)
    for (const Shape& part : ResultShapesOf(root->shape()))
      if (!part.IsArray() ||
          (IsSliceUpdate(*root) ? DomainOf(*root) : part).ElementCount() != count)
        return "its roots have different numbers of elements";
  return "";
}

RootElement UpdateAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                     const Coordinates& here) {
  Element value = emitter.At(*root.operand(1), here);
  Coordinates position = emitter.UpdateDestination(root, here);
  return {&root, 0, Linearized(b, position, root.shape().dims()), value};
}

void StoreElements(ElementEmitter& emitter, const std::vector<RootElement>& elements) {
  for (const RootElement& element : elements)
    emitter.StoreLinear(*element.root, element.result_index, element.index, element.value);
}

void StoreRoots(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                const Coordinates& at, Scalar linear) {
  const Dims& dims = DomainOf(*region.roots[0]).dims();
  std::vector<RootElement> ready;
  ReduceLongWindows(b, emitter, region, dims, at);
  for (const Instr* root : region.roots) {
    const Dims& own = DomainOf(*root).dims();
    Coordinates here = own == dims ? at : Delinearized(b, linear, own);
    if (IsSliceUpdate(*root)) {
      ready.push_back(UpdateAt(b, emitter, *root, here));
      continue;
    }
    for (size_t i = 0; i < ResultShapesOf(root->shape()).size(); ++i)
      ready.push_back({root, i, linear, emitter.At(*root, here, i)});
  }
  StoreElements(emitter, ready);
}

namespace {

// An array updated in place may be read only at the element that is written.
bool MayUpdate(const BuiltKernel& built, size_t output, const Instr* old) {
  for (size_t i = 0; i < built.arguments.size(); ++i) {
    if (built.arguments[i].is_output || built.arguments[i].instr != old) continue;
    auto pair = std::pair(i, output);
    if (std::find(built.may_alias.begin(), built.may_alias.end(), pair) == built.may_alias.end())
      return false;
  }
  return true;
}

}  // namespace

BuildOutcome FinishRegionKernel(KernelBuilder& b, const ElementEmitter& emitter,
                                const FusedRegion& region, int64_t grid, bool writes_once) {
  if (!emitter.failure().empty()) return {std::nullopt, emitter.failure()};
  BuiltKernel built;
  built.grid = grid;
  built.kernel = b.Finish();
  built.arguments = ArgumentsOf(region);
  for (size_t i = 0; i < built.arguments.size(); ++i) {
    const KernelArgument& argument = built.arguments[i];
    if (argument.is_output && IsSliceUpdate(*argument.instr))
      built.must_alias.emplace_back(i, argument.instr->operand(0));
  }
  if (writes_once) FindMayAlias(built);
  for (auto [output, old] : built.must_alias)
    if (!MayUpdate(built, output, old))
      return {std::nullopt, "it reads the array that it overwrites"};
  return {std::move(built), ""};
}

}  // namespace tokamak

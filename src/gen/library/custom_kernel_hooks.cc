#include "gen/library/custom_kernel_hooks.h"

#include <set>

#include "gen/element.h"
#include "gen/roots.h"

namespace tokamak {

bool IsHookOp(const Instr& instr) {
  if (!IsPlainArray(instr.shape()) || IsComplex(instr.shape().type())) return false;
  for (const Instr* operand : instr.operands())
    if (!IsPlainArray(operand->shape()) || IsComplex(operand->shape().type())) return false;
  if (HasControlDependencies(instr)) return false;
  bool fits = instr.op() == Op::kBroadcast || instr.op() == Op::kIota || IsImmediate(instr) ||
              (instr.info().Is(kElementwise) && instr.op() != Op::kMap);
  return fits && (IsImmediate(instr) || !WhyNoElementCode(instr));
}

int64_t CountHookValues(const Instr& instr) {
  CustomKernelHook hook;
  hook.region.computation = instr.parent();
  hook.region.instrs = {&instr};
  hook.region.inputs = InputsOf(hook.region.instrs);
  hook.region.roots = {&instr};
  BuildOutcome outcome = BuildLoadHook(hook, Dialect::kCpu);
  if (!outcome.built) return 0;
  const Kernel& kernel = outcome.built->kernel;
  std::set<ValueId> counted;
  std::vector<ValueId> open;
  for (const Stmt& stmt : kernel.body[0].body) open.push_back(stmt.value);
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    Prim prim = kernel.node(id).prim;
    if (prim == Prim::kConst || prim == Prim::kLoop || !counted.insert(id).second) continue;
    open.insert(open.end(), kernel.operands(id).begin(), kernel.operands(id).end());
  }
  return static_cast<int64_t>(counted.size());
}

BuildOutcome BuildLoadHook(const CustomKernelHook& hook, Dialect dialect) {
  const Instr& root = *hook.region.roots[0];
  int64_t count = root.shape().ElementCount();
  KernelBuilder b("load_hook", dialect);
  ElementEmitter emitter(b, hook.region);
  b.For("g", LoopRole::kGrid, b.Index(count), [&](Scalar i) {
    Element value = emitter.At(root, Delinearized(b, i, root.shape().dims()));
    emitter.StoreLinear(root, 0, b.Index(0), value);
  });
  return FinishRegionKernel(b, emitter, hook.region, count, false);
}

BuildOutcome BuildStoreHook(const CustomKernelHook& hook, const Instr& output, Dialect dialect) {
  const Shape& shape = output.shape();
  KernelBuilder b("store_hook", dialect);
  ElementEmitter emitter(b, hook.region);
  b.For("g", LoopRole::kGrid, b.Index(shape.ElementCount()), [&](Scalar i) {
    Coordinates at = Delinearized(b, i, shape.dims());
    Element stored{emitter.LoadStored(output, b.Index(0)), {}};
    emitter.Bind(output, 0, at, FromStorage(b, shape.type(), stored));
    StoreRoots(b, emitter, hook.region, at, i);
  });
  return FinishRegionKernel(b, emitter, hook.region, shape.ElementCount(), false);
}

}  // namespace tokamak

// Structural equality and hashes of modules, computations and attributes. Names, text positions and
// origins do not count. References to instructions and computations are compared by position: both
// sides are numbered in the same order (parameters by number, then the other instructions in
// program order), and two references are equal if their numbers are.
//
//   a = f32[] add(x, y)        #2 add(#0, #1)
//   b = f32[] add(p, q)        #2 add(#0, #1)      equal
//
// Equal objects have equal hashes; the reverse need not hold, so hashes cover less (no extras but
// sharding). Attribute structs are hashed through their field lists, so that a new field cannot be
// forgotten. Linear in the module.

#include "ir/compare.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ir/visit_attrs.h"

namespace tokamak {
namespace {

template <typename T>
concept HasFields = requires {
  T::Fields();
};

// ---- hashing any attribute field ----

template <typename T>
void AddTo(Hasher& hasher, const T& value);

template <typename T>
void AddTo(Hasher& hasher, const std::vector<T>& list) {
  hasher.Add(list.size());
  for (const auto& item : list) AddTo(hasher, static_cast<const T&>(item));
}
template <typename T>
void AddTo(Hasher& hasher, const std::optional<T>& value) {
  hasher.Add(value.has_value());
  if (value) AddTo(hasher, *value);
}

template <typename T>
void AddTo(Hasher& hasher, const T& value) {
  if constexpr (HasFields<T>) {
    std::apply([&](auto... field) { (AddTo(hasher, value.*field.member), ...); }, T::Fields());
  } else if constexpr (std::is_same_v<T, std::string>) {
    hasher.Add(std::string_view(value));
  } else if constexpr (std::is_same_v<T, Shape> || std::is_same_v<T, Literal>) {
    hasher.Add(value.Hash());
  } else if constexpr (std::is_same_v<T, Sharding>) {
    hasher.Add(HashOf(value));
  } else if constexpr (std::is_same_v<T, AttrEntry>) {
    hasher.Add(std::string_view(value.name));
    hasher.Add(HashOf(value.value));
  } else if constexpr (std::is_same_v<T, TileDevices>) {
    AddTo(hasher, value.list);
    AddTo(hasher, value.reshape);
    AddTo(hasher, value.permutation);
  } else if constexpr (std::is_same_v<T, AxisRef>) {
    hasher.Add(std::string_view(value.name));
    hasher.Add(value.pre_size);
    hasher.Add(value.size);
  } else {
    hasher.Add(value);
  }
}

// ---- numbering ----

// The position of a parameter has no meaning: parameters come first, by number.
std::vector<const Instr*> OrderOf(const Computation& computation) {
  std::vector<const Instr*> order;
  order.reserve(computation.size());
  for (const Instr* parameter : computation.parameters())
    if (parameter != nullptr) order.push_back(parameter);
  for (const Instr* instr : computation.Instrs())
    if (instr->op() != Op::kParameter) order.push_back(instr);
  return order;
}

struct Numbering {
  std::unordered_map<const Computation*, uint32_t> computations;
  std::unordered_map<const Instr*, uint32_t> instrs;

  explicit Numbering(const Module& module) {
    uint32_t next = 0;
    for (const auto& computation : module.computations()) {
      computations.emplace(computation.get(), static_cast<uint32_t>(computations.size()));
      for (const Instr* instr : OrderOf(*computation)) instrs.emplace(instr, next++);
    }
  }
  uint32_t Of(const Computation* computation) const {
    auto it = computations.find(computation);
    return it == computations.end() ? UINT32_MAX : it->second;
  }
  uint32_t Of(const Instr* instr) const {
    auto it = instrs.find(instr);
    return it == instrs.end() ? UINT32_MAX : it->second;
  }
};

// ---- comparing ----

class Comparison {
 public:
  Comparison(const Module& a, const Module& b) : a_(a), b_(b), in_a_(a), in_b_(b) {}

  std::string Run() {
    if (std::string text = Header(); !text.empty()) return text;
    for (size_t i = 0; i < a_.computations().size(); ++i) {
      const Computation& a = *a_.computations()[i];
      const Computation& b = *b_.computations()[i];
      std::string text = Compare(a, b);
      if (!text.empty()) return "computation " + a.name() + " and " + b.name() + ": " + text;
    }
    return {};
  }

 private:
  std::string Header() {
    if (a_.computations().size() != b_.computations().size()) {
      return "number of computations: " + std::to_string(a_.computations().size()) + " and " +
             std::to_string(b_.computations().size());
    }
    if (in_a_.Of(a_.entry()) != in_b_.Of(b_.entry())) return "entry";
    if (a_.num_replicas != b_.num_replicas || a_.num_partitions != b_.num_partitions)
      return "number of devices";
    if (a_.meshes != b_.meshes) return "meshes";
    if (a_.aliases != b_.aliases || a_.donors != b_.donors) return "input-output aliases";
    if (a_.entry_parameter_layouts != b_.entry_parameter_layouts ||
        a_.entry_result_layout != b_.entry_result_layout)
      return "entry_computation_layout";
    if (a_.frontend_attributes != b_.frontend_attributes || a_.attributes != b_.attributes)
      return "module attributes";
    return {};
  }

  std::string Compare(const Computation& a, const Computation& b) {
    if (a.is_public != b.is_public) return "visibility";
    if (a.execution_thread != b.execution_thread) return "execution thread";
    if (a.results != b.results) return "attributes of results";
    if (a.attributes != b.attributes) return "attributes";
    std::vector<const Instr*> x = OrderOf(a), y = OrderOf(b);
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      std::string text = Compare(*x[i], *y[i]);
      if (!text.empty()) return Describe(*x[i]) + " and " + Describe(*y[i]) + ": " + text;
    }
    if (x.size() != y.size())
      return "number of instructions: " + std::to_string(x.size()) + " and " +
             std::to_string(y.size());
    if (in_a_.Of(a.root()) != in_b_.Of(b.root())) return "root";
    return {};
  }

  std::string Compare(const Instr& a, const Instr& b) {
    if (a.op() != b.op()) return "op";
    if (!(a.shape() == b.shape())) return "shape";
    if (!EqualAttrs(a.op(), a.attrs(), b.attrs())) return "attributes";
    if (a.captures() != b.captures()) return "captures";
    if (a.operand_count() != b.operand_count()) return "number of operands";
    for (size_t i = 0; i < a.operand_count(); ++i)
      if (in_a_.Of(a.operand(i)) != in_b_.Of(b.operand(i))) return "operand " + std::to_string(i);
    if (a.called().size() != b.called().size()) return "number of called computations";
    for (size_t i = 0; i < a.called().size(); ++i)
      if (in_a_.Of(a.called(i)) != in_b_.Of(b.called(i)))
        return "called computation " + std::to_string(i);
    return CompareExtras(a.extras(), b.extras());
  }

  std::string CompareExtras(const InstrExtras& a, const InstrExtras& b) {
    if (a.sharding != b.sharding) return "sharding";
    if (a.sharding_rule != b.sharding_rule) return "sharding rule";
    if (a.frontend_attributes != b.frontend_attributes) return "frontend attributes";
    if (a.discardable != b.discardable) return "discardable attributes";
    if (a.backend_config != b.backend_config) return "backend_config";
    if (a.control_predecessors.size() != b.control_predecessors.size())
      return "control predecessors";
    for (size_t i = 0; i < a.control_predecessors.size(); ++i)
      if (in_a_.Of(a.control_predecessors[i]) != in_b_.Of(b.control_predecessors[i]))
        return "control predecessors";
    return {};
  }

  const Module &a_, &b_;
  Numbering in_a_, in_b_;
};

void HashInstr(Hasher& hasher, const Instr& instr, const Numbering& numbering) {
  hasher.Add(instr.op());
  hasher.Add(instr.shape().Hash());
  hasher.Add(HashAttrs(instr.op(), instr.attrs()));
  hasher.Add(instr.captures());
  hasher.Add(instr.operand_count());
  for (const Instr* operand : instr.operands()) hasher.Add(numbering.Of(operand));
  for (const Computation* called : instr.called()) hasher.Add(numbering.Of(called));
  if (instr.extras().sharding) hasher.Add(HashOf(*instr.extras().sharding));
}

void HashComputation(Hasher& hasher, const Computation& computation, const Numbering& numbering) {
  hasher.Add(computation.size());
  for (const Instr* instr : OrderOf(computation)) HashInstr(hasher, *instr, numbering);
  hasher.Add(numbering.Of(computation.root()));
}

}  // namespace

bool EqualAttrs(Op op, const Attrs& a, const Attrs& b) {
  if (a.SameObject(b)) return true;
  return VisitAttrs(op, a, [&]<typename A>(const A& x) { return x == b.As<A>(); });
}

uint64_t HashAttrs(Op op, const Attrs& attrs) {
  Hasher hasher;
  VisitAttrs(op, attrs, [&](const auto& a) { AddTo(hasher, a); });
  return hasher.digest();
}

std::string FirstDifference(const Module& a, const Module& b) {
  return Comparison(a, b).Run();
}

uint64_t StructuralHash(const Module& module) {
  Numbering numbering(module);
  Hasher hasher;
  hasher.Add(numbering.Of(module.entry()));
  for (const auto& computation : module.computations())
    HashComputation(hasher, *computation, numbering);
  return hasher.digest();
}

uint64_t StructuralHash(const Computation& computation) {
  Numbering numbering(*computation.module());
  Hasher hasher;
  HashComputation(hasher, computation, numbering);
  return hasher.digest();
}

bool SameExtras(const Instr& a, const Instr& b) {
  if (!a.has_extras() && !b.has_extras()) return true;
  const InstrExtras &x = a.extras(), &y = b.extras();
  return x.sharding == y.sharding && x.sharding_rule == y.sharding_rule &&
         x.frontend_attributes == y.frontend_attributes && x.discardable == y.discardable &&
         x.backend_config == y.backend_config && x.control_predecessors == y.control_predecessors;
}

namespace {

// The position of each instruction, not counting removed ones.
InstrMap<size_t> PositionsOf(const Computation& computation,
                             const std::vector<const Instr*>& instrs) {
  InstrMap<size_t> positions(computation);
  for (size_t i = 0; i < instrs.size(); ++i) positions[instrs[i]] = i;
  return positions;
}

bool SameUses(std::span<Instr* const> a, std::span<Instr* const> b, const InstrMap<size_t>& in_a,
              const InstrMap<size_t>& in_b) {
  return std::ranges::equal(a, b,
                            [&](const Instr* x, const Instr* y) { return in_a[x] == in_b[y]; });
}

}  // namespace

// Unlike in FirstDifference, callees are compared by pointer: identical callees must have been
// merged before.
bool SameBody(const Computation& a, const Computation& b) {
  if (a.size() != b.size() || a.execution_thread != b.execution_thread) return false;
  if (a.results != b.results || a.attributes != b.attributes) return false;
  std::vector<const Instr*> xs = OrderOf(a), ys = OrderOf(b);
  InstrMap<size_t> in_a = PositionsOf(a, xs), in_b = PositionsOf(b, ys);
  if (in_a[a.root()] != in_b[b.root()]) return false;
  for (size_t i = 0; i < xs.size(); ++i) {
    const Instr &x = *xs[i], &y = *ys[i];
    bool same = x.op() == y.op() && x.captures() == y.captures() && x.shape() == y.shape() &&
                std::ranges::equal(x.called(), y.called()) &&
                SameUses(x.operands(), y.operands(), in_a, in_b) &&
                EqualAttrs(x.op(), x.attrs(), y.attrs());
    if (!same) return false;
    if (!x.has_extras() && !y.has_extras()) continue;
    const InstrExtras &p = x.extras(), &q = y.extras();
    same = p.sharding == q.sharding && p.sharding_rule == q.sharding_rule &&
           p.frontend_attributes == q.frontend_attributes && p.discardable == q.discardable &&
           p.backend_config == q.backend_config &&
           SameUses(p.control_predecessors, q.control_predecessors, in_a, in_b);
    if (!same) return false;
  }
  return true;
}

uint64_t BodyHash(const Computation& computation) {
  std::vector<const Instr*> instrs = OrderOf(computation);
  InstrMap<size_t> positions = PositionsOf(computation, instrs);
  Hasher hasher;
  hasher.Add(instrs.size());
  for (const Instr* instr : instrs) {
    hasher.Add(instr->op());
    hasher.Add(instr->shape().Hash());
    hasher.Add(HashAttrs(instr->op(), instr->attrs()));
    for (const Instr* operand : instr->operands()) hasher.Add(positions[operand]);
    // Bodies that differ only in their callees are common, for example in a chain of calls.
    for (const Computation* callee : instr->called())
      hasher.AddBytes(callee->name().data(), callee->name().size());
  }
  hasher.Add(positions[computation.root()]);
  return hasher.digest();
}

}  // namespace tokamak

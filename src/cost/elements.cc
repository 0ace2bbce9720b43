// AddElementOp: the operations of an op per element, before a kernel exists. Instead of a table of
// costs per op, the formula of the op is built once as kernel IR (ApplyOp), and its values are
// counted as those of a real kernel:
//
//   tanh(x), f32  ->  KernelBuilder  ->  AddPrim per value  ->  operations per pipe and element
//
// Counts therefore follow changes of the formulas, the element type, the vector width and constant
// operands. They are memoized by everything that determines them (CountsKey); the memo is shared by
// all threads of the process.

#include <algorithm>
#include <limits>
#include <vector>

#include "analysis/index_map.h"
#include "cost/panel_rates.h"
#include "cost/pipes.h"
#include "cost/work.h"
#include "ir/compare.h"
#include "ir/dot_precision.h"
#include "ir/ir.h"
#include "kernel/choice.h"
#include "kernel/formulas.h"
#include "support/ceil_div.h"
#include "support/hash.h"
#include "support/memo.h"

namespace tokamak {
namespace {

// Vector width in elements for which formulas are counted. Chosen: a multiple of all register
// widths.
constexpr double kLanes = 64;

// Operations per element.
using Counts = std::array<double, kPipes>;

Counts CountsOf(const Kernel& kernel, const Machine& machine) {
  Work work;
  std::vector<bool> skipped(kernel.nodes.size());
  if (machine.has_extremes) skipped = InsideExtremes(kernel);
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (skipped[i] || node.prim == Prim::kLoad || node.type == ScalarType::kIndex) continue;
    AddPrim(work, kernel, ValueId{static_cast<uint32_t>(i)}, 1, kLanes, machine);
  }
  for (double& count : work.ops) count /= kLanes;
  return work.ops;
}

// Operands of a formula under construction: loads from dummy arrays.
class Operands {
 public:
  explicit Operands(KernelBuilder& b) : b_(b) {}

  Element Next(ElementType type) {
    Element element{Load(StorageType(type)), {}};
    if (IsComplex(type)) element[1] = Load(StorageType(type));
    return FromStorage(b_, type, element);
  }
  Scalar Load(ScalarType type) {
    ArrayId array = b_.Argument(
        {.name = "x", .type = type, .space = Space::kArgument, .access = Access::kRead, .size = 1});
    return b_.Load(array, b_.Index(0));
  }

 private:
  KernelBuilder& b_;
};

const Literal* ConstantOf(const Instr& instr) {
  const Instr* at = &instr;
  while (at->op() == Op::kBroadcast || at->op() == Op::kReshape) at = at->operand(0);
  if (at->op() != Op::kConstant || !at->shape().IsArray() || at->shape().ElementCount() != 1)
    return nullptr;
  return &at->attrs<ConstantAttrs>().literal;
}

struct OperandKey {
  ElementType type{};
  bool is_constant = false;
  uint64_t bits = 0;
};

OperandKey KeyOf(const Instr& operand) {
  OperandKey key{operand.shape().type()};
  const Literal* literal = IsComplex(key.type) ? nullptr : ConstantOf(operand);
  if (literal != nullptr) {
    key.is_constant = true;
    key.bits = literal->BitsAt(0);
  }
  return key;
}

Dialect DialectOf(const Machine& machine) {
  return machine.is_gpu() ? Dialect::kGpu : Dialect::kCpu;
}

// Loads and conversions of the operands do not count as part of the op.
Counts FormulaCounts(const Instr& instr, const Machine& machine) {
  KernelBuilder b("formula", DialectOf(machine));
  Operands operands(b);
  std::vector<Element> elements;
  for (const Instr* operand : instr.operands()) {
    OperandKey key = KeyOf(*operand);
    if (key.is_constant) {
      elements.push_back(
          FromStorage(b, key.type, {b.ConstantBits(StorageType(key.type), key.bits), {}}));
    } else {
      elements.push_back(operands.Next(key.type));
    }
  }
  Counts before = CountsOf(b.kernel(), machine);
  OpCall call{.op = instr.op(),
              .type = instr.shape().type(),
              .from = instr.operand(instr.op() == Op::kSelect ? 2 : 0)->shape().type(),
              .operands = elements,
              .attrs = &instr.attrs()};
  std::optional<Element> value = ApplyOp(b, call);
  Counts counts = CountsOf(b.kernel(), machine);
  for (size_t i = 0; i < kPipes; ++i) counts[i] -= before[i];
  if (!value)
    counts[static_cast<size_t>(Pipe::kScalar)] +=
        static_cast<double>(instr.info().flops_per_element);
  return counts;
}

// Random words, one per element.
Counts RandomCounts(bool philox, const Machine& machine) {
  KernelBuilder b("random");
  Operands operands(b);
  auto word = [&] { return operands.Load(ScalarType::kU32); };
  size_t words = 0;  // that one evaluation makes
  if (philox) {
    words = PhiloxWords({word(), word(), word(), word()}, {word(), word()}).size();
  } else {
    words = ThreefryWords({word(), word()}, {word(), word()}).size();
  }
  Counts counts = CountsOf(b.kernel(), machine);
  for (double& count : counts) count /= static_cast<double>(words);
  return counts;
}

Counts StorageCounts(ElementType type, bool store, const Machine& machine) {
  KernelBuilder b("storage", DialectOf(machine));
  Operands operands(b);
  Element element{operands.Load(store ? ComputeType(type) : StorageType(type)), {}};
  if (IsComplex(type)) element[1] = operands.Load(StorageType(type));
  store ? ToStorage(b, type, element) : FromStorage(b, type, element);
  return CountsOf(b.kernel(), machine);
}

// Keys that are not ops.
enum OtherKey : int { kThreefry = std::numeric_limits<int>::min(), kPhilox, kFrom, kTo };

// Everything that determines the counts.
struct CountsKey {
  int what = 0;  // an op, or an OtherKey
  std::vector<uint64_t> words = {};
  Attrs attrs = {};

  template <typename T>
  void Add(T word) {
    words.push_back(static_cast<uint64_t>(word));
  }
  uint64_t Hash() const {
    Hasher hasher;
    hasher.Add(what);
    for (uint64_t word : words) hasher.Add(word);
    if (what >= 0) hasher.Add(HashAttrs(static_cast<Op>(what), attrs));
    return hasher.digest();
  }
  bool operator==(const CountsKey& other) const {
    return what == other.what && words == other.words &&
           (what < 0 || EqualAttrs(static_cast<Op>(what), attrs, other.attrs));
  }
};

// The caller adds the operands.
CountsKey KeyOf(int what, ElementType type, const Machine& machine) {
  constexpr size_t kTypicalWords = 16;  // words of a key (chosen: most keys need no reallocation)
  CountsKey key{what};
  key.words.reserve(kTypicalWords);
  key.Add(type);
  key.Add(machine.vector_bits);
  key.Add(machine.is_gpu());
  key.Add(machine.has_extremes);
  return key;
}

Memo<CountsKey, Counts>& KnownCounts() {
  constexpr size_t kMaxEntries = 10000;  // entries of the cache (chosen: they take some MiB)
  static auto* known = new Memo<CountsKey, Counts>(kMaxEntries);
  return *known;
}

void Add(Work& work, const Counts& counts, double elements) {
  for (size_t i = 0; i < kPipes; ++i) work.ops[i] += counts[i] * elements;
}

double TapsOf(const Instr& instr) {
  double taps = 1;
  for (const WindowDim& dim : instr.attrs<WindowAttrs>().window)
    taps *= static_cast<double>(dim.size);
  return taps;
}

void AddBody(Work& work, const Instr& instr, double elements, const Machine& machine) {
  for (const Computation* body : instr.called())
    for (const Instr* inner : body->Instrs()) AddElementOp(work, *inner, elements, machine);
}

// Each element selects in all windows around it (gen/select_scatter.h).
void AddSelectAndScatter(Work& work, const Instr& instr, double elements, const Machine& machine) {
  // Per tap: whether it is in the array, the value, its number, and whether there is any (structure
  // of the emitted code).
  constexpr double kOpsOfTap = 5;
  constexpr int kElementBits = 32;  // bits of a number of a tap
  double windows = 1;
  for (const WindowDim& dim : instr.attrs<WindowAttrs>().window)
    windows *= static_cast<double>(CeilDiv(dim.size, dim.stride));
  double taps = elements * windows * TapsOf(instr);
  work[Pipe::kSimple] += kOpsOfTap * VectorsOf(taps, kElementBits, machine);
  auto add = [&](const Computation& body, double times) {
    for (const Instr* inner : body.Instrs()) AddElementOp(work, *inner, times, machine);
  };
  add(*instr.called(0), taps);
  add(*instr.called(1), elements * windows);
}

void AddDot(Work& work, const Instr& dot, double elements, const Machine& machine) {
  ElementType type = dot.operand(0)->shape().type();
  int64_t bytes = BytesOf(type);
  constexpr double kComplexProducts = 4;  // products of real numbers per complex one (definition)
  double parts = IsComplex(type) ? kComplexProducts : 1;
  int bits = 8 * static_cast<int>(bytes);
  Pipe pipe = bits < 32 ? Pipe::kMultiply16 : bits > 32 ? Pipe::kMultiply64 : Pipe::kMultiply;
  bool is_tensor = type == ElementType::kBF16 || type == ElementType::kF16,
       is_tf32 = type == ElementType::kF32 && machine.tf32 && AllowsTf32(dot.attrs<DotAttrs>());
  bool is_byte = MultipliesBytes(dot);
  if (machine.async_multiply && (is_tensor || is_tf32 || is_byte)) pipe = Pipe::kTensor;
  if (pipe == Pipe::kTensor && is_tf32) parts *= kTf32Products;
  if (pipe == Pipe::kTensor && is_byte) parts *= kByteProducts;
  work[pipe] += elements * static_cast<double>(ReadsPerElement(dot)) * parts;
}

void AddElementwise(Work& work, const Instr& instr, double elements, const Machine& machine) {
  CountsKey key = KeyOf(static_cast<int>(instr.op()), instr.shape().type(), machine);
  key.attrs = instr.attrs();
  for (const Instr* operand : instr.operands()) {
    OperandKey own = KeyOf(*operand);
    key.Add(own.type);
    key.Add(own.is_constant);
    key.Add(own.bits);
  }
  Counts counts = KnownCounts().Get(key, [&] { return FormulaCounts(instr, machine); });
  Add(work, counts, elements);
}

// How values that are computed from indices and constants alone vary. The walk ends
// after `steps` values.
enum class IndexValue : uint8_t { kConstant, kOfOuterIndices, kOfLastIndex, kOther };

IndexValue IndexValueOf(const Instr& instr, int& steps) {
  if (--steps < 0 || !instr.shape().IsArray() || !IsInteger(instr.shape().type()))
    return IndexValue::kOther;
  switch (instr.op()) {
    case Op::kConstant:
      return instr.shape().ElementCount() == 1 ? IndexValue::kConstant : IndexValue::kOther;
    case Op::kIota: {
      bool is_last = instr.attrs<IotaAttrs>().dimension + 1 == instr.shape().rank();
      return is_last ? IndexValue::kOfLastIndex : IndexValue::kOfOuterIndices;
    }
    case Op::kBroadcast:
      return instr.operand(0)->shape().ElementCount() == 1 ? IndexValueOf(*instr.operand(0), steps)
                                                           : IndexValue::kOther;
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kShiftRightLogical:
    case Op::kConvert: {
      IndexValue most = IndexValue::kConstant;
      for (const Instr* operand : instr.operands())
        most = std::max(most, IndexValueOf(*operand, steps));
      return most;
    }
    default:
      return IndexValue::kOther;
  }
}

// Counts an integer that follows from indices, as the counters of random bits do; false if the
// value is another one. A kernel computes what is the same along the last dimension once for many
// elements, and the rest as it does addresses.
bool AddIndexValue(Work& work, const Instr& instr, double elements, const Machine& machine) {
  constexpr int kMaxSteps = 64;  // chosen: sums of the indices of all dimensions have fewer
  if (!machine.is_gpu()) return false;
  int steps = kMaxSteps;
  IndexValue value = IndexValueOf(instr, steps);
  if (value == IndexValue::kOther) return false;
  if (value == IndexValue::kOfLastIndex) work[Pipe::kIndex] += elements;
  return true;
}

}  // namespace

// Ops with a body count the ops of the body; data movement costs nothing beyond the loads and
// stores that the caller adds.
void AddElementOp(Work& work, const Instr& instr, double elements, const Machine& machine) {
  constexpr int kElementBits = 32;  // bits of an index (structure of kernel IR)
  double vectors = VectorsOf(elements, kElementBits, machine);
  switch (instr.op()) {
    case Op::kMap:
    case Op::kReduce:
    case Op::kScan:
      return AddBody(work, instr, elements, machine);
    case Op::kReduceWindow:
      return AddBody(work, instr, elements * TapsOf(instr), machine);
    case Op::kSelectAndScatter:
      return AddSelectAndScatter(work, instr, elements, machine);
    case Op::kScatter:
      work[Pipe::kScatter] += elements;
      return AddBody(work, instr, elements, machine);
    case Op::kGather:
    case Op::kTorchIndexSelect:
      work[Pipe::kGather] += elements;
      return;
    case Op::kDot:
      return AddDot(work, instr, elements, machine);
    case Op::kIota:
      if (AddIndexValue(work, instr, elements, machine)) return;
      work[Pipe::kConvert] += vectors;
      return;
    case Op::kPad:
    case Op::kConcatenate:
      work[Pipe::kSimple] += 2 * vectors;
      return;
    case Op::kRng:
    case Op::kRngBitGenerator: {
      bool philox = instr.op() == Op::kRngBitGenerator &&
                    instr.attrs<RngBitGeneratorAttrs>().algorithm != RngAlgorithm::kThreeFry;
      CountsKey key = KeyOf(philox ? kPhilox : kThreefry, {}, machine);
      Add(work, KnownCounts().Get(key, [&] { return RandomCounts(philox, machine); }), elements);
      return;
    }
    default:
      if (AddIndexValue(work, instr, elements, machine)) return;
      if (instr.info().Is(kElementwise) && instr.shape().IsArray() && instr.operand_count() > 0)
        AddElementwise(work, instr, elements, machine);
  }
}

void AddLoads(Work& work, double elements, ElementType type, const Machine& machine) {
  CountsKey key = KeyOf(kFrom, type, machine);
  Add(work, KnownCounts().Get(key, [&] { return StorageCounts(type, false, machine); }), elements);
  work[Pipe::kLoad] +=
      elements * static_cast<double>(BytesOf(type)) * 8 / static_cast<double>(machine.vector_bits);
}

void AddStores(Work& work, double elements, ElementType type, const Machine& machine) {
  CountsKey key = KeyOf(kTo, type, machine);
  Add(work, KnownCounts().Get(key, [&] { return StorageCounts(type, true, machine); }), elements);
  work[Pipe::kStore] +=
      elements * static_cast<double>(BytesOf(type)) * 8 / static_cast<double>(machine.vector_bits);
}

}  // namespace tokamak

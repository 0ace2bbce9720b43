// The CPU scan generator: a computation along a dimension with carried values. A sequence is the
// elements along that dimension at one index of the others (scan_elements.h).
//
//   for some sequences (grid)
//     for the elements of a sequence, in order (serial)
//       for each of the sequences: one step, update its carries
//
// Sequences that are adjacent in memory (inner > 1) are vector lanes. Otherwise a few sequences are
// processed together so that their dependence chains overlap.

#include "gen/scan.h"

#include <algorithm>

#include "gen/scan_elements.h"

namespace tokamak {
namespace {

// Bytes from which adjacent vectors of sequences are processed together. Chosen: smaller inputs
// stay in the L2 cache, where strided lines cost little. kScanElementBytes: of f32 and s32
// (definition), assumed for all types.
constexpr int64_t kScanLargeInput = 256 << 10, kScanElementBytes = 4;
// Minimum scan length for it, and maximum vectors. Chosen: shorter columns do not repay the setup
// of the carries, and those of 8 vectors still stay in registers or L1.
constexpr int64_t kScanLongColumn = 16, kScanMostVectors = 8;
// Sequences processed together if they are not adjacent. Chosen: covers the latency of an addition.
constexpr int64_t kSequencesAtATime = 4;
// Grid iterations that keep all cores busy. Chosen: several for each core of a typical CPU.
constexpr int64_t kScanGridWanted = 64;

class ScanBuilder {
 public:
  ScanBuilder(const FusedRegion& region, const Scan& scan, const Machine& machine,
              const std::string& name)
      : region_(region),
        scan_(scan),
        machine_(machine),
        b_(name),
        emitter_(b_, region),
        elements_(b_, emitter_, region, scan) {}

  BuildOutcome Build() {
    lanes_ = scan_.RunsInParallelLanes(machine_)
                 ? std::min(kRegistersOfVector * machine_.Lanes(32), FloorPowerOfTwo(scan_.inner))
                 : 1;
    BuiltKernel built;
    bool writes_once = lanes_ > 1 ? BuildColumns(built) : BuildSequences(built);
    if (!emitter_.failure().empty()) return {std::nullopt, emitter_.failure()};
    built.kernel = b_.Finish();
    built.arguments = ArgumentsOf(region_);
    if (writes_once) FindMayAlias(built);
    return {std::move(built), ""};
  }

 private:
  bool BuildColumns(BuiltKernel& built) {
    int64_t inner = scan_.inner, vectors = 1;
    auto grid = [&](int64_t v) { return scan_.outer * ((inner + v * lanes_ - 1) / (v * lanes_)); };
    if (scan_.length >= kScanLongColumn &&
        scan_.length * inner * kScanElementBytes >= kScanLargeInput)
      while (2 * vectors <= std::min(kScanMostVectors, inner / lanes_) &&
             grid(2 * vectors) >= kScanGridWanted)
        vectors *= 2;
    int64_t width = vectors * lanes_, steps = (inner + width - 1) / width;
    built.grid = grid(vectors);
    b_.For("g", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
      Scalar outer = g / b_.Index(steps);
      Scalar begin = LesserOf(g % b_.Index(steps) * b_.Index(width), b_.Index(inner - width));
      auto lanes = [&](auto&& body) {
        auto vector = [&](Scalar first) {
          b_.For("l", LoopRole::kVector, b_.Index(lanes_),
                 [&](Scalar l) { body(outer, begin + (first + l), first + l); });
        };
        if (vectors == 1) return vector(b_.Index(0));
        b_.For("v", LoopRole::kUnrolled, b_.Index(vectors),
               [&](Scalar v) { vector(v * b_.Index(lanes_)); });
      };
      Walk(width, lanes);
    });
    return inner % width == 0;
  }

  bool BuildSequences(BuiltKernel& built) {
    int64_t sequences = scan_.outer * scan_.inner,
            taken = std::min(kSequencesAtATime, FloorPowerOfTwo(sequences));
    while (taken > 1 && sequences / taken < kScanGridWanted && sequences % taken != 0) taken /= 2;
    built.grid = (sequences + taken - 1) / taken;
    b_.For("g", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
      Scalar first = LesserOf(g * b_.Index(taken), b_.Index(sequences - taken));
      Walk(taken, [&](auto&& body) {
        auto one = [&](Scalar r) {
          Scalar sequence = first + r;
          body(sequence / b_.Index(scan_.inner), sequence % b_.Index(scan_.inner), r);
        };
        if (taken == 1) return one(b_.Index(0));
        b_.For("r", LoopRole::kUnrolled, b_.Index(taken), one);
      });
    });
    return sequences % taken == 0;
  }

  // Scans `width` sequences. `each` calls its argument with (outer, inner, index among the
  // sequences processed together) for all of them.
  template <typename Each>
  void Walk(int64_t width, Each&& each) {
    ScanCarryRegisters carries(b_, scan_, width);
    each([&](Scalar outer, Scalar inner, Scalar sequence) {
      carries.Write(sequence, elements_.InitialCarries(outer, inner));
    });
    b_.For("t", LoopRole::kSerial, b_.Index(scan_.length), [&](Scalar t) {
      Scalar at = scan_.is_reverse ? b_.Index(scan_.length - 1) - t : t;
      each([&](Scalar outer, Scalar inner, Scalar sequence) {
        elements_.Step(carries, sequence, elements_.At(outer, at, inner));
      });
    });
    if (!elements_.HasFinalCarryOutput()) return;
    each([&](Scalar outer, Scalar inner, Scalar sequence) {
      elements_.StoreFinalCarries(outer, inner, carries.Read(sequence));
    });
  }

  const FusedRegion& region_;
  const Scan& scan_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScanElements elements_;
  int64_t lanes_ = 1;
};

// Returns why the shapes of the scan's arrays do not match.
std::optional<std::string> WhyNoScanShapes(const Instr& instr, const Scan& scan) {
  std::vector<Shape> parts = ResultShapesOf(instr.shape());
  auto fits = [](const Shape& shape, const Dims& dims) {
    return IsPlainArray(shape) && shape.dims() == dims && shape.ElementCount() > 0;
  };
  for (size_t k = 0; k < scan.inputs + scan.carries; ++k)
    if (!fits(instr.operand(k)->shape(), k < scan.inputs ? scan.dims : scan.carry_dims))
      return "scan: its arrays differ in shape, or are empty";
  for (size_t k = 0; k < parts.size(); ++k)
    if (!fits(parts[k], k < scan.outputs ? scan.dims : scan.carry_dims))
      return "scan: its arrays differ in shape, or are empty";
  if (scan.body->parameters().size() != scan.inputs + scan.carries)
    return "scan: the parameters of its computation differ from its operands";
  return std::nullopt;
}

}  // namespace

Scan ScanOf(const Instr& instr) {
  const ScanAttrs& attrs = instr.attrs<ScanAttrs>();
  Scan scan;
  scan.instr = &instr;
  scan.body = instr.called(0);
  scan.carries = std::min(static_cast<size_t>(attrs.num_carries), instr.operand_count());
  scan.inputs = instr.operand_count() - scan.carries;
  std::vector<Shape> parts = ResultShapesOf(instr.shape());
  scan.outputs = parts.size() - std::min(scan.carries, parts.size());
  scan.along = static_cast<size_t>(attrs.dimension);
  scan.is_reverse = attrs.is_reverse;
  if (scan.outputs > 0 && parts[0].IsArray()) scan.dims = scan.carry_dims = parts[0].dims();
  if (scan.along >= scan.dims.size()) return scan;
  scan.carry_dims.erase(scan.carry_dims.begin() + attrs.dimension);
  scan.outer = ProductOf(scan.dims, 0, scan.along);
  scan.length = scan.dims[scan.along];
  scan.inner = ProductOf(scan.dims, scan.along + 1, scan.dims.size());
  return scan;
}

std::optional<std::string> WhyNoScanKernel(const Instr& instr) {
  if (instr.captures() > 0) return "scan: it captures values";
  Scan scan = ScanOf(instr);
  if (scan.outputs == 0 || scan.along >= scan.dims.size())
    return "scan: its results are not arrays";
  if (std::optional<std::string> why = WhyNoScanShapes(instr, scan)) return why;
  KernelBuilder b("probe");
  std::vector<Element> arguments;
  for (size_t k = 0; k < scan.inputs + scan.carries; ++k) {
    ElementType type = instr.operand(k)->shape().type();
    if (scan.body->parameter(k)->shape().type() != type)
      return "scan: the parameter types of its computation differ from its operands";
    arguments.push_back(ConstantElement(b, type, 1));
  }
  std::optional<std::vector<Element>> results =
      ApplyBody(b, *scan.body, arguments, /*wide=*/false, &scan.carry_dims);
  if (!results || results->size() != scan.outputs + scan.carries)
    return "scan: its computation has no scalar formula";
  return std::nullopt;
}

BuildOutcome BuildScan(const FusedRegion& region, const Machine& machine, const std::string& name) {
  Scan scan;
  if (std::string why = AnalyzeScan(region, scan); !why.empty()) return {std::nullopt, why};
  return ScanBuilder(region, scan, machine, name).Build();
}

std::optional<PrefixScan> PrefixScanOf(const Instr& scan) {
  const ScanAttrs& attrs = scan.attrs<ScanAttrs>();
  if (!attrs.is_associative.value_or(false) || WhyNoScanKernel(scan)) return std::nullopt;
  Scan facts = ScanOf(scan);
  const Computation& body = *facts.body;
  const Instr* root = body.root();
  if (facts.inputs != 1 || facts.carries != 1 || facts.outputs != 1) return std::nullopt;
  if (root->op() != Op::kTuple || root->operand_count() != 2) return std::nullopt;
  const Instr *next = root->operand(1), *x = body.parameter(0), *carry = body.parameter(1);
  if (next->operand_count() != 2 || !next->shape().IsArray()) return std::nullopt;
  const Instr *a = next->operand(0), *b = next->operand(1);
  if (!((a == x && b == carry) || (a == carry && b == x))) return std::nullopt;
  if (root->operand(0) != next && root->operand(0) != carry) return std::nullopt;
  if (next->shape().type() != x->shape().type()) return std::nullopt;
  return PrefixScan{next->op(), root->operand(0) == next};
}

}  // namespace tokamak

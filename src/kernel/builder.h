#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/range.h"

namespace tokamak {

class KernelBuilder;

// KernelBuilder and the operators of Scalar: how generators and formulas write kernel IR
// (kernel.h).

// A value under construction, with the operators of the primitives. Both operands of an operator
// have the same type.
class Scalar {
 public:
  Scalar() = default;
  Scalar(KernelBuilder* builder, ValueId id) : builder_(builder), id_(id) {}
  ValueId id() const { return id_; }
  KernelBuilder& builder() const { return *builder_; }
  ScalarType type() const;
  bool ok() const { return builder_ != nullptr; }

  // A constant of this value's type.
  Scalar Like(double value) const;
  Scalar As(ScalarType type) const;      // convert
  Scalar BitsAs(ScalarType type) const;  // bitcast

 private:
  KernelBuilder* builder_ = nullptr;
  ValueId id_ = kNoValue;
};

Scalar operator+(Scalar x, Scalar y);
Scalar operator-(Scalar x, Scalar y);
Scalar operator*(Scalar x, Scalar y);
Scalar operator/(Scalar x, Scalar y);
Scalar operator%(Scalar x, Scalar y);
Scalar operator-(Scalar x);
Scalar operator&(Scalar x, Scalar y);
Scalar operator|(Scalar x, Scalar y);
Scalar operator^(Scalar x, Scalar y);
Scalar operator<<(Scalar x, Scalar y);
Scalar operator>>(Scalar x, Scalar y);
Scalar operator<(Scalar x, Scalar y);
Scalar operator<=(Scalar x, Scalar y);
Scalar operator>(Scalar x, Scalar y);
Scalar operator>=(Scalar x, Scalar y);
Scalar operator==(Scalar x, Scalar y);
Scalar operator!=(Scalar x, Scalar y);
Scalar operator!(Scalar x);  // a pred
// The number becomes a constant of the other operand's type.
Scalar operator+(Scalar x, double y);
Scalar operator-(Scalar x, double y);
Scalar operator*(Scalar x, double y);
Scalar operator/(Scalar x, double y);
Scalar operator-(double x, Scalar y);
Scalar operator/(double x, Scalar y);
Scalar operator<(Scalar x, double y);
Scalar operator<=(Scalar x, double y);
Scalar operator>(Scalar x, double y);
Scalar operator>=(Scalar x, double y);
Scalar operator==(Scalar x, double y);
Scalar operator!=(Scalar x, double y);

Scalar Choose(Scalar condition, Scalar yes, Scalar no);
Scalar LesserOf(Scalar x, Scalar y);   // min
Scalar GreaterOf(Scalar x, Scalar y);  // max
Scalar Fma(Scalar x, Scalar y, Scalar z);
Scalar SqrtOf(Scalar x);
Scalar AbsOf(Scalar x);
Scalar FloorOf(Scalar x);
Scalar CeilOf(Scalar x);
Scalar TruncOf(Scalar x);
Scalar RoundEvenOf(Scalar x);
Scalar CopySign(Scalar x, Scalar y);

// The instruction set that formulas may assume.
enum class Dialect : uint8_t {
  kCpu,
  kGpu,  // for f32: minimum, maximum, exp2, inverse, conversion to f16 and bf16
};

// Builds one kernel. Equal pure values are hash-consed, constants are folded, and index expressions
// are simplified with the ranges of loops and extents. A generator can therefore write index
// arithmetic naively.
class KernelBuilder {
 public:
  explicit KernelBuilder(std::string name, Dialect dialect = Dialect::kCpu);
  Dialect dialect() const { return dialect_; }

  // ---- arguments, local arrays, launch extents
  ArrayId Argument(Array array);
  ArrayId Local(std::string name, ScalarType type, Space space, int64_t size,
                int64_t alignment = Array{}.alignment);
  Scalar NewLaunchExtent(LaunchExtent extent);

  // ---- values
  Scalar Constant(ScalarType type, double value);
  Scalar ConstantBits(ScalarType type, Bits bits);
  Scalar Index(int64_t value);
  Scalar Make(Prim prim, std::initializer_list<Scalar> operands);
  Scalar Make(Prim prim, ScalarType type, std::initializer_list<Scalar> operands, Bits bits = 0);
  Scalar Load(ArrayId array, Scalar index);
  // Interns a pure node as is. For the simplifier; all other callers use Make, which simplifies.
  Scalar Intern(const ScalarNode& node);

  // ---- statements, appended to the open statement block
  template <typename Body>
  void For(std::string name, LoopRole role, Scalar extent, Body&& body) {
    Scalar variable = OpenFor(std::move(name), role, extent);
    body(variable);
    Close();
  }
  // A constant condition emits no `if`, only the statements of the branch that runs.
  template <typename Body>
  void If(Scalar condition, Body&& body, bool uniform = false) {
    if (kernel_.IsConstant(condition.id())) {
      if (kernel_.node(condition.id()).bits != 0) body();
      return;
    }
    OpenIf(condition, uniform);
    body();
    Close();
  }
  template <typename Then, typename Else>
  void If(Scalar condition, Then&& then, Else&& otherwise, bool uniform) {
    if (kernel_.IsConstant(condition.id())) {
      if (kernel_.node(condition.id()).bits != 0) {
        then();
      } else {
        otherwise();
      }
      return;
    }
    OpenIf(condition, uniform);
    then();
    Otherwise();
    otherwise();
    Close();
  }
  // `head` emits the reads that the condition depends on and returns the condition.
  template <typename Head, typename Body>
  void While(Head&& head, Body&& body, bool uniform = false) {
    OpenWhile();
    CloseHead(head(), uniform);
    body();
    Close();
  }
  void Store(ArrayId array, Scalar index, Scalar value);
  Scalar Read(ArrayId array, Scalar index);
  Scalar Shuffle(Scalar value, Scalar lane_xor);
  // A mask of the lanes of the warp whose `bits` lowest bits of `value` are equal to this lane's.
  Scalar Match(Scalar value, int bits);
  void Barrier(BarrierScope scope);
  // Multiplies into `to`, starting at index `at`.
  void Multiply(ArrayId to, Scalar at, const MatrixMultiply& product);

  // ---- asynchronous work (AsyncOp)
  // `count` mbarriers whose phases take `arrivals` arrivals.
  ArrayId Mbarriers(std::string name, int64_t count, int64_t arrivals);
  void Arrive(ArrayId mbarriers, Scalar index, int64_t expected_bytes = 0);
  void Wait(ArrayId mbarriers, Scalar index, Scalar parity);
  void Copy(ArrayId mbarriers, Scalar index, TileCopy copy);
  void CopyBack(TileCopy copy);
  void WaitCopies(int64_t pending);
  void WaitMultiplies(ArrayId registers, int64_t pending);
  void AsyncFence();
  void LimitRegisters(int64_t registers);

  const Kernel& kernel() const { return kernel_; }
  Range RangeOf(Scalar index);
  Kernel Finish();

 private:
  // The hash-consing table. Almost every node a generator makes is looked up here, so the table is
  // one flat array of node numbers with open addressing.
  class Interned {
   public:
    // The number of an equal node. If there is none, returns nodes.size(), which the caller must
    // append.
    uint32_t FindOrAdd(const ScalarNode& node, const std::vector<ScalarNode>& nodes);

   private:
    void Grow(const std::vector<ScalarNode>& nodes);
    static constexpr uint32_t kFree = UINT32_MAX;
    std::vector<uint32_t> slots_;  // the size is a power of two
    size_t used_ = 0;
  };
  Scalar OpenFor(std::string name, LoopRole role, Scalar extent);
  void OpenIf(Scalar condition, bool uniform);
  void Otherwise();
  void OpenWhile();
  void CloseHead(Scalar condition, bool uniform);
  void Close();
  Stmt& Append(StmtKind kind);
  Stmt& AppendAsync(AsyncOp op);
  StmtList& OpenBlock();
  Scalar NewNode(const ScalarNode& node);  // not interned

  Kernel kernel_;
  Dialect dialect_;
  Interned interned_;
  RangeTable ranges_;
  // Statements whose blocks are open, outermost first, each with the block that is being filled.
  // Close moves a finished statement into the enclosing block.
  struct Open {
    Stmt stmt;
    enum class Part : uint8_t { kHead, kBody, kOtherwise } part;
  };
  std::vector<Open> open_;
};

}  // namespace tokamak

#include "lower/math_calls.h"

#include <cmath>

#include "support/check.h"

namespace tokamak {
namespace {

// Floating-point operations per microsecond of one thread. Chosen: order of magnitude, for the
// minimum parallel work.
constexpr double kOpsAMicro = 2000;

std::string TextOf(const Shape& shape) {
  std::string text(HloName(shape.type()));
  for (size_t d = 0; d < shape.dims().size(); ++d)
    text += (d == 0 ? " " : " x ") + std::to_string(shape.dims()[d]);
  return text;
}

class MathCall : public LibraryCall {
 public:
  MathCall(const Instr& instr, double ops)
      : text_(std::string(instr.info().name) + " " + TextOf(instr.operand(0)->shape())),
        micros_(ops / kOpsAMicro) {}
  int64_t ScratchBytes() const override { return 0; }
  std::string Text() const override { return text_; }
  double Micros() const override { return micros_; }

 private:
  std::string text_;
  double micros_;
};

FourierKind KindOf(FftType type) {
  switch (type) {
    case FftType::kFft:
      return FourierKind::kForward;
    case FftType::kIfft:
      return FourierKind::kInverse;
    case FftType::kRfft:
      return FourierKind::kFromReal;
    case FftType::kIrfft:
      return FourierKind::kToReal;
  }
  return FourierKind::kForward;
}

double FftOps(const Instr& instr) {
  auto count = static_cast<double>(
      std::max(instr.shape().ElementCount(), instr.operand(0)->shape().ElementCount()));
  double points = 1;
  for (int64_t length : instr.attrs<FftAttrs>().length) points *= static_cast<double>(length);
  // Operations per element and radix-2 stage: a complex butterfly has 10 for two elements, by the
  // definition of the algorithm.
  constexpr double kOpsPerStage = 5;
  return kOpsPerStage * count * (1 + std::log2(points));
}

class FourierCall final : public MathCall {
 public:
  explicit FourierCall(const Instr& instr)
      : MathCall(instr, FftOps(instr)), fourier_(MakeFourier(FourierShapeOf(instr))) {}
  void Run(std::span<void* const> arguments, const std::atomic<bool>*) const override {
    fourier_->Run(arguments[0], arguments[1]);
  }

 private:
  std::unique_ptr<Fourier> fourier_;
};

double Products(const Instr& instr) {
  auto n = static_cast<double>(instr.operand(0)->shape().dims().back());
  return static_cast<double>(instr.shape().ElementCount()) * n;
}

class CholeskyStep final : public MathCall {
 public:
  explicit CholeskyStep(const Instr& instr)
      : MathCall(instr, Products(instr)), call_(CholeskyCallOf(instr)) {}
  void Run(std::span<void* const> arguments, const std::atomic<bool>*) const override {
    RunCholesky(call_, arguments[0], arguments[1]);
  }

 private:
  CholeskyCall call_;
};

class TriangularStep final : public MathCall {
 public:
  explicit TriangularStep(const Instr& instr)
      : MathCall(instr, Products(instr)), call_(TriangularCallOf(instr)) {}
  void Run(std::span<void* const> arguments, const std::atomic<bool>*) const override {
    RunTriangular(call_, arguments[0], arguments[1], arguments[2]);
  }

 private:
  TriangularCall call_;
};

}  // namespace

MatrixElement MatrixElementOf(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return MatrixElement::kF32;
    case ElementType::kF64:
      return MatrixElement::kF64;
    case ElementType::kC64:
      return MatrixElement::kC64;
    default:
      return MatrixElement::kC128;
  }
}

FourierShape FourierShapeOf(const Instr& fft) {
  const FftAttrs& attrs = fft.attrs<FftAttrs>();
  ElementType type = fft.shape().type();
  const Dims &in = fft.operand(0)->shape().dims(), &out = fft.shape().dims();
  return {.kind = KindOf(attrs.type),
          .is_double = type == ElementType::kF64 || type == ElementType::kC128,
          .input = {in.begin(), in.end()},
          .output = {out.begin(), out.end()},
          .transformed = attrs.length.size()};
}

CholeskyCall CholeskyCallOf(const Instr& cholesky) {
  CholeskyCall call;
  call.element = MatrixElementOf(cholesky.shape().type());
  call.n = cholesky.shape().dims().back();
  call.batch = cholesky.shape().ElementCount() / (call.n * call.n);
  call.lower = cholesky.attrs<CholeskyAttrs>().lower;
  return call;
}

TriangularCall TriangularCallOf(const Instr& solve) {
  TriangularCall call;
  const TriangularSolveAttrs& attrs = solve.attrs<TriangularSolveAttrs>();
  const Dims& dims = solve.shape().dims();
  call.element = MatrixElementOf(solve.shape().type());
  call.n = solve.operand(0)->shape().dims().back();
  call.rows = dims[dims.size() - 2];
  call.columns = dims.back();
  call.batch = solve.shape().ElementCount() / (call.rows * call.columns);
  call.left = attrs.left_side;
  call.lower = attrs.lower;
  call.unit = attrs.unit_diagonal;
  call.transposed = attrs.transpose_a != Transpose::kNone;
  call.conjugated = attrs.transpose_a == Transpose::kAdjoint;
  return call;
}

std::shared_ptr<const LibraryCall> MathCallOf(const Instr& instr) {
  if (instr.op() == Op::kFft) return std::make_shared<FourierCall>(instr);
  if (instr.op() == Op::kCholesky) return std::make_shared<CholeskyStep>(instr);
  TOK_CHECK(instr.op() == Op::kTriangularSolve, "a function of the runtime");
  return std::make_shared<TriangularStep>(instr);
}

}  // namespace tokamak

// Random kernels compared with the simulator: nested loops, ifs and whiles over lanes, per-thread
// and per-lane registers, loads and stores of every kind, every primitive with defined results.

#include <gtest/gtest.h>

#include "backend/cpu/kernel_run.h"
#include "kernel/builder.h"
#include "support/splitmix.h"

namespace tokamak::cpu {
namespace {

constexpr ScalarType kTypes[] = {ScalarType::kF32, ScalarType::kF64,  ScalarType::kS32,
                                 ScalarType::kU32, ScalarType::kS64,  ScalarType::kU8,
                                 ScalarType::kS16, ScalarType::kPred, ScalarType::kU64};

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed), b_("random" + std::to_string(seed)) {}

  Kernel Draw(std::vector<Bytes>& arguments) {
    lanes_ = Pick<int64_t>({1, 2, 3, 4, 8, 16, 32});
    blocks_ = 1 + Below(3);
    steps_ = 1 + Below(3);
    count_ = blocks_ * steps_ * lanes_;
    for (int64_t i = 0, n = 2 + Below(3); i < n; ++i) AddInput(arguments);
    for (int64_t i = 0, n = 1 + Below(3); i < n; ++i) AddOutput(arguments);
    for (int64_t i = 0, n = 1 + Below(3); i < n; ++i) AddRegisters();
    b_.For("g", LoopRole::kGrid, b_.Index(blocks_), [&](Scalar g) {
      b_.For("s", LoopRole::kSerial, b_.Index(steps_), [&](Scalar s) {
        b_.For("l", LoopRole::kVector, b_.Index(lanes_), [&](Scalar l) {
          at_ = (g * b_.Index(steps_) + s) * b_.Index(lanes_) + l;
          lane_ = l;
          uniform_ = s;
          LaneBody();
        });
      });
    });
    return b_.Finish();
  }

 private:
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_.Next() % static_cast<uint64_t>(n));
  }
  bool Chance(int64_t of) { return Below(of) == 0; }
  template <typename T>
  T Pick(std::initializer_list<T> from) {
    return from.begin()[Below(static_cast<int64_t>(from.size()))];
  }
  ScalarType AnyType() { return kTypes[Below(std::size(kTypes))]; }

  void AddInput(std::vector<Bytes>& arguments) {
    ScalarType type = AnyType();
    int64_t size = count_ * 2 + Below(40);
    arguments.push_back(::tokamak::cpu::Draw(type, size, random_, Chance(2)));
    inputs_.push_back(b_.Argument({.name = "x" + std::to_string(inputs_.size()),
                                   .type = type,
                                   .access = Access::kRead,
                                   .size = size,
                                   .alignment = 8}));
  }
  // Each output has its own mapping from iterations to elements.
  void AddOutput(std::vector<Bytes>& arguments) {
    ScalarType type = AnyType();
    int64_t size = count_ * 3;
    arguments.push_back(::tokamak::cpu::Draw(type, size, random_));
    outputs_.push_back({b_.Argument({.name = "y" + std::to_string(outputs_.size()),
                                     .type = type,
                                     .access = Access::kReadWrite,
                                     .size = size,
                                     .alignment = 8}),
                        Below(5)});
  }
  struct Output {
    ArrayId array;
    int64_t way;
  };
  Scalar IndexIn(const Output& output) {
    switch (output.way) {
      case 0:
        return at_;
      case 1:
        return b_.Index(count_ - 1) - at_;
      case 2:
        return at_ * b_.Index(2);
      case 3:
        return at_ * b_.Index(3) + b_.Index(1);
      default:
        return at_ + b_.Index(count_);
    }
  }
  void AddRegisters() {
    bool of_lanes = Chance(2);
    int64_t size = of_lanes ? 1 + Below(3) : lanes_ * (1 + Below(2));
    registers_.push_back(
        {b_.Local("r" + std::to_string(registers_.size()), AnyType(), Space::kRegisters, size),
         of_lanes, size});
  }
  struct Registers {
    ArrayId array;
    bool of_lanes;
    int64_t size;
  };
  // An element that this lane may use.
  Scalar IndexIn(const Registers& r) {
    if (r.of_lanes) return b_.Index(Below(r.size));
    return lane_ + b_.Index(Below(r.size / lanes_) * lanes_);
  }

  // ---- values: `values_` holds those that are available here
  Scalar Any(ScalarType type) {
    if (!values_.empty() && !Chance(8)) {
      Scalar value = values_[static_cast<size_t>(Below(static_cast<int64_t>(values_.size())))];
      return As(value, type);
    }
    return b_.Constant(type, static_cast<double>(Below(200) - 100));
  }
  Scalar As(Scalar x, ScalarType type) {
    if (x.type() == type) return x;
    if (type == ScalarType::kPred) return x != x.Like(0);
    if (IsFloat(x.type()) && !IsFloat(type)) {  // in range, no NaN
      double low = IsSigned(type) ? -100 : 0;
      return LesserOf(GreaterOf(x, x.Like(low)), x.Like(100)).As(type);
    }
    return x.As(type);
  }
  Scalar Within(int64_t size) {
    return As(Any(ScalarType::kU32), ScalarType::kIndex) % b_.Index(size);
  }
  Scalar LoadOne() {
    ArrayId array = inputs_[static_cast<size_t>(Below(static_cast<int64_t>(inputs_.size())))];
    int64_t size = b_.kernel().array(array).size;
    switch (Below(6)) {
      case 0:
        return b_.Load(array, at_ + b_.Index(Below(size - count_ + 1)));
      case 1:
        return b_.Load(array, at_ * b_.Index(2));
      case 2:
        return b_.Load(array, b_.Index(size - 1) - at_);
      case 3:
        return b_.Load(array, uniform_);
      case 4:
        return b_.Load(array, at_ / b_.Index(1 + Below(20)));
      default:
        return b_.Load(array, Within(size));
    }
  }
  Scalar Arithmetic() {
    ScalarType type = AnyType();
    Scalar x = Any(type), y = Any(type);
    if (type == ScalarType::kPred)
      return b_.Make(Pick({Prim::kAnd, Prim::kOr, Prim::kXor}), {x, y});
    if (IsFloat(type)) {
      switch (Below(4)) {
        case 0:
          return Fma(x, y, Any(type));
        case 1:
          return b_.Make(Pick({Prim::kSqrt, Prim::kAbs, Prim::kNeg, Prim::kFloor, Prim::kCeil,
                               Prim::kTrunc, Prim::kRoundEven}),
                         {x});
        default:
          return b_.Make(Pick({Prim::kAdd, Prim::kSub, Prim::kMul, Prim::kDiv, Prim::kMin,
                               Prim::kMax, Prim::kCopySign}),
                         {x, y});
      }
    }
    Scalar some = (y & y.Like(7)) | y.Like(1);  // nonzero for any y
    switch (Below(5)) {
      case 0:
        return b_.Make(Pick({Prim::kDiv, Prim::kRem}), {x, some});
      case 1:
        return b_.Make(Pick({Prim::kShl, Prim::kShr}), {x, some});
      case 2:
        return b_.Make(Pick({Prim::kPopCount, Prim::kLeadingZeros}), {x});
      default:
        return b_.Make(Pick({Prim::kAdd, Prim::kSub, Prim::kMul, Prim::kMin, Prim::kMax, Prim::kAnd,
                             Prim::kOr, Prim::kXor, Prim::kMulHigh}),
                       {x, y});
    }
  }
  Scalar Compare() {
    ScalarType type = kTypes[Below(7)];
    return b_.Make(Pick({Prim::kLt, Prim::kLe, Prim::kEq, Prim::kNe}), {Any(type), Any(type)});
  }
  void AddValue() {
    switch (Below(6)) {
      case 0:
        values_.push_back(LoadOne());
        break;
      case 1:
        values_.push_back(Compare());
        break;
      case 2: {
        ScalarType type = AnyType();
        values_.push_back(Choose(Any(ScalarType::kPred), Any(type), Any(type)));
        break;
      }
      case 3:
        values_.push_back(As(Chance(2) ? at_ : uniform_, AnyType()));
        break;
      default:
        values_.push_back(Arithmetic());
    }
  }

  // ---- statements
  void LaneBody() {
    values_.clear();
    for (const Registers& r : registers_) {
      ScalarType type = b_.kernel().array(r.array).type;
      for (int64_t i = 0; i < r.size; i += r.of_lanes ? 1 : lanes_)
        b_.Store(r.array, r.of_lanes ? b_.Index(i) : lane_ + b_.Index(i), Any(type));
    }
    Statements(3);
    for (const Registers& r : registers_) values_.push_back(b_.Read(r.array, IndexIn(r)));
    for (const Output& output : outputs_) StoreTo(output);
  }
  void StoreTo(const Output& output) {
    b_.Store(output.array, IndexIn(output), Any(b_.kernel().array(output.array).type));
  }
  void Statements(int depth) {
    size_t outside = values_.size();
    for (int64_t i = 0, n = 2 + Below(4); i < n; ++i) {
      for (int64_t k = 0, m = Below(4); k < m; ++k) AddValue();
      Statement(depth);
    }
    values_.resize(outside);  // values read in a block are not available after it
  }
  void Statement(int depth) {
    int64_t kind = Below(depth > 0 ? 9 : 5);
    const Registers& r =
        registers_[static_cast<size_t>(Below(static_cast<int64_t>(registers_.size())))];
    const Output& o = outputs_[static_cast<size_t>(Below(static_cast<int64_t>(outputs_.size())))];
    if (kind <= 1) return b_.Store(r.array, IndexIn(r), Any(b_.kernel().array(r.array).type));
    if (kind == 2) return values_.push_back(b_.Read(r.array, IndexIn(r)));
    if (kind == 3) return StoreTo(o);
    if (kind == 4) return values_.push_back(b_.Read(o.array, IndexIn(o)));
    if (kind == 5) {
      return b_.For("k", Chance(2) ? LoopRole::kSerial : LoopRole::kUnrolled,
                    b_.Index(Below(3) + 1), [&](Scalar k) {
                      values_.push_back(As(k, ScalarType::kS32));
                      Statements(depth - 1);
                      values_.pop_back();
                    });
    }
    if (kind == 6) return Loop(depth);
    Scalar condition = Chance(3) ? at_ < b_.Index(Below(count_ + 1)) : Any(ScalarType::kPred);
    if (Chance(2)) return b_.If(condition, [&] { Statements(depth - 1); });
    b_.If(
        condition, [&] { Statements(depth - 1); }, [&] { Statements(depth - 1); }, false);
  }
  // A while that terminates: it has its own down-counter.
  void Loop(int depth) {
    ArrayId counter =
        b_.Local("c" + std::to_string(counters_++), ScalarType::kS32, Space::kRegisters, 1);
    Scalar first = b_.Index(0);
    b_.Store(counter, first, Any(ScalarType::kS32) & b_.Constant(ScalarType::kS32, 3));
    b_.While([&] { return b_.Read(counter, first) > 0.0; },
             [&] {
               b_.Store(counter, first, b_.Read(counter, first) - 1.0);
               Statements(depth - 1);
             });
  }

  SplitMix64 random_;
  KernelBuilder b_;
  int64_t lanes_ = 1, blocks_ = 1, steps_ = 1, count_ = 1, counters_ = 0;
  std::vector<ArrayId> inputs_;
  std::vector<Output> outputs_;
  std::vector<Registers> registers_;
  Scalar at_, lane_, uniform_;
  std::vector<Scalar> values_;
};

void Check(uint64_t begin, uint64_t end) {
  for (uint64_t seed = begin; seed < end; ++seed) {
    std::vector<Bytes> arguments;
    Kernel kernel = Drawer(seed).Draw(arguments);
    Difference difference = Compare(kernel, arguments);
    ASSERT_EQ(difference.text, "") << "seed " << seed;
  }
}

TEST(RandomKernels, DoWhatTheSimulatorDoes) {
  Check(0, 60);
}

// --gtest_also_run_disabled_tests --gtest_filter='*Many*'
TEST(RandomKernels, DISABLED_ManyDoWhatTheSimulatorDoes) {
  Check(60, 10000);
}

}  // namespace
}  // namespace tokamak::cpu

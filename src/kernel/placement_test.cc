#include "kernel/placement.h"

#include <map>

#include <gtest/gtest.h>

#include "kernel/builder.h"
#include "kernel/hash.h"
#include "kernel/parse.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

constexpr ScalarType kS32 = ScalarType::kS32;
constexpr int64_t kSize = 12;

// A reference interpreter of one thread that evaluates every value at each use.
class Reference {
 public:
  Reference(const Kernel& kernel, std::vector<std::vector<int32_t>> arrays, int64_t n)
      : kernel_(kernel), arrays_(std::move(arrays)), n_(n) {}

  void Run() { RunBlock(kernel_.body); }
  const std::vector<std::vector<int32_t>>& arrays() const { return arrays_; }

 private:
  Bits Value(ValueId id) {
    const ScalarNode& node = kernel_.node(id);
    switch (node.prim) {
      case Prim::kConst:
        return node.bits;
      case Prim::kLoop:
        return static_cast<Bits>(loops_.at(node.loop()));
      case Prim::kExtent:
        return static_cast<Bits>(n_);
      case Prim::kRead:
        return reads_.at(id);
      case Prim::kLoad:
        return BitsOfInt(kS32, arrays_[node.bits].at(Value(node.operands[0])));
      default:
        break;
    }
    Bits operands[3] = {};
    for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
      operands[i] = Value(node.operands[i]);
    return EvaluatePrim(node.prim, node.type, kernel_.node(node.operands[0]).type, operands)
        .value();
  }

  void RunBlock(const StmtList& block) {
    for (const Stmt& stmt : block) switch (stmt.kind) {
        case StmtKind::kFor: {
          auto extent = static_cast<int64_t>(Value(kernel_.loop(stmt.loop).extent));
          for (int64_t i = 0; i < extent; ++i) {
            loops_[stmt.loop] = i;
            RunBlock(stmt.body);
          }
          break;
        }
        case StmtKind::kIf:
          RunBlock(Value(stmt.condition) != 0 ? stmt.body : stmt.else_body);
          break;
        case StmtKind::kWhile:
          for (RunBlock(stmt.condition_stmts); Value(stmt.condition) != 0;
               RunBlock(stmt.condition_stmts))
            RunBlock(stmt.body);
          break;
        case StmtKind::kStore:
          arrays_[static_cast<size_t>(stmt.array)].at(Value(stmt.index)) =
              static_cast<int32_t>(Value(stmt.value));
          break;
        case StmtKind::kRead: {
          const ScalarNode& node = kernel_.node(stmt.value);
          reads_[stmt.value] = BitsOfInt(kS32, arrays_[node.bits].at(Value(node.operands[0])));
          break;
        }
        default:
          break;
      }
  }

  const Kernel& kernel_;
  std::vector<std::vector<int32_t>> arrays_;
  int64_t n_;
  std::map<LoopId, int64_t> loops_;
  std::map<ValueId, Bits> reads_;
};

// Random statements. Loads and divisions that may fault are used under conditions that prevent the
// fault, at a random number of points.
class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed) : draw_(seed), b_("random") {}

  Kernel Make() {
    x_ = b_.Argument({.name = "x", .type = kS32, .access = Access::kRead, .size = kSize});
    y_ = b_.Argument({.name = "y", .type = kS32, .access = Access::kReadWrite, .size = kSize});
    n_ = b_.NewLaunchExtent({.name = "n", .maximum = 3});
    numbers_.push_back(b_.Constant(kS32, 3));
    indices_.push_back(n_);
    Statements(4, 3);
    return b_.Finish();
  }

 private:
  uint64_t Draw(uint64_t below) { return draw_.Next() % below; }
  Scalar Any(const std::vector<Scalar>& of) { return of[Draw(of.size())]; }

  Scalar Index(int depth) {
    if (depth == 0 || Draw(4) == 0)
      return Draw(3) == 0 ? b_.Index(static_cast<int64_t>(Draw(15)) - 2) : Any(indices_);
    Scalar x = Index(depth - 1), y = Index(depth - 1);
    return Draw(2) == 0 ? x + y : x * static_cast<double>(Draw(4)) - y;
  }
  Scalar InBounds() { return GreaterOf(LesserOf(Index(2), b_.Index(kSize - 1)), b_.Index(0)); }

  // A value that cannot fault.
  Scalar Number(int depth) {
    if (depth == 0) return Any(numbers_);
    switch (Draw(5)) {
      case 0:
        return Number(depth - 1) + Number(depth - 1);
      case 1:
        return Number(depth - 1) * 3.0;
      case 2:
        return b_.Load(x_, InBounds());
      case 3:
        return Index(1).As(kS32);
      default:
        return Any(numbers_);
    }
  }
  Scalar Condition() { return Draw(2) == 0 ? Number(1) < Number(1) : Index(2) < Index(1); }

  // A value that may fault, a condition that prevents it, and values computed from it.
  void Guarded(int count, int depth) {
    Scalar index = Index(2), good, value;
    if (Draw(3) == 0) {
      Scalar by = Number(1);
      good = by != 0.0;
      value = b_.Constant(kS32, 1000) / by;
    } else {
      good = (b_.Index(0) <= index) & (index < double(kSize));
      value = b_.Load(x_, index);
    }
    value = value + Number(1);
    for (int i = 0; i < count; ++i) {
      b_.If(good, [&] {
        size_t numbers = numbers_.size();
        numbers_.push_back(value);
        numbers_.push_back(value);
        Statements(2, depth);
        numbers_.resize(numbers);
      });
    }
  }

  void Statements(int count, int depth) {
    size_t numbers = numbers_.size(), indices = indices_.size();
    for (int i = 0; i < count; ++i) Statement(depth);
    numbers_.erase(numbers_.begin() + static_cast<int64_t>(numbers), numbers_.end());
    indices_.erase(indices_.begin() + static_cast<int64_t>(indices), indices_.end());
  }

  void Statement(int depth) {
    switch (Draw(depth == 0 ? 3 : 7)) {
      case 0:
        numbers_.push_back(b_.Read(y_, InBounds()));
        return;
      case 1:
      case 2:
        return b_.Store(y_, InBounds(), Number(2));
      case 3:
        return b_.If(Condition(), [&] { Statements(2, depth - 1); });
      case 4:
        return b_.If(
            Condition(), [&] { Statements(2, depth - 1); }, [&] { Statements(2, depth - 1); },
            false);
      case 5: {
        Scalar extent = Draw(2) == 0 ? n_ : b_.Index(static_cast<int64_t>(Draw(4)));
        return b_.For("i", LoopRole::kSerial, extent, [&](Scalar i) {
          indices_.push_back(i);
          Statements(2, depth - 1);
          indices_.pop_back();
        });
      }
      default:
        return Guarded(1 + static_cast<int>(Draw(3)), depth - 1);
    }
  }

  SplitMix64 draw_;
  KernelBuilder b_;
  ArrayId x_{}, y_{};
  Scalar n_;
  std::vector<Scalar> numbers_, indices_;
};

TEST(Placement, RandomKernelsComputeWhatTheirStatementsSay) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Kernel kernel = RandomKernel(seed).Make();
    Status sound = VerifyKernel(kernel);
    ASSERT_TRUE(sound.ok()) << "seed " << seed << ": " << sound.error().message;
    std::string text = WriteKernel(kernel);
    Result<ParsedKernel> parsed = ParseKernel(text, "printed");
    ASSERT_TRUE(parsed.ok()) << Render(parsed.error(), text);
    ASSERT_EQ(WriteKernel(parsed.value().kernel), text) << "seed " << seed;
    ASSERT_EQ(HashOf(parsed.value().kernel), HashOf(kernel)) << "seed " << seed;
    for (int64_t n : {0, 1, 3}) {
      std::vector<std::vector<int32_t>> arrays(2, std::vector<int32_t>(kSize));
      SplitMix64 draw(seed + 1);
      for (auto& array : arrays)
        for (int32_t& element : array) element = static_cast<int32_t>(draw.Next() % 9) - 4;
      Reference reference(kernel, arrays, n);
      reference.Run();
      SimArgument arguments[] = {{arrays[0].data(), kSize}, {arrays[1].data(), kSize}};
      Result<SimReport> report = SimulateKernel(kernel, arguments, {&n, 1});
      ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << Render(report.error(), text) << text;
      ASSERT_EQ(arrays, reference.arrays()) << "seed " << seed << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace tokamak

#include "kernel/builder.h"

#include "kernel/simplify.h"
#include "support/check.h"
#include "support/hash.h"

namespace tokamak {
namespace {

Scalar Binary(Prim prim, Scalar x, Scalar y) {
  return x.builder().Make(prim, {x, y});
}

Scalar Unary(Prim prim, Scalar x) {
  return x.builder().Make(prim, {x});
}

ScalarType ResultType(Prim prim, ScalarType operand) {
  switch (InfoOf(prim).result) {
    case PrimResult::kPred:
      return ScalarType::kPred;
    case PrimResult::kSame:
    case PrimResult::kLast:
      return operand;
    case PrimResult::kFree:
      break;
  }
  TOK_CHECK(false, "the type of a kernel's value is not stated");
  return operand;
}

}  // namespace

ScalarType Scalar::type() const {
  return builder_->kernel().node(id_).type;
}
Scalar Scalar::Like(double value) const {
  return builder_->Constant(type(), value);
}
Scalar Scalar::As(ScalarType to) const {
  if (to == type()) return *this;
  // Narrowing a value that was widened from the same type gives the original.
  const ScalarNode& node = builder_->kernel().node(id_);
  bool widened = node.prim == Prim::kConvert && node.type == ScalarType::kF32 &&
                 (to == ScalarType::kBF16 || to == ScalarType::kF16);
  if (widened && builder_->kernel().node(node.operands[0]).type == to)
    return {builder_, node.operands[0]};
  return builder_->Make(Prim::kConvert, to, {*this});
}
Scalar Scalar::BitsAs(ScalarType to) const {
  return to == type() ? *this : builder_->Make(Prim::kBitcast, to, {*this});
}

Scalar operator+(Scalar x, Scalar y) {
  return Binary(Prim::kAdd, x, y);
}
Scalar operator-(Scalar x, Scalar y) {
  return Binary(Prim::kSub, x, y);
}
Scalar operator*(Scalar x, Scalar y) {
  return Binary(Prim::kMul, x, y);
}
Scalar operator/(Scalar x, Scalar y) {
  return Binary(Prim::kDiv, x, y);
}
Scalar operator%(Scalar x, Scalar y) {
  return Binary(Prim::kRem, x, y);
}
Scalar operator-(Scalar x) {
  return IsFloat(x.type()) ? Unary(Prim::kNeg, x) : x.Like(0) - x;
}
Scalar operator&(Scalar x, Scalar y) {
  return Binary(Prim::kAnd, x, y);
}
Scalar operator|(Scalar x, Scalar y) {
  return Binary(Prim::kOr, x, y);
}
Scalar operator^(Scalar x, Scalar y) {
  return Binary(Prim::kXor, x, y);
}
Scalar operator<<(Scalar x, Scalar y) {
  return Binary(Prim::kShl, x, y);
}
Scalar operator>>(Scalar x, Scalar y) {
  return Binary(Prim::kShr, x, y);
}
Scalar operator<(Scalar x, Scalar y) {
  return Binary(Prim::kLt, x, y);
}
Scalar operator<=(Scalar x, Scalar y) {
  return Binary(Prim::kLe, x, y);
}
Scalar operator>(Scalar x, Scalar y) {
  return y < x;
}
Scalar operator>=(Scalar x, Scalar y) {
  return y <= x;
}
Scalar operator==(Scalar x, Scalar y) {
  return Binary(Prim::kEq, x, y);
}
Scalar operator!=(Scalar x, Scalar y) {
  return Binary(Prim::kNe, x, y);
}
Scalar operator!(Scalar x) {
  return x ^ x.Like(1);
}
Scalar operator+(Scalar x, double y) {
  return x + x.Like(y);
}
Scalar operator-(Scalar x, double y) {
  return x - x.Like(y);
}
Scalar operator*(Scalar x, double y) {
  return x * x.Like(y);
}
Scalar operator/(Scalar x, double y) {
  return x / x.Like(y);
}
Scalar operator-(double x, Scalar y) {
  return y.Like(x) - y;
}
Scalar operator/(double x, Scalar y) {
  return y.Like(x) / y;
}
Scalar operator<(Scalar x, double y) {
  return x < x.Like(y);
}
Scalar operator<=(Scalar x, double y) {
  return x <= x.Like(y);
}
Scalar operator>(Scalar x, double y) {
  return x.Like(y) < x;
}
Scalar operator>=(Scalar x, double y) {
  return x.Like(y) <= x;
}
Scalar operator==(Scalar x, double y) {
  return x == x.Like(y);
}
Scalar operator!=(Scalar x, double y) {
  return x != x.Like(y);
}

Scalar Choose(Scalar condition, Scalar yes, Scalar no) {
  return yes.builder().Make(Prim::kSelect, {condition, yes, no});
}
Scalar LesserOf(Scalar x, Scalar y) {
  return Binary(Prim::kMin, x, y);
}
Scalar GreaterOf(Scalar x, Scalar y) {
  return Binary(Prim::kMax, x, y);
}
Scalar Fma(Scalar x, Scalar y, Scalar z) {
  return x.builder().Make(Prim::kFma, {x, y, z});
}
Scalar SqrtOf(Scalar x) {
  return Unary(Prim::kSqrt, x);
}
Scalar AbsOf(Scalar x) {
  return Unary(Prim::kAbs, x);
}
Scalar FloorOf(Scalar x) {
  return Unary(Prim::kFloor, x);
}
Scalar CeilOf(Scalar x) {
  return Unary(Prim::kCeil, x);
}
Scalar TruncOf(Scalar x) {
  return Unary(Prim::kTrunc, x);
}
Scalar RoundEvenOf(Scalar x) {
  return Unary(Prim::kRoundEven, x);
}
Scalar CopySign(Scalar x, Scalar y) {
  return Binary(Prim::kCopySign, x, y);
}

size_t Kernel::ArgumentCount() const {
  size_t count = 0;
  while (count < arrays.size() && arrays[count].space == Space::kArgument) ++count;
  return count;
}

namespace {

size_t HashOf(const ScalarNode& node) {
  auto word = [](auto high, auto low) {
    return static_cast<uint64_t>(high) << 32 | static_cast<uint32_t>(low);
  };
  Hasher hasher;
  hasher.Add(word(node.prim, node.operands[0]) ^ static_cast<uint64_t>(node.type) << 48);
  hasher.Add(word(node.operands[1], node.operands[2]));
  hasher.Add(node.bits);
  return static_cast<size_t>(hasher.digest());
}

}  // namespace

uint32_t KernelBuilder::Interned::FindOrAdd(const ScalarNode& node,
                                            const std::vector<ScalarNode>& nodes) {
  if (2 * used_ >= slots_.size()) Grow(nodes);
  size_t last = slots_.size() - 1, at = HashOf(node) & last;
  for (; slots_[at] != kFree; at = (at + 1) & last)
    if (nodes[slots_[at]] == node) return slots_[at];
  ++used_;
  return slots_[at] = static_cast<uint32_t>(nodes.size());
}

void KernelBuilder::Interned::Grow(const std::vector<ScalarNode>& nodes) {
  // Initial table size. Chosen.
  constexpr size_t kFirst = 256;
  std::vector<uint32_t> before(std::max(kFirst, 2 * slots_.size()), kFree);
  before.swap(slots_);
  size_t last = slots_.size() - 1;
  for (uint32_t number : before) {
    if (number == kFree) continue;
    size_t at = HashOf(nodes[number]) & last;
    while (slots_[at] != kFree) at = (at + 1) & last;
    slots_[at] = number;
  }
}

KernelBuilder::KernelBuilder(std::string name, Dialect dialect) : dialect_(dialect) {
  kernel_.name = std::move(name);
}

ArrayId KernelBuilder::Argument(Array array) {
  TOK_CHECK(kernel_.ArgumentCount() == kernel_.arrays.size(), "arguments come before other arrays");
  array.space = Space::kArgument;
  kernel_.arrays.push_back(std::move(array));
  return ArrayId{static_cast<uint32_t>(kernel_.arrays.size() - 1)};
}

ArrayId KernelBuilder::Local(std::string name, ScalarType type, Space space, int64_t size,
                             int64_t alignment) {
  kernel_.arrays.push_back({.name = std::move(name),
                            .type = type,
                            .space = space,
                            .size = size,
                            .alignment = alignment});
  return ArrayId{static_cast<uint32_t>(kernel_.arrays.size() - 1)};
}

Scalar KernelBuilder::NewLaunchExtent(LaunchExtent extent) {
  kernel_.extents.push_back(std::move(extent));
  return Intern({.prim = Prim::kExtent,
                 .type = ScalarType::kIndex,
                 .bits = static_cast<Bits>(kernel_.extents.size() - 1)});
}

Scalar KernelBuilder::Constant(ScalarType type, double value) {
  return ConstantBits(type, BitsOfDouble(type, value));
}

Scalar KernelBuilder::ConstantBits(ScalarType type, Bits bits) {
  bits &= ~Bits{0} >> (64 - InfoOf(type).bits);
  return Intern({.prim = Prim::kConst, .type = type, .bits = bits});
}

Scalar KernelBuilder::Index(int64_t value) {
  return ConstantBits(ScalarType::kIndex, BitsOfInt(ScalarType::kIndex, value));
}

Scalar KernelBuilder::Make(Prim prim, std::initializer_list<Scalar> operands) {
  ScalarType last = (operands.end() - 1)->type();
  return Make(prim, ResultType(prim, last), operands);
}

Scalar KernelBuilder::Make(Prim prim, ScalarType type, std::initializer_list<Scalar> operands,
                           Bits bits) {
  TOK_CHECK(static_cast<int>(operands.size()) == InfoOf(prim).arity,
            "a primitive with other operands than it has");
  ScalarNode node{.prim = prim, .type = type, .bits = bits};
  size_t i = 0;
  for (Scalar operand : operands) {
    TOK_CHECK(operand.ok() && &operand.builder() == this, "a value of another kernel");
    node.operands[i++] = operand.id();
  }
  if (std::optional<Scalar> simpler = Simplify(*this, node)) return *simpler;
  return Intern(node);
}

Scalar KernelBuilder::Load(ArrayId array, Scalar index) {
  const Array& of = kernel_.array(array);
  TOK_CHECK(of.space == Space::kArgument && of.access == Access::kRead,
            "load: the kernel writes this array, so that it is read in order (Read)");
  return Make(Prim::kLoad, of.type, {index}, static_cast<Bits>(array));
}

Scalar KernelBuilder::Intern(const ScalarNode& node) {
  uint32_t number = interned_.FindOrAdd(node, kernel_.nodes);
  if (number == kernel_.nodes.size()) kernel_.nodes.push_back(node);
  return {this, ValueId{number}};
}

Scalar KernelBuilder::NewNode(const ScalarNode& node) {
  kernel_.nodes.push_back(node);
  return {this, ValueId{static_cast<uint32_t>(kernel_.nodes.size() - 1)}};
}

StmtList& KernelBuilder::OpenBlock() {
  if (open_.empty()) return kernel_.body;
  Open& last = open_.back();
  switch (last.part) {
    case Open::Part::kHead:
      return last.stmt.condition_stmts;
    case Open::Part::kBody:
      return last.stmt.body;
    case Open::Part::kOtherwise:
      break;
  }
  return last.stmt.else_body;
}

Stmt& KernelBuilder::Append(StmtKind kind) {
  StmtList& block = OpenBlock();
  block.emplace_back();
  block.back().kind = kind;
  return block.back();
}

Scalar KernelBuilder::OpenFor(std::string name, LoopRole role, Scalar extent) {
  kernel_.loops.push_back({std::move(name), role, extent.id()});
  LoopId loop{static_cast<uint32_t>(kernel_.loops.size() - 1)};
  Open open{.stmt = {}, .part = Open::Part::kBody};
  open.stmt.kind = StmtKind::kFor;
  open.stmt.loop = loop;
  open_.push_back(std::move(open));
  Range trips = RangeOf(extent);
  // The loop itself stays, because its role matters.
  if (trips.low == 1 && trips.high == 1) return Index(0);
  return Intern({.prim = Prim::kLoop, .type = ScalarType::kIndex, .bits = static_cast<Bits>(loop)});
}

void KernelBuilder::OpenIf(Scalar condition, bool uniform) {
  Open open{.stmt = {}, .part = Open::Part::kBody};
  open.stmt.kind = StmtKind::kIf;
  open.stmt.condition = condition.id();
  open.stmt.uniform = uniform;
  open_.push_back(std::move(open));
}

void KernelBuilder::Otherwise() {
  open_.back().part = Open::Part::kOtherwise;
}

void KernelBuilder::OpenWhile() {
  Open open{.stmt = {}, .part = Open::Part::kHead};
  open.stmt.kind = StmtKind::kWhile;
  open_.push_back(std::move(open));
}

void KernelBuilder::CloseHead(Scalar condition, bool uniform) {
  open_.back().stmt.condition = condition.id();
  open_.back().stmt.uniform = uniform;
  open_.back().part = Open::Part::kBody;
}

void KernelBuilder::Close() {
  Stmt done = std::move(open_.back().stmt);
  open_.pop_back();
  OpenBlock().push_back(std::move(done));
}

void KernelBuilder::Store(ArrayId array, Scalar index, Scalar value) {
  TOK_CHECK(value.type() == kernel_.array(array).type, "store: a value of another type");
  Stmt& stmt = Append(StmtKind::kStore);
  stmt.array = array;
  stmt.index = index.id();
  stmt.value = value.id();
}

Scalar KernelBuilder::Read(ArrayId array, Scalar index) {
  ScalarNode node{
      .prim = Prim::kRead, .type = kernel_.array(array).type, .bits = static_cast<Bits>(array)};
  node.operands[0] = index.id();
  Scalar value = NewNode(node);
  Append(StmtKind::kRead).value = value.id();
  return value;
}

Scalar KernelBuilder::Shuffle(Scalar value, Scalar lane_xor) {
  ScalarNode node{.prim = Prim::kShuffle, .type = value.type()};
  node.operands[0] = value.id();
  node.operands[1] = lane_xor.id();
  Scalar result = NewNode(node);
  Append(StmtKind::kShuffle).value = result.id();
  return result;
}

Scalar KernelBuilder::Match(Scalar value, int bits) {
  ScalarNode node{.prim = Prim::kMatch, .type = ScalarType::kU32};
  node.operands[0] = value.id();
  node.operands[1] = Index(bits).id();
  Scalar result = NewNode(node);
  Append(StmtKind::kShuffle).value = result.id();
  return result;
}

void KernelBuilder::Barrier(BarrierScope scope) {
  Append(StmtKind::kBarrier).scope = scope;
}

std::optional<ScalarType> AccumulatorScalarType(ScalarType type) {
  switch (type) {
    case ScalarType::kBF16:
    case ScalarType::kF16:
    case ScalarType::kF32:
      return ScalarType::kF32;
    case ScalarType::kF64:
      return ScalarType::kF64;
    case ScalarType::kS16:
    case ScalarType::kS32:
      return ScalarType::kS32;
    default:
      return std::nullopt;
  }
}

void KernelBuilder::Multiply(ArrayId to, Scalar at, const MatrixMultiply& product) {
  Stmt& stmt = Append(StmtKind::kMatMul);
  stmt.array = to;
  stmt.index = at.id();
  stmt.matmul = product;
}

Stmt& KernelBuilder::AppendAsync(AsyncOp op) {
  Stmt& stmt = Append(StmtKind::kAsync);
  stmt.async = std::make_shared<const AsyncOp>(std::move(op));
  return stmt;
}

ArrayId KernelBuilder::Mbarriers(std::string name, int64_t count, int64_t arrivals) {
  ArrayId id = Local(std::move(name), ScalarType::kU64, Space::kMbarrier, count);
  kernel_.arrays.back().arrivals = arrivals;
  return id;
}

void KernelBuilder::Arrive(ArrayId mbarriers, Scalar index, int64_t expected_bytes) {
  Stmt& stmt = AppendAsync({.kind = AsyncKind::kArrive, .number = expected_bytes});
  stmt.array = mbarriers;
  stmt.index = index.id();
}

void KernelBuilder::Wait(ArrayId mbarriers, Scalar index, Scalar parity) {
  Stmt& stmt = AppendAsync({.kind = AsyncKind::kWait, .parity = parity.id()});
  stmt.array = mbarriers;
  stmt.index = index.id();
}

void KernelBuilder::Copy(ArrayId mbarriers, Scalar index, TileCopy copy) {
  Stmt& stmt = AppendAsync({.kind = AsyncKind::kCopy, .copy = std::move(copy)});
  stmt.array = mbarriers;
  stmt.index = index.id();
}

void KernelBuilder::CopyBack(TileCopy copy) {
  AppendAsync({.kind = AsyncKind::kCopyBack, .copy = std::move(copy)});
}

void KernelBuilder::WaitCopies(int64_t pending) {
  AppendAsync({.kind = AsyncKind::kWaitCopies, .number = pending});
}

void KernelBuilder::WaitMultiplies(ArrayId registers, int64_t pending) {
  AppendAsync({.kind = AsyncKind::kWaitMultiplies, .number = pending}).array = registers;
}

void KernelBuilder::AsyncFence() {
  AppendAsync({.kind = AsyncKind::kFence});
}

void KernelBuilder::LimitRegisters(int64_t registers) {
  AppendAsync({.kind = AsyncKind::kRegisters, .number = registers});
}

std::vector<ValueId> AsyncOperandsOf(const Stmt& stmt) {
  std::vector<ValueId> operands;
  const AsyncOp& op = *stmt.async;
  if (HasMbarrier(op.kind)) operands.push_back(stmt.index);
  if (op.kind == AsyncKind::kWait) operands.push_back(op.parity);
  if (!HasCopy(op.kind)) return operands;
  operands.push_back(op.kind == AsyncKind::kCopy ? op.copy.to_index : op.copy.from_index);
  for (const TileCopy::Dimension& dimension : op.copy.dimensions) operands.push_back(dimension.at);
  return operands;
}

std::vector<ArrayId> AsyncArraysOf(const Stmt& stmt) {
  std::vector<ArrayId> arrays;
  const AsyncOp& op = *stmt.async;
  if (HasArray(op.kind)) arrays.push_back(stmt.array);
  if (HasCopy(op.kind)) arrays.insert(arrays.end(), {op.copy.from, op.copy.to});
  return arrays;
}

Range KernelBuilder::RangeOf(Scalar index) {
  return ranges_.Of(kernel_, index.id());
}

Kernel KernelBuilder::Finish() {
  TOK_CHECK(open_.empty(), "a block of a kernel is open");
  return std::move(kernel_);
}

}  // namespace tokamak

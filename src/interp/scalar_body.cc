#include "interp/scalar_body.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "interp/module_interpreter.h"
#include "interp/scalar_ops.h"

namespace tokamak {

// One step: run(step, registers) reads registers a, b, c and writes dst. Steps with an instruction
// call its evaluator instead.
struct ScalarBody::Step {
  void (*run)(const Step&, ScalarSlot*) = nullptr;
  uint32_t dst = 0, a = 0, b = 0, c = 0;
  int bits = 0;
  CompareDirection direction{};
  union {
    RealUnaryFn real1 = nullptr;
    RealBinaryFn real2;
    RealTestFn test;
    ComplexUnaryFn complex1;
    ComplexBinaryFn complex2;
    SignedUnaryFn signed1;
    SignedBinaryFn signed2;
    UnsignedUnaryFn unsigned1;
    UnsignedBinaryFn unsigned2;
    PredUnaryFn pred1;
    PredBinaryFn pred2;
  };
  Rounder round{ElementType::kF64, NumericMode::kReference};
  ElementConverter convert{ElementType::kF64, NumericMode::kReference};
  const Instr* instr = nullptr;
  std::vector<uint32_t> operands, results;
};

namespace {

size_t LeafCount(const Shape& shape) {
  if (!shape.IsTuple()) return 1;
  size_t count = 0;
  for (const Shape& element : shape.elements()) count += LeafCount(element);
  return count;
}

// Whether a value consists of scalars without quantization.
bool IsScalars(const Shape& shape) {
  if (!shape.IsTuple()) return shape.IsScalar() && shape.quant() == nullptr;
  return std::all_of(shape.elements().begin(), shape.elements().end(), IsScalars);
}

void LeafTypes(const Shape& shape, std::vector<ElementType>& types) {
  if (!shape.IsTuple()) {
    types.push_back(shape.type());
    return;
  }
  for (const Shape& element : shape.elements()) LeafTypes(element, types);
}

Value ToValue(const Shape& shape, const ScalarSlot* scalars, std::span<const uint32_t>& leaves) {
  if (shape.IsTuple()) {
    std::vector<Value> elements;
    for (const Shape& element : shape.elements())
      elements.push_back(ToValue(element, scalars, leaves));
    return Value::Tuple(std::move(elements));
  }
  const ScalarSlot& scalar = scalars[leaves[0]];
  leaves = leaves.subspan(1);
  return DispatchStorage(shape.type(), [&]<typename T>() {
    return Value::Array(shape, std::vector<T>{scalar.Get<T>()});
  });
}

void FromValue(const Value& value, ScalarSlot* scalars, std::span<const uint32_t>& leaves) {
  if (value.shape().IsTuple()) {
    for (const Value& element : value.elements()) FromValue(element, scalars, leaves);
    return;
  }
  DispatchStorage(value.type(),
                  [&]<typename T>() { scalars[leaves[0]].Set<T>(value.Data<T>()[0]); });
  leaves = leaves.subspan(1);
}

}  // namespace

// Compiles instructions to steps. An instruction's value is a list of registers, one per leaf.
class ScalarBody::Compiler {
 public:
  Compiler(ScalarBody& body, Narrow narrow) : body_(body), narrow_(narrow) {}

  using Registers = std::vector<uint32_t>;

  // Returns false if the computation contains a non-scalar value.
  bool Compile(const Computation& computation, const std::vector<Registers>& arguments,
               Registers& results, int depth = 0) {
    if (depth > 50) return false;
    std::unordered_map<const Instr*, Registers> values;
    for (const Instr* instr : computation.PostOrder()) {
      if (!IsScalars(instr->shape())) return false;
      Registers& into = values[instr];
      if (instr->op() == Op::kParameter) {
        into = arguments[static_cast<size_t>(instr->attrs<ParameterAttrs>().number)];
        continue;
      }
      std::vector<Registers> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(values[operand]);
      if (!CompileInstr(*instr, operands, into, depth)) return false;
    }
    results = values[computation.root()];
    return true;
  }

 private:
  bool CompileInstr(const Instr& instr, const std::vector<Registers>& operands, Registers& into,
                    int depth) {
    switch (instr.op()) {
      case Op::kTuple:
        for (const Registers& operand : operands)
          into.insert(into.end(), operand.begin(), operand.end());
        return true;
      case Op::kGetTupleElement: {
        size_t index = static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index), first = 0;
        const std::vector<Shape>& elements = instr.operand(0)->shape().elements();
        for (size_t i = 0; i < index; ++i) first += LeafCount(elements[i]);
        size_t count = LeafCount(elements[index]);
        into.assign(operands[0].begin() + static_cast<ptrdiff_t>(first),
                    operands[0].begin() + static_cast<ptrdiff_t>(first + count));
        return true;
      }
      case Op::kCall:
      case Op::kFusion:
      case Op::kComposite:
        return Compile(*instr.called(0), operands, into, depth + 1);
      case Op::kReshape:
      case Op::kBroadcast:
      case Op::kCopy:
        into = operands[0];
        return instr.operand(0)->shape().type() == instr.shape().type();
      case Op::kConstant:
        return CompileConstant(instr, into);
      default:
        break;
    }
    for (size_t i = 0; i < LeafCount(instr.shape()); ++i) into.push_back(NewRegister());
    Step step;
    if (instr.info().Is(kElementwise) && CompileElementwise(instr, operands, step)) {
      step.dst = into[0];
      step.a = operands[0][0];
      if (operands.size() > 1) step.b = operands[1][0];
      if (operands.size() > 2) step.c = operands[2][0];
    } else {
      if (instr.info().Is(kSideEffect) || instr.info().Is(kCollective)) return false;
      step = Step();
      step.instr = &instr;
      for (const Registers& operand : operands)
        step.operands.insert(step.operands.end(), operand.begin(), operand.end());
      step.results = into;
    }
    body_.steps_.push_back(std::move(step));
    return true;
  }

  bool CompileConstant(const Instr& instr, Registers& into) {
    Result<Value> value = ValueFromLiteral(instr.attrs<ConstantAttrs>().literal);
    if (!value.ok()) return false;
    for (size_t i = 0; i < LeafCount(instr.shape()); ++i) into.push_back(NewRegister());
    std::span<const uint32_t> leaves = into;
    FromValue(value.value(), body_.registers_.data(), leaves);
    return true;
  }

  uint32_t NewRegister() {
    body_.registers_.emplace_back();
    return static_cast<uint32_t>(body_.registers_.size() - 1);
  }

  bool CompileElementwise(const Instr& instr, const std::vector<Registers>& operands, Step& step) {
    NumericMode mode = body_.context_.mode();
    ElementType type = instr.operand(0)->shape().type();
    bool wide = IsWide(type, mode);
    bool as_f32 = narrow_ == Narrow::kAsF32 && IsReal(type) && InfoOf(type).bits < 32;
    step.round = Rounder(as_f32 ? ElementType::kF32 : type, mode);
    step.bits = InfoOf(type).bits;
    switch (instr.op()) {
      case Op::kConvert:
        return CompileConvert(type, instr.shape().type(), mode, step);
      case Op::kCompare:
        return CompileCompare(instr.attrs<CompareAttrs>(), type, step);
      case Op::kSelect:
        step.run = [](const Step& s, ScalarSlot* r) { r[s.dst] = r[s.a].u != 0 ? r[s.b] : r[s.c]; };
        return true;
      case Op::kComplex:
        step.run = [](const Step& s, ScalarSlot* r) {
          r[s.dst].Set<Complex>({r[s.a].real, r[s.b].real});
        };
        return true;
      default:
        break;
    }
    switch (KindOf(type)) {
      case TypeKind::kReal:
        return CompileReal(instr.op(), operands.size(), wide, step);
      case TypeKind::kComplex:
        return CompileComplex(instr.op(), operands.size(), wide, step);
      case TypeKind::kSigned:
        return CompileInteger<&ScalarSlot::s, &Step::signed1, &Step::signed2>(
            operands.size(), SignedUnary(instr.op()), SignedBinary(instr.op()), step);
      case TypeKind::kUnsigned:
        return CompileInteger<&ScalarSlot::u, &Step::unsigned1, &Step::unsigned2>(
            operands.size(), UnsignedUnary(instr.op()), UnsignedBinary(instr.op()), step);
      case TypeKind::kBool:
        return CompilePred(instr.op(), operands.size(), step);
    }
    return false;
  }

  static bool CompileConvert(ElementType from, ElementType to, NumericMode mode, Step& step) {
    step.convert = ElementConverter(to, mode);
    DispatchStorage(from, [&]<typename From>() {
      DispatchStorage(to, [&]<typename To>() {
        step.run = [](const Step& s, ScalarSlot* r) {
          r[s.dst].Set<To>(s.convert.Convert<To>(r[s.a].Get<From>()));
        };
      });
    });
    return true;
  }

  static bool CompileCompare(const CompareAttrs& attrs, ElementType type, Step& step) {
    step.direction = attrs.direction;
    if (IsReal(type) && attrs.type == CompareType::kTotalOrder) {
      step.run = [](const Step& s, ScalarSlot* r) {
        r[s.dst].u =
            InOrder(s.direction, TotalOrderKey(r[s.a].real), TotalOrderKey(r[s.b].real)) ? 1 : 0;
      };
      return true;
    }
    DispatchStorage(type, [&]<typename T>() {
      step.run = [](const Step& s, ScalarSlot* r) {
        r[s.dst].u = InOrder(s.direction, r[s.a].Get<T>(), r[s.b].Get<T>()) ? 1 : 0;
      };
    });
    return true;
  }

  static bool CompileReal(Op op, size_t arity, bool wide, Step& step) {
    if (arity == 2) {
      step.real2 = RealBinary(op, wide);
      step.run = [](const Step& s, ScalarSlot* r) {
        r[s.dst].real = s.round(s.real2(r[s.a].real, r[s.b].real));
      };
      return step.real2 != nullptr;
    }
    if (arity == 3) return false;
    if (RealTestFn test = RealTest(op)) {
      step.test = test;
      step.run = [](const Step& s, ScalarSlot* r) { r[s.dst].u = s.test(r[s.a].real) ? 1 : 0; };
      return true;
    }
    step.real1 = RealUnary(op, wide);
    step.run = [](const Step& s, ScalarSlot* r) { r[s.dst].real = s.round(s.real1(r[s.a].real)); };
    return step.real1 != nullptr;
  }

  static bool CompileComplex(Op op, size_t arity, bool wide, Step& step) {
    if (arity == 2) {
      step.complex2 = ComplexBinary(op, wide);
      step.run = [](const Step& s, ScalarSlot* r) {
        r[s.dst].Set(s.round(s.complex2(r[s.a].Get<Complex>(), r[s.b].Get<Complex>())));
      };
      return step.complex2 != nullptr;
    }
    if (arity == 3) return false;
    switch (op) {
      case Op::kReal:
        step.run = [](const Step& s, ScalarSlot* r) { r[s.dst].real = r[s.a].real; };
        return true;
      case Op::kImag:
        step.run = [](const Step& s, ScalarSlot* r) { r[s.dst].real = r[s.a].imag; };
        return true;
      default:
        break;
    }
    step.complex1 = ComplexUnary(op, wide);
    step.run = [](const Step& s, ScalarSlot* r) {
      r[s.dst].Set(s.round(s.complex1(r[s.a].Get<Complex>())));
    };
    return step.complex1 != nullptr;
  }

  // Signed and unsigned integers differ in where a step and a register keep them.
  template <auto kPart, auto kOne, auto kTwo, typename One, typename Two>
  static bool CompileInteger(size_t arity, One one, Two two, Step& step) {
    if (arity == 1) {
      step.*kOne = one;
      step.run = [](const Step& s, ScalarSlot* r) {
        r[s.dst].*kPart = s.round((s.*kOne)(r[s.a].*kPart, s.bits));
      };
      return one != nullptr;
    }
    if (arity == 3) return false;
    step.*kTwo = two;
    step.run = [](const Step& s, ScalarSlot* r) {
      r[s.dst].*kPart = s.round((s.*kTwo)(r[s.a].*kPart, r[s.b].*kPart, s.bits));
    };
    return two != nullptr;
  }

  static bool CompilePred(Op op, size_t arity, Step& step) {
    if (arity == 1) {
      step.pred1 = PredUnary(op);
      step.run = [](const Step& s, ScalarSlot* r) {
        r[s.dst].u = s.pred1(static_cast<uint8_t>(r[s.a].u));
      };
      return step.pred1 != nullptr;
    }
    if (arity == 3) return false;
    step.pred2 = PredBinary(op);
    step.run = [](const Step& s, ScalarSlot* r) {
      r[s.dst].u = s.pred2(static_cast<uint8_t>(r[s.a].u), static_cast<uint8_t>(r[s.b].u));
    };
    return step.pred2 != nullptr;
  }

  ScalarBody& body_;
  Narrow narrow_;
};

ScalarBody::ScalarBody(const Computation& computation, Context& context, Narrow narrow)
    : computation_(computation), context_(context) {
  size_t count = computation.parameters().size();
  registers_.resize(count);
  bound_.resize(count);
  std::vector<Compiler::Registers> arguments;
  bool scalars = true;
  for (size_t i = 0; i < count; ++i) {
    scalars = scalars && computation.parameter(i)->shape().IsScalar();
    arguments.push_back({static_cast<uint32_t>(i)});
  }
  LeafTypes(computation.root()->shape(), result_types_);
  if (!scalars || !Compiler(*this, narrow).Compile(computation, arguments, outputs_)) {
    whole_ = true;
    steps_.clear();
    outputs_.clear();
    registers_.resize(count + result_types_.size());
    for (size_t i = 0; i < result_types_.size(); ++i)
      outputs_.push_back(static_cast<uint32_t>(count + i));
    return;
  }
  const Instr& root = *computation.root();
  bool binary = steps_.size() == 1 && count == 2 && root.operand_count() == 2 &&
                steps_[0].instr == nullptr && steps_[0].a + steps_[0].b == 1 &&
                IsCommutative(root.op()) && root.shape().IsScalar();
  if (!binary) return;
  simple_ = root.op();
  simple_type_ = root.shape().type();
  if (narrow == Narrow::kAsF32 && IsReal(simple_type_) && InfoOf(simple_type_).bits < 32)
    simple_type_ = ElementType::kF32;
}

ScalarBody::~ScalarBody() = default;

void ScalarBody::Bind(size_t parameter, Value value) {
  if (!whole_) {
    uint32_t leaf = static_cast<uint32_t>(parameter);
    std::span<const uint32_t> leaves(&leaf, 1);
    FromValue(value, registers_.data(), leaves);
  }
  bound_[parameter] = std::move(value);
}

Status ScalarBody::CallWhole() {
  std::vector<Value> arguments;
  for (size_t i = 0; i < bound_.size(); ++i) {
    uint32_t leaf = static_cast<uint32_t>(i);
    std::span<const uint32_t> leaves(&leaf, 1);
    arguments.push_back(bound_[i].has_value() ? *bound_[i]
                                              : ToValue(computation_.parameter(i)->shape(),
                                                        registers_.data(), leaves));
  }
  TOK_TRY(Value result, context_.Call(computation_, std::move(arguments)));
  std::span<const uint32_t> leaves = outputs_;
  FromValue(result, registers_.data(), leaves);
  return Ok();
}

Status ScalarBody::Apply() {
  if (whole_) return CallWhole();
  ScalarSlot* registers = registers_.data();
  for (const Step& step : steps_) {
    if (step.instr == nullptr) [[likely]] {
      step.run(step, registers);
      continue;
    }
    std::vector<Value> operands;
    std::span<const uint32_t> leaves = step.operands;
    for (const Instr* operand : step.instr->operands())
      operands.push_back(ToValue(operand->shape(), registers, leaves));
    TOK_TRY(Value result, Evaluate(*step.instr, operands, context_));
    leaves = step.results;
    FromValue(result, registers, leaves);
  }
  return Ok();
}

// Passes the simple op to `use` as a function that the compiler can inline.
template <typename T, typename Use>
bool ScalarBody::WithSimpleOp(Use use) const {
  if (!simple_.has_value()) return false;
  Rounder round(simple_type_, context_.mode());
  int bits = InfoOf(simple_type_).bits;
  if constexpr (std::is_same_v<T, double>) {
    if (*simple_ == Op::kAdd) {
      use([round](double a, double b) { return round(a + b); });
    } else if (*simple_ == Op::kMultiply) {
      use([round](double a, double b) { return round(a * b); });
    } else {
      use(RealBinary(*simple_, false));
    }
  } else if constexpr (std::is_same_v<T, int64_t>) {
    SignedBinaryFn fn = SignedBinary(*simple_);
    use([=](int64_t a, int64_t b) { return round(fn(a, b, bits)); });
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    UnsignedBinaryFn fn = UnsignedBinary(*simple_);
    use([=](uint64_t a, uint64_t b) { return round(fn(a, b, bits)); });
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    use(PredBinary(*simple_));
  } else {
    ComplexBinaryFn fn = ComplexBinary(*simple_, IsWide(simple_type_, context_.mode()));
    use([=](Complex a, Complex b) { return round(fn(a, b)); });
  }
  return true;
}

template <typename T>
Status ScalarBody::Accumulate(T& accumulator, const T* x, size_t count, ptrdiff_t stride) {
  bool done = WithSimpleOp<T>([&](auto op) {
    T sum = accumulator;
    for (size_t k = 0; k < count; ++k, x += stride) sum = op(sum, *x);
    accumulator = sum;
  });
  for (size_t k = 0; !done && k < count; ++k, x += stride) {
    in(0).Set<T>(accumulator);
    in(1).Set<T>(*x);
    TOK_RETURN_IF_ERROR(Apply());
    accumulator = out(0).Get<T>();
  }
  return Ok();
}

template <typename T>
Status ScalarBody::AccumulateEach(std::span<T> accumulators, const T* x, ptrdiff_t stride) {
  bool done = WithSimpleOp<T>([&](auto op) {
    for (T& accumulator : accumulators) {
      accumulator = op(accumulator, *x);
      x += stride;
    }
  });
  for (size_t k = 0; !done && k < accumulators.size(); ++k, x += stride)
    TOK_RETURN_IF_ERROR(Accumulate<T>(accumulators[k], x, 1));
  return Ok();
}

#define TOK_ACCUMULATE(T)                                                     \
  template Status ScalarBody::Accumulate<T>(T&, const T*, size_t, ptrdiff_t); \
  template Status ScalarBody::AccumulateEach<T>(std::span<T>, const T*, ptrdiff_t);
TOK_ACCUMULATE(uint8_t)
TOK_ACCUMULATE(int64_t)
TOK_ACCUMULATE(uint64_t)
TOK_ACCUMULATE(double)
TOK_ACCUMULATE(Complex)
#undef TOK_ACCUMULATE

}  // namespace tokamak

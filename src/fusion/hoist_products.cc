#include "fusion/hoist_products.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "analysis/loops.h"

namespace tokamak {
namespace {

// Multiplications of a round that are worth another array to carry.
constexpr int64_t kLeastWork = int64_t{1} << 16;
constexpr int64_t kMostBytes = int64_t{1} << 30;
constexpr uint64_t kLeastRounds = 4;

// A part of what is multiplied: `size` along the depth.
struct Part {
  Instr* value = nullptr;
  Instr* slice = nullptr;  // of a carried array that stays, where the part is a row of it
  size_t rows = 0;         // that array's number
  int64_t begin = 0, size = 0;
};

struct Product {
  Instr* dot = nullptr;
  std::vector<Part> parts;
};

class Hoister {
 public:
  explicit Hoister(Instr* instr) : instr_(instr) {}

  bool Find() {
    std::optional<WhileLoop> loop = LoopOf(instr_);
    if (!loop || loop->size() < 2 || instr_->parent()->root() == instr_) return false;
    for (const Instr* user : instr_->users())
      if (user->op() != Op::kGetTupleElement) return false;
    std::optional<uint64_t> rounds = TripCount(*loop);
    if (!rounds || *rounds < kLeastRounds) return false;
    loop_ = *loop;
    rounds_ = static_cast<int64_t>(std::min<uint64_t>(*rounds, INT64_MAX));
    for (Instr* instr : loop_.body->PostOrder())
      if (instr->op() == Op::kDot) FindProduct(instr);
    return !found_.empty();
  }

  void Run(DecisionLog& log) {
    for (size_t i = 0; i < loop_.size(); ++i) {
      operands_.push_back(loop_.init(i));
      next_.push_back(loop_.next(i));
      shapes_.push_back(loop_.init(i)->shape());
    }
    for (const Product& product : found_) {
      log.Add({.pass = "fuse",
               .rule = "loop.product",
               .subject = LabelOf(*product.dot),
               .origins = product.dot->origins(),
               .because = fmt::format("{} rounds multiply rows by the same matrix: at once, before",
                                      rounds_)});
      Replace(product);
    }
    Finish();
  }

 private:
  // ---- what there is

  // Made of values that stay, by ops that move elements alone.
  bool Stays(const Instr* value) const {
    while (value->op() != Op::kParameter) {
      if (value->op() != Op::kReshape && value->op() != Op::kTranspose &&
          value->op() != Op::kSlice && value->op() != Op::kConvert)
        return false;
      value = value->operand(0);
    }
    return loop_.IsInvariant(*ParameterNumber(value));
  }

  // Finds the array that a value is a row of.
  void FindRow(Part& part) const {
    Instr* value = part.value;
    if (value->op() != Op::kReshape) return;
    Instr* slice = value->operand(0);
    if (slice->op() != Op::kDynamicSlice) return;
    std::optional<size_t> number = ParameterNumber(slice->operand(0));
    if (!number || !loop_.IsInvariant(*number)) return;
    const Dims& dims = slice->operand(0)->shape().dims();
    if (dims.size() != value->shape().dims().size() + 1 || slice->shape().dim(0) != 1) return;
    for (size_t i = 1; i < dims.size(); ++i)
      if (slice->shape().dim(i) != dims[i] || value->shape().dim(i - 1) != dims[i]) return;
    // Rows that no round needs are multiplied, too.
    if (dims[0] > 2 * rounds_) return;
    part.slice = slice;
    part.rows = *number;
  }

  void FindProduct(Instr* dot) {
    const DotAttrs& attrs = dot->attrs<DotAttrs>();
    if (!attrs.lhs_batch.empty() || attrs.lhs_contracting.size() != 1 || dot->has_extras()) return;
    if (!dot->shape().IsArray() || !IsReal(dot->shape().type()) || !Stays(dot->operand(1))) return;
    Product product{dot, {}};
    Instr* lhs = dot->operand(0);
    int64_t depth = attrs.lhs_contracting[0], begin = 0;
    auto add = [&](Instr* value) {
      Part part{.value = value, .begin = begin};
      part.size = value->shape().dim(static_cast<size_t>(depth));
      begin += part.size;
      FindRow(part);
      product.parts.push_back(part);
    };
    if (lhs->op() == Op::kConcatenate && lhs->attrs<DimensionAttrs>().dimension == depth)
      for (Instr* operand : lhs->operands()) add(operand);
    else
      add(lhs);
    int64_t work = 0, bytes = 0;
    for (const Part& part : product.parts) {
      if (part.slice == nullptr) continue;
      work += dot->shape().ElementCount() * part.size;
      bytes += dot->shape().ByteSize() * loop_.init(part.rows)->shape().dim(0);
    }
    if (work >= kLeastWork && bytes <= kMostBytes) found_.push_back(std::move(product));
  }

  // ---- what becomes of it

  // A value of the body that stays, before the loop.
  Instr* Before(Instr* value) {
    if (std::optional<size_t> number = ParameterNumber(value)) return loop_.init(*number);
    Instr* copy = instr_->parent()->Append(value->op(), value->shape(), {Before(value->operand(0))},
                                           value->attrs(), value->name());
    copy->set_origins(value->origins());
    return copy;
  }

  // Rows begin .. begin + size of what is multiplied by, before the loop.
  Instr* MatrixOf(const Instr& dot, const Part& part) {
    Instr* matrix = Before(dot.operand(1));
    auto depth = static_cast<size_t>(dot.attrs<DotAttrs>().rhs_contracting[0]);
    Dims dims = matrix->shape().dims();
    if (part.size == dims[depth]) return matrix;
    SliceAttrs attrs{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
    attrs.starts[depth] = part.begin;
    attrs.limits[depth] = part.begin + part.size;
    dims[depth] = part.size;
    return Made(dot, *instr_->parent(), Op::kSlice, Shape::Array(matrix->shape().type(), dims),
                {matrix}, attrs);
  }

  static Instr* Made(const Instr& like, Computation& in, Op op, Shape shape,
                     std::vector<Instr*> operands, Attrs attrs = {}) {
    Instr* made = in.Append(op, std::move(shape), std::move(operands), std::move(attrs));
    made->set_origins(like.origins());
    made->set_pos(like.pos());
    return made;
  }

  // Carries a value that stays; its parameter in the body.
  Instr* Carry(Instr* value) {
    auto number = static_cast<int64_t>(operands_.size());
    loop_.condition->AppendParameter(number, value->shape());
    Instr* parameter = loop_.body->AppendParameter(number, value->shape());
    operands_.push_back(value);
    next_.push_back(parameter);
    shapes_.push_back(value->shape());
    return parameter;
  }

  Instr* RowOfAll(const Instr& dot, const Part& part) {
    DotAttrs attrs = dot.attrs<DotAttrs>();
    ++attrs.lhs_contracting[0];
    Dims dims = dot.shape().dims(), slice = dims;
    dims.insert(dims.begin(), loop_.init(part.rows)->shape().dim(0));
    slice.insert(slice.begin(), 1);
    ElementType type = dot.shape().type();
    Instr* all = Made(dot, *instr_->parent(), Op::kDot, Shape::Array(type, dims),
                      {loop_.init(part.rows), MatrixOf(dot, part)}, attrs);
    // Beginnings in dimensions that are taken as a whole do not matter.
    std::vector<Instr*> operands = {Carry(all), part.slice->operand(1)};
    Instr* zero = Made(dot, *loop_.body, Op::kConstant, part.slice->operand(1)->shape(), {},
                       ConstantAttrs{Literal::Scalar(part.slice->operand(1)->shape().type(), 0)});
    operands.resize(dims.size() + 1, zero);
    Instr* row = Made(dot, *loop_.body, Op::kDynamicSlice, Shape::Array(type, slice), operands,
                      DynamicSliceAttrs{slice});
    return Made(dot, *loop_.body, Op::kReshape, dot.shape(), {row});
  }

  void Replace(const Product& product) {
    Instr* dot = product.dot;
    Instr* sum = nullptr;
    for (const Part& part : product.parts) {
      Instr* term = part.slice != nullptr
                        ? RowOfAll(*dot, part)
                        : Made(*dot, *loop_.body, Op::kDot, dot->shape(),
                               {part.value, Carry(MatrixOf(*dot, part))}, dot->attrs());
      sum = sum == nullptr ? term : Made(*dot, *loop_.body, Op::kAdd, dot->shape(), {sum, term});
    }
    loop_.body->ReplaceUses(dot, sum);
    for (Instr*& value : next_)
      if (value == dot) value = sum;
  }

  void Finish() {
    Computation &body = *loop_.body, &before = *instr_->parent();
    Instr* old = body.root();
    body.set_root(body.Append(Op::kTuple, Shape::Tuple(shapes_), next_));
    body.Remove(old);
    std::vector<Instr*> order = body.Instrs();
    for (size_t i = order.size(); i-- > 0;)
      if (order[i]->users().empty() && order[i] != body.root() && order[i]->op() == Op::kDot)
        body.Remove(order[i]);
    body.PutInOrder();
    Instr* made = before.Append(Op::kWhile, Shape::Tuple(shapes_), operands_, {}, instr_->name());
    made->set_called({loop_.condition, loop_.body});
    made->set_origins(instr_->origins());
    made->set_pos(instr_->pos());
    if (instr_->has_extras()) made->mutable_extras() = instr_->extras();
    std::vector<Instr*> users(instr_->users().begin(), instr_->users().end());
    for (Instr* user : users) user->set_operand(0, made);
    before.Remove(instr_);
    before.PutInOrder();
  }

  Instr* instr_;
  WhileLoop loop_;
  int64_t rounds_ = 0;
  std::vector<Product> found_;
  std::vector<Instr*> operands_, next_;
  std::vector<Shape> shapes_;
};

// How many instructions run a computation.
size_t CountCallers(const Module& module, const Computation& computation) {
  size_t callers = 0;
  for (const auto& other : module.computations())
    for (const Instr* caller : other->Callers())
      for (const Computation* called : caller->called()) callers += called == &computation;
  return callers;
}

}  // namespace

void HoistProducts(Module& module, DecisionLog& log, const Machine&) {
  for (Computation* computation : module.CalleesFirst()) {
    for (bool again = true; again;) {
      again = false;
      for (Instr* instr : computation->Callers()) {
        if (instr->op() != Op::kWhile) continue;
        Hoister hoister(instr);
        if (!hoister.Find() || CountCallers(module, *instr->called(0)) != 1 ||
            CountCallers(module, *instr->called(1)) != 1)
          continue;
        hoister.Run(log);
        again = true;  // instructions have moved
        break;
      }
    }
  }
}

}  // namespace tokamak

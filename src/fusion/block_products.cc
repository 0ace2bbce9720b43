#include "fusion/block_products.h"

#include <fmt/format.h>

#include "fusion/expand_ops.h"
#include "fusion/loop_edit.h"
#include "gen/contract_tiling.h"
#include "gen/generator.h"

namespace tokamak {
namespace {

constexpr uint64_t kBlockLeastRounds = 4;
constexpr int64_t kBlockMostBytes = int64_t{1} << 30;
constexpr int64_t kLeastRows = 1024;

bool IsOne(const Instr& dot, const Machine& machine) {
  return dot.op() == Op::kDot && !dot.has_extras() &&
         dot.attrs<DotAttrs>().rhs_contracting.size() == 1 && BlockForRhs(dot, machine) > 0 &&
         BlocksOfRhs(dot, machine) == 0 && dot.operand(1)->shape().ByteSize() <= kBlockMostBytes &&
         TilingOf(dot, DotSides(dot), machine, false).PaddedDepth() == DotSides(dot).k;
}

// The matrix that a dot multiplies by, which is in this computation: (n / block, k, block).
Instr* Blocks(const Instr& dot, int64_t block, Instr* matrix, Computation& in) {
  DotSides sides(dot);
  ElementType type = matrix->shape().type();
  auto make = [&](Op op, Dims dims, Attrs attrs = {}) {
    matrix = LoopEdit::Made(dot, in, op, Shape::Array(type, std::move(dims)), {matrix},
                            std::move(attrs));
  };
  int64_t depth = sides.attrs.rhs_contracting[0];
  if (depth == 0) {
    make(Op::kReshape, {sides.k, sides.n / block, block});
    make(Op::kTranspose, {sides.n / block, sides.k, block}, DimensionsAttrs{{1, 0, 2}});
    return matrix;
  }
  if (Dims order = sides.rhs_free; order.back() > depth) {
    order.push_back(depth);
    make(Op::kTranspose, SizesOf(sides.rhs, order), DimensionsAttrs{order});
  }
  make(Op::kReshape, {sides.n / block, block, sides.k});
  make(Op::kTranspose, {sides.n / block, sides.k, block}, DimensionsAttrs{{0, 2, 1}});
  return matrix;
}

// What a dot is, by its matrix in blocks.
Instr* Product(const Instr& dot, Instr* blocks) {
  DotSides sides(dot);
  DotAttrs attrs = dot.attrs<DotAttrs>();
  attrs.rhs_contracting = {1};
  Dims dims = SizesOf(sides.lhs, sides.lhs_free);
  dims.push_back(blocks->shape().dim(0));
  dims.push_back(blocks->shape().dim(2));
  Instr* product = LoopEdit::Made(dot, *dot.parent(), Op::kDot,
                                  Shape::Array(dot.shape().type(), std::move(dims)),
                                  {dot.operand(0), blocks}, std::move(attrs));
  return LoopEdit::Made(dot, *dot.parent(), Op::kReshape, dot.shape().WithoutLayout(), {product});
}

void Record(const Instr& dot, std::string because, DecisionLog& log) {
  log.Add({.pass = "fuse",
           .rule = "contraction.blocks",
           .subject = LabelOf(dot),
           .origins = dot.origins(),
           .because = std::move(because)});
}

class InLoop {
 public:
  InLoop(const WhileLoop& loop, const Machine& machine) : edit_(loop), machine_(machine) {}

  bool Find() {
    if (*TripCount(edit_.loop()) < kBlockLeastRounds) return false;
    for (Instr* instr : edit_.body().PostOrder())
      if (IsOne(*instr, machine_) && edit_.Stays(instr->operand(1))) found_.push_back(instr);
    return !found_.empty() && !IsOneKernel(*edit_.loop().instr, machine_);
  }

  void Run(DecisionLog& log) {
    for (Instr* dot : found_) {
      Record(*dot,
             fmt::format("{} rounds multiply by the same matrix: it is put in order once",
                         *TripCount(edit_.loop())),
             log);
      Instr* blocks = Blocks(*dot, BlockForRhs(*dot, machine_), edit_.BeforeLoop(dot->operand(1)),
                             edit_.before());
      edit_.ReplaceInBody(dot, Product(*dot, edit_.Carry(blocks)));
    }
    edit_.Finish();
    edit_.Close();
  }

 private:
  LoopEdit edit_;
  const Machine& machine_;
  std::vector<Instr*> found_;
};

// Where many tiles would each put it in order.
void BlockLongProducts(Computation& computation, const Machine& machine, DecisionLog& log) {
  bool changed = false;
  for (Instr* instr : computation.Instrs()) {
    if (!IsOne(*instr, machine) || DotSides(*instr).m < kLeastRows) continue;
    Record(*instr, "tiles of many rows multiply by the same matrix: it is put in order once", log);
    Instr* blocks = Blocks(*instr, BlockForRhs(*instr, machine), instr->operand(1), computation);
    Expansion(*instr).Replace(Product(*instr, blocks));
    changed = true;
  }
  if (changed) computation.PutInOrder();
}

}  // namespace

void BlockProducts(Module& module, const Machine& machine, DecisionLog& log) {
  if (machine.is_gpu()) return;
  ForEditableLoops(module, [&](const WhileLoop& loop) {
    InLoop in_loop(loop, machine);
    if (!in_loop.Find()) return false;
    in_loop.Run(log);
    return true;
  });
  // Long vectors read a panel's rows as fast, and tiles put it in order beside the others.
  if (!machine.HasShortVectors()) return;
  std::set<const Computation*> in_loops = ComputationsOfLoops(module);
  for (size_t i = 0, count = module.computations().size(); i < count; ++i)
    if (Computation& computation = *module.computations()[i]; !in_loops.contains(&computation))
      BlockLongProducts(computation, machine, log);
}

}  // namespace tokamak

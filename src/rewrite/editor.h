#pragma once

#include <span>
#include <vector>

#include "ir/ir.h"
#include "rewrite/expand/term.h"

namespace tokamak {

// The one way in which passes and rules make instructions and replace others, so that nothing a
// person needs is lost on the way:
//
//   origins     what is made has those of the instruction that it is made for (and its position in
//               the text); what is replaced hands its own on. Pins are origins, too.
//   extras      sharding, frontend attributes and control predecessors go to an instruction that is
//               new. An instruction that was there keeps its own.
//   names       kernels and reports are named after them: see Naming.
//
// New computations (bodies of reductions, steps of loops) are written with ir/builder.h; loops get
// more or fewer carried values by rewrite/loop_edit.h, which makes its instructions here.
class Editor final : public TermGraph {
 public:
  enum class Naming : bool { kUnnamed, kLike };  // kLike: what is made has the name of `of`

  // In the computation of `of`, which is to be replaced.
  explicit Editor(Instr& of, Naming naming = Naming::kLike)
      : of_(of), replaced_(&of), computation_(*of.parent()), naming_(naming) {}
  // In any computation, without names.
  Editor(const Instr& like, Computation& in)
      : of_(like), computation_(in), naming_(Naming::kUnnamed) {}
  // In the computation of `like`, which stays.
  static Editor Beside(const Instr& like) { return {like, *like.parent()}; }

  // ---- Of a stated shape. Null when an operand is null.
  Instr* Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {},
              Computation* called = nullptr);
  Instr* Constant(Literal value);
  // A scalar in every element; the scalar itself where a scalar is asked for.
  Instr* Broadcast(Instr* scalar, const Shape& shape);
  // A number in every element, as a broadcast scalar.
  Instr* Filled(const Shape& shape, double number);
  Instr* Filled(const Shape& shape, const Literal& scalar);
  // The same where it is so already.
  Instr* Reshaped(Instr* x, const Dims& dims);
  Instr* Converted(Instr* x, ElementType type);
  Instr* Element(Instr* tuple, size_t i);
  // Exactly `instr`, its shape and origins too, with these operands, of the shapes its own have.
  Instr* Copy(const Instr& instr, std::vector<Instr*> operands);

  // ---- Of the shape that inference gives. Null when an operand is null or inference rejects
  // them, so that a replacement is written without looking at each step.
  Instr* Make(Op op, std::vector<Instr*> operands, Attrs attrs = {});
  // The same with this shape, which is checked.
  Instr* MakeShaped(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {});
  // Like `instr` (attributes, called computations) with other operands.
  Instr* MakeLike(const Instr& instr, std::vector<Instr*> operands);
  Instr* MakeLike(const Instr& instr, std::vector<Instr*> operands, Attrs attrs);
  Instr* MakeCalling(Op op, std::vector<Instr*> operands, Attrs attrs,
                     std::span<Computation* const> called, size_t captures = 0);

  // ---- Formulas (rewrite/expand/term.h): x * 2.0 + y makes two instructions.
  Term TermOf(Instr* instr) { return {this, instr}; }
  Term Operand(size_t i) { return TermOf(of_.operand(i)); }
  Instr* MakeTerm(Op op, const Shape& shape, std::vector<Instr*> operands,
                  const Attrs& attrs) override;

  // ---- Replacement.
  // All uses of `of` become uses of `to`, also as the root, and `of` is removed.
  void Replace(Instr* to) { Replace(*replaced_, to); }
  // The same of another instruction of the computation.
  void Replace(Instr& from, Instr* to);
  // The same of a tuple, or of an array as one value: elements of it that are taken become the
  // values themselves, and a tuple is made of them only where it is used as a whole.
  void ReplaceParts(const std::vector<Instr*>& values);
  // Whether nothing that the program states of `of` is lost (replace.h); a new instruction takes
  // over its layout.
  bool CanReplace(Instr* to);
  // Replaces `of`, which stays without users, if CanReplace; else removes all that was made. A new
  // instruction without a name gets that of `of`.
  bool TryReplace(Instr* to);
  // Removes all that was made.
  void Discard();

  const std::vector<Instr*>& made() const { return made_; }
  bool Made(const Instr* instr) const;

 private:
  Instr* Append(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                std::span<Computation* const> called, size_t captures);

  const Instr& of_;
  Instr* replaced_ = nullptr;  // `of`, where it is to be replaced
  Computation& computation_;
  Naming naming_;
  std::vector<Instr*> made_;
};

// Whether formulas can be written over arrays of it: sizes are known, elements are numbers. Of a
// tuple: each.
bool IsOrdinary(const Shape& shape);

// The body of a sum that is made in the place of an instruction.
Computation* AdditionFor(const Instr& of, ElementType type);

}  // namespace tokamak

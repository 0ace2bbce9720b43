#pragma once

#include <span>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Passes and rules create and replace instructions only through Editor, which preserves metadata:
//
//   origins   A new instruction gets the origins and text position of the instruction it is created
//             for. A replaced instruction passes its origins on. Fusion constraints (pins) are
//             origins, too.
//   extras    Sharding, frontend attributes and control predecessors move to a new instruction. An
//             existing instruction keeps its own.
//   names     Kernels and reports are named after instructions; see Naming.
//
// New computations (bodies of reductions, steps of loops) are built with ir/builder.h.
// rewrite/loop_edit.h adds and removes carried values of loops, and rewrite/term.h lets formulas be
// written with operators; both create their instructions here.
class Editor {
 public:
  enum class Naming : bool { kUnnamed, kLike };  // kLike: new instructions get the name of `of`

  // Edits the computation of `of`, which is to be replaced.
  explicit Editor(Instr& of, Naming naming = Naming::kLike)
      : of_(of), replaced_(&of), computation_(*of.parent()), naming_(naming) {}
  // Edits any computation, without names.
  Editor(const Instr& like, Computation& in)
      : of_(like), computation_(in), naming_(Naming::kUnnamed) {}
  // Edits the computation of `like`, which stays.
  static Editor Beside(const Instr& like) { return {like, *like.parent()}; }

  // ---- Creation with an explicit shape. Null if an operand is null.
  Instr* Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {},
              Computation* called = nullptr);
  Instr* Constant(Literal value);
  // Broadcasts a scalar to `shape`; returns the scalar itself if `shape` is a scalar.
  Instr* Broadcast(Instr* scalar, const Shape& shape);
  // An array filled with a number: a broadcast scalar constant.
  Instr* Filled(const Shape& shape, double number);
  Instr* Filled(const Shape& shape, const Literal& scalar);
  // Returns x itself if it already has these dimensions.
  Instr* Reshaped(Instr* x, const Dims& dims);
  Instr* Converted(Instr* x, ElementType type);
  Instr* Element(Instr* tuple, size_t i);
  // An exact copy of `instr`, including shape and origins, with other operands of the same shapes.
  Instr* Copy(const Instr& instr, std::vector<Instr*> operands);

  // ---- Creation with an inferred shape. Null if an operand is null or inference rejects the
  // operands, so that a replacement can be written without checking each step.
  Instr* Make(Op op, std::vector<Instr*> operands, Attrs attrs = {});
  // Creates with this shape, which inference checks.
  Instr* MakeShaped(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {});
  // Like `instr` (attributes, called computations) with other operands.
  Instr* MakeLike(const Instr& instr, std::vector<Instr*> operands);
  Instr* MakeLike(const Instr& instr, std::vector<Instr*> operands, Attrs attrs);
  Instr* MakeCalling(Op op, std::vector<Instr*> operands, Attrs attrs,
                     std::span<Computation* const> called, size_t captures = 0);

  // ---- Replacement.
  // Replaces all uses of `of` by `to`, also as the root, and removes `of`.
  void Replace(Instr* to) { Replace(*replaced_, to); }
  // Does the same for another instruction of the computation.
  void Replace(Instr& from, Instr* to);
  // Replaces a tuple by its elements, or an array by one value. Uses of single elements become uses
  // of the values; a tuple is created only for uses of the whole tuple.
  void ReplaceParts(const std::vector<Instr*>& values);
  // Whether the replacement preserves everything the program states about `of` (replace.h). A new
  // instruction takes over its layout.
  bool CanReplace(Instr* to);
  // Replaces `of`, which stays without users, if CanReplace; otherwise removes all created
  // instructions. A new instruction without a name gets the name of `of`.
  bool TryReplace(Instr* to);
  // Removes all created instructions.
  void Discard();

  const std::vector<Instr*>& made() const { return made_; }
  bool Made(const Instr* instr) const;

 private:
  Instr* Append(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                std::span<Computation* const> called, size_t captures);

  const Instr& of_;
  Instr* replaced_ = nullptr;  // `of`, if it is to be replaced
  Computation& computation_;
  Naming naming_;
  std::vector<Instr*> made_;
};

// Whether formulas can be applied to arrays of this shape: sizes are static, elements are numbers.
// A tuple qualifies if all its elements do.
bool IsOrdinary(const Shape& shape);
// Whether the shapes of the instruction and of all its operands qualify.
bool IsOrdinary(const Instr& instr);

// A reducer computation that adds two scalars, created for `of`.
Computation* AdditionFor(const Instr& of, ElementType type);

}  // namespace tokamak

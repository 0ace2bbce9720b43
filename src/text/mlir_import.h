#pragma once

// From ops of MLIR dialects to instructions. The text reader and the bytecode
// reader both tell this importer what they read, in the order of the program:
//
//   MlirImporter importer(file);
//   importer.BeginFunction(...);  importer.AddArgument(...) ...
//     importer.Localize(operands);              // before the op's regions
//     importer.BeginRegions(op);
//       importer.BeginRegion(); importer.AddArgument(...) ... ops ...; importer.EndRegion(...);
//     importer.EndRegions();                    // then AddOp with those regions
//     importer.AddOp(...);
//   importer.EndFunction(...);
//   importer.Finish();
//
// What a region uses from outside becomes a parameter of its computation (or,
// if it is a constant, a copy of it) the moment AddOp or Localize meets it, as
// the top of ir/ir.h says; AddOp then hands the outer values to the op.
//
// Attributes are given as AttrValue, whatever their spelling was:
//   integer lists: DenseArrayAttr, an AttrList of IntAttr, or an integer Literal;
//   enums: EnumAttr, a string, or an integer where MLIR has one;
//   #stablehlo.gather<...> and its kind: a RecordAttr whose fields are those of
//     the attribute, or its fields directly among the op's attributes (VHLO);
//   sdy attributes: the records of text/mlir_sdy.h;
//   symbols: SymbolAttr, or a string (VHLO).
// VHLO's explicit defaults mean the same as absence.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// One attribute of an op, argument or function. `name` need only live as long
// as the call that takes it.
struct MlirAttr {
  std::string_view name;
  AttrValue value;
};

// What a name such as "stablehlo.add" or "func.return" means: a row of a table.
struct MlirOp;
// Null when no dialect that we know has the op. Constant time; look it up once
// per name and keep it.
const MlirOp* FindMlirOp(std::string_view name);
std::string_view NameOf(const MlirOp& op);

// Remembers what a list of inherent attributes of one op means. Valid for ops
// of the same MlirOp with equal attributes; filled by AddOp where the meaning
// does not depend on the operands.
struct MlirAttrCache {
  bool filled = false;
  Attrs attrs;
};

struct MlirOpInput {
  const MlirOp* op = nullptr;
  std::span<Instr* const> operands = {};  // of this computation or an enclosing one
  std::span<const Shape> results = {};    // as written
  std::span<const MlirAttr> attrs = {};   // inherent and discardable, in any order
  std::span<Computation* const> regions = {};
  TextPos pos = {};
  OriginId origins = OriginId::kNone;
  // When given and filled, `attrs` holds the discardable attributes only.
  MlirAttrCache* cache = nullptr;
};

struct MlirFunction {
  std::string_view name;
  bool is_public = true;
  TextPos pos;
  OriginId origins = OriginId::kNone;
};

class MlirImporter {
 public:
  explicit MlirImporter(std::string file);

  Module& module() { return *module_; }
  // The computation that is being filled; null between functions.
  Computation* current() const { return frames_.empty() ? nullptr : frames_.back().computation; }

  // -- the module itself
  Status AddModuleAttribute(std::string_view name, AttrValue value, TextPos pos);
  Status AddMesh(Mesh mesh, TextPos pos);
  // The name of a mesh that is written inside a sharding: that of an equal row
  // of the table, or of a new one.
  std::string InternMesh(Mesh mesh);

  // -- functions
  Status BeginFunction(const MlirFunction& function);
  // Of a function or, between BeginRegion and its first op, of a region.
  Result<Instr*> AddArgument(Shape shape, std::string_view name, std::span<const MlirAttr> attrs,
                             TextPos pos, OriginId origins = OriginId::kNone);
  // Attributes of an argument that become known later.
  Status AddArgumentAttrs(Instr* argument, std::span<const MlirAttr> attrs, TextPos pos);
  // The shapes are compared with what the function returned. `result_attrs` has
  // one list per result, or is empty. A function without a body is an error.
  Status EndFunction(std::span<const Shape> results,
                     std::span<const std::vector<MlirAttr>> result_attrs,
                     std::span<const MlirAttr> attrs, TextPos pos);

  // -- regions of one op, which AddOp takes right after EndRegions
  void BeginRegions(const MlirOp& op);
  // TK1003 when nested too deeply.
  Status BeginRegion(TextPos pos);
  // A region must have ended with a terminator (an AddOp of some "return").
  Result<Computation*> EndRegion(TextPos pos);
  void EndRegions();

  // -- ops
  // Replaces operands from outside the current region by what stands for them
  // inside. AddOp does it too; calling it before the op's regions keeps the
  // order of parameters independent of them.
  void Localize(std::span<Instr*> operands);
  // Appends one value per result to `values`. A result of an op with several
  // is a get-tuple-element that was added right after the op.
  Status AddOp(const MlirOpInput& input, std::vector<Instr*>& values);

  // Resolves symbols, finds the entry. The importer is done after this.
  Result<std::unique_ptr<Module>> Finish();

  // An error of `file` at `pos`.
  Error At(TextPos pos, ErrorCode code, std::string message) const;

  // -- for the builders of ops (mlir_build.cc)
  // Makes `instr` call the function `symbol` as its computation `index`, once
  // that is known.
  void CallSymbol(Instr* instr, size_t index, std::string_view symbol, TextPos pos);
  // What the regions of the op being added took from outside, in order of
  // first use: one list for all regions, or one for each.
  std::span<Instr* const> captures(size_t region = 0) const;
  // What stands outside for a value inside region `region`; null if nothing does.
  Instr* OuterOf(size_t region, const Instr* inner) const;
  // Takes the regions of the op being added out of the module again.
  void DropRegions(std::span<Computation* const> regions);
  // Makes a region's computation a private function of about that name.
  void NameComputation(Computation* computation, const std::string& name);

 private:
  // What one region took from outside.
  struct Captures {
    std::vector<Instr*> outer;  // parameter arguments + i stands for outer[i]
    std::unordered_map<const Instr*, size_t> index;
  };
  struct Frame {
    Computation* computation = nullptr;
    size_t arguments = 0;
    bool terminated = false;
    TextPos pos;
    std::unordered_map<const Instr*, Instr*> inner_of;  // also copies of constants
    std::vector<std::pair<Instr*, std::vector<int64_t>>> control;
    size_t computations = 0;  // of the module, when the region began
    size_t pending = 0;       // calls to be resolved, then
  };
  // The regions of one op.
  struct Group {
    bool shared = true;
    size_t depth = 0;  // frames outside
    std::vector<Frame> done;
    std::vector<Captures> captures;  // one if shared
  };
  struct PendingCall {
    Instr* instr = nullptr;
    size_t index = 0;
    std::string symbol;
    TextPos pos;
  };
  // Of a function, until the entry is known.
  struct ArgumentFacts {
    std::vector<std::pair<Instr*, AttrValue>> aliases, donors;  // by parameter
  };

  Instr* LocalOf(Instr* outer, size_t frame);
  Status AddReturn(const MlirOpInput& input);
  Status ApplyArgumentAttr(Instr* parameter, const MlirAttr& attr, TextPos pos);
  Status ApplyExtras(Instr* instr, std::span<const MlirAttr> attrs, uint64_t used, TextPos pos);
  Status ApplyResultAttrs(Computation& computation,
                          std::span<const std::vector<MlirAttr>> result_attrs, TextPos pos);
  Status ApplyFunctionAttrs(Computation& computation, std::span<const MlirAttr> attrs, TextPos pos);
  Status ApplyFacts();
  Status ApplyModuleFacts();
  Result<Sharding> ReadSharding(const AttrValue& value, TextPos pos);
  Result<Sharding> ReadHloSharding(std::string_view text, TextPos pos);
  Status ResolveSymbols();
  Status ResolveControl(Frame& frame);
  Status FindEntry();
  friend class MlirBuilder;

  std::unique_ptr<Module> module_;
  std::vector<Frame> frames_;
  std::vector<Group> groups_;
  Group done_;  // of the op whose AddOp comes next
  std::unordered_map<std::string, Computation*> functions_;
  std::vector<PendingCall> pending_;
  std::unordered_map<const Computation*, ArgumentFacts> facts_;
  AttrDict module_facts_;  // tokamak.module: what only HLO's header says
};

}  // namespace tokamak

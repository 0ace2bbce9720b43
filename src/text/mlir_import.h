#pragma once

// Builds instructions from ops of MLIR dialects. The text reader and the bytecode reader both drive
// this importer in program order:
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
// A region's use of an outer value becomes a parameter of its computation, or a copy if the value
// is a constant (see the top of ir/ir.h). This happens as soon as AddOp or Localize sees the use.
// AddOp then passes the outer values to the op.
//
// Attributes are passed as AttrValue, independent of their spelling:
//   integer lists: DenseArrayAttr, an AttrList of IntAttr, or an integer Literal;
//   enums: EnumAttr, a string, or an integer where MLIR has one;
//   #stablehlo.gather<...> and similar: a RecordAttr with the fields of the attribute, or the
//     fields directly among the op's attributes (VHLO);
//   sdy attributes: the records of text/mlir_sdy.h;
//   symbols: SymbolAttr, or a string (VHLO).
// VHLO's explicit defaults are equivalent to absent attributes.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// One attribute of an op, argument or function. `name` must live only as long as the call that
// receives it.
struct MlirAttr {
  std::string_view name;
  AttrValue value;
};

// The table row for a name such as "stablehlo.add" or "func.return".
struct MlirOp;
// Returns null if no supported dialect has the op. Constant time; look it up once per name and
// cache the result.
const MlirOp* FindMlirOp(std::string_view name);
// All names that it finds, sorted, except Tokamak's own.
std::vector<std::string_view> MlirOpNames();
std::string_view NameOf(const MlirOp& op);

// Caches the converted inherent attributes of an op. Valid for ops of the same MlirOp with equal
// attributes; filled by AddOp if the conversion does not depend on the operands.
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
  // If set and filled, `attrs` holds the discardable attributes only.
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
  // The computation being built; null between functions.
  Computation* current() const { return frames_.empty() ? nullptr : frames_.back().computation; }

  // -- the module
  Status AddModuleAttribute(std::string_view name, AttrValue value, TextPos pos);
  Status AddMesh(Mesh mesh, TextPos pos);
  // Returns the name of a mesh that is written inside a sharding: that of an equal row of the mesh
  // table, or of a new row.
  std::string InternMesh(Mesh mesh);

  // -- functions
  Status BeginFunction(const MlirFunction& function);
  // Adds an argument of a function or, between BeginRegion and its first op, of a region.
  Result<Instr*> AddArgument(Shape shape, std::string_view name, std::span<const MlirAttr> attrs,
                             TextPos pos, OriginId origins = OriginId::kNone);
  // Attributes of an argument that become known later.
  Status AddArgumentAttrs(Instr* argument, std::span<const MlirAttr> attrs, TextPos pos);
  // Checks the shapes against those the function returned. `result_attrs` has one list per result,
  // or is empty. A function without a body is an error.
  Status EndFunction(std::span<const Shape> results,
                     std::span<const std::vector<MlirAttr>> result_attrs,
                     std::span<const MlirAttr> attrs, TextPos pos);

  // -- regions of one op, which AddOp consumes right after EndRegions
  void BeginRegions(const MlirOp& op);
  // Returns TK1003 if nested too deeply.
  Status BeginRegion(TextPos pos);
  // The region must end with a terminator (an AddOp of a "return").
  Result<Computation*> EndRegion(TextPos pos);
  void EndRegions();

  // -- ops
  //
  // Replaces operands from outside the current region by the values that represent them inside.
  // AddOp does this too; calling it before the op's regions makes the parameter order independent
  // of them.
  void Localize(std::span<Instr*> operands);
  // Appends one value per result to `values`. Each result of an op with several results is a
  // get-tuple-element added right after the op.
  Status AddOp(const MlirOpInput& input, std::vector<Instr*>& values);

  // Resolves symbols and finds the entry. The importer must not be used afterwards.
  Result<std::unique_ptr<Module>> Finish();

  // An error of `file` at `pos`.
  Error At(TextPos pos, ErrorCode code, std::string message) const;

  // -- for the builders of ops (mlir_build.cc)
  //
  // Makes `instr` call the function `symbol` as its computation `index`, once the function is
  // known.
  void CallSymbol(Instr* instr, size_t index, std::string_view symbol, TextPos pos);
  // The outer values captured by the regions of the op being added, in order of first use: one list
  // for all regions, or one per region.
  std::span<Instr* const> captures(size_t region = 0) const;
  // The outer value that `inner` of region `region` represents; null if none.
  Instr* OuterOf(size_t region, const Instr* inner) const;
  // Removes the regions of the op being added from the module.
  void DropRegions(std::span<Computation* const> regions);
  // Makes a region's computation a private function with a name derived from `name`.
  void NameComputation(Computation* computation, const std::string& name);

 private:
  // The values that one region captures.
  struct Captures {
    std::vector<Instr*> outer;  // outer[i] is passed as parameter arguments + i
    std::unordered_map<const Instr*, size_t> index;
  };
  struct Frame {
    Computation* computation = nullptr;
    size_t arguments = 0;
    bool terminated = false;
    TextPos pos;
    std::unordered_map<const Instr*, Instr*> inner_of;  // also copies of constants
    std::vector<std::pair<Instr*, std::vector<int64_t>>> control;
    size_t computations = 0;  // of the module, at the start of the region
    size_t pending = 0;       // unresolved calls at the start of the region
  };
  // The regions of one op.
  struct RegionGroup {
    bool shared = true;
    size_t depth = 0;  // number of enclosing frames
    std::vector<Frame> done;
    std::vector<Captures> captures;  // a single one if shared
  };
  struct PendingCall {
    Instr* instr = nullptr;
    size_t index = 0;
    std::string symbol;
    TextPos pos;
  };
  // Facts about a function's arguments, until the entry is known.
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
  std::vector<RegionGroup> groups_;
  RegionGroup done_;  // of the op that the next AddOp adds
  std::unordered_map<std::string, Computation*> functions_;
  std::vector<PendingCall> pending_;
  std::unordered_map<const Computation*, ArgumentFacts> facts_;
  AttrDict module_facts_;  // tokamak.module: facts that only HLO's header states
};

}  // namespace tokamak

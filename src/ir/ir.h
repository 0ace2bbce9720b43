#pragma once

// The IR: a Module holds Computations, a Computation holds Instrs.
//
//   * An Instr has one Shape. An op with several results has a tuple shape, and get-tuple-element
//     extracts each result.
//   * Computations are closed: values that an MLIR region captures from outside become operands. A
//     while's captures become carried values; a conditional's become arguments of the branch. For
//     every other op they are the last `captures()` operands, and every computation that the op
//     calls takes them as its last parameters.
//   * while: operands are the carried values, one parameter each in condition and body. With one
//     operand (perhaps a tuple) the state is that value. Otherwise the state, the root of the body
//     and the result are the tuple of the operands.
//   * conditional: operand 0 is a pred (branch 0 if true, branch 1 if false) or an s32 index (out
//     of range: the last branch). The remaining operands are arguments: the first branch takes one
//     per parameter, then the second, and so on.
//   * Instructions are stored in program order; those with side effects run in that order, used or
//     not. The root of a computation may be any instruction.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/attrs.h"
#include "ir/op.h"
#include "ir/origin.h"
#include "ir/shape.h"
#include "ir/use_list.h"
#include "support/check.h"
#include "support/error.h"

namespace tokamak {

class Computation;
class Module;
class Instr;

enum class InstrId : uint32_t {};

// A position in the source text: line and column from 1. In bytecode, line is 0 and column holds
// the byte offset.
struct TextPos {
  uint32_t line = 0, column = 0;
};

// Rarely used properties of an instruction, allocated on demand.
struct InstrExtras {
  std::optional<Sharding> sharding;  // HLO's sharding=, mhlo.sharding, sdy.sharding
  std::optional<ShardingRule> sharding_rule;
  AttrDict frontend_attributes;  // HLO's frontend_attributes, mhlo.frontend_attributes
  AttrDict discardable;          // any other attribute that MLIR carries: "jax.foo"
  std::string backend_config;    // of ops other than custom-call, verbatim
  std::vector<Instr*> control_predecessors;
};

// Owned by its Computation; the pointer is valid until the instruction is removed.
class alignas(64) Instr {
 public:
  InstrId id() const { return id_; }
  Op op() const { return op_; }
  const OpInfo& info() const { return InfoOf(op_); }
  // For diagnostics only; may be empty and need not be unique. Printers make names unique.
  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  Computation* parent() const { return parent_; }

  std::span<Instr* const> operands() const { return operands_.instrs(); }
  Instr* operand(size_t i) const { return operands_.instrs()[i]; }
  size_t operand_count() const { return operands_.size(); }
  // One entry per use: an instruction that uses this one twice is listed twice. The order is
  // unspecified but deterministic.
  std::span<Instr* const> users() const { return users_.instrs(); }
  // Trailing operands that are captures (see the top of this file).
  size_t captures() const { return captures_; }

  std::span<Computation* const> called() const {
    if (called_ == nullptr) return {};
    return *called_;
  }
  Computation* called(size_t i) const { return (*called_)[i]; }

  const Attrs& attrs() const { return attrs_; }
  template <typename A>
  const A& attrs() const {
    return attrs_.As<A>();
  }

  OriginId origins() const { return origins_; }
  TextPos pos() const { return pos_; }
  // Never null: refers to an empty object if there are none.
  const InstrExtras& extras() const;
  bool has_extras() const { return extras_ != nullptr; }

  void set_name(std::string name) { name_ = std::move(name); }
  void set_shape(Shape shape) { shape_ = std::move(shape); }
  void set_attrs(Attrs attrs) { attrs_ = std::move(attrs); }
  void set_captures(size_t count) { captures_ = static_cast<uint16_t>(count); }
  void set_origins(OriginId origins) { origins_ = origins; }
  void set_pos(TextPos pos) { pos_ = pos; }
  void set_called(std::vector<Computation*> called);
  InstrExtras& mutable_extras();
  // Constant time, as are all edits of operands: each use stores its index among the users.
  void set_operand(size_t i, Instr* operand);
  void AddOperand(Instr* operand);
  // `before` runs first, although this instruction does not use it.
  void AddControlPredecessor(Instr* before);
  // Whether another instruction has, or had, this one among its control predecessors.
  bool is_control_predecessor() const { return is_control_predecessor_; }
  // Removed from its computation. The object stays alive until SetOrder, so worklists may still
  // point to it.
  bool is_removed() const { return removed_; }

 private:
  friend class Computation;
  friend class InstrStore;
  // Fields that traversals read share the first cache line.
  InstrId id_{};
  Op op_{};
  bool removed_ = false, is_control_predecessor_ = false;
  std::unique_ptr<InstrExtras> extras_;
  std::unique_ptr<std::vector<Computation*>> called_;  // null if it calls nothing
  Computation* parent_ = nullptr;
  // Both ends of a use store the index at the other end: entry i of operands_ holds this
  // instruction's index in that operand's users_, and entry k of users_ holds the index in that
  // user's operands_.
  UseList operands_;
  UseList users_;
  Shape shape_;
  Attrs attrs_;
  OriginId origins_ = OriginId::kNone;
  TextPos pos_;
  uint16_t captures_ = 0;
  std::string name_;

  void Link(size_t i);
  void Unlink(size_t i);
};

// Storage for instructions in order of creation. Instructions never move.
class InstrStore {
 public:
  InstrStore() = default;
  InstrStore(InstrStore&& other) noexcept { *this = std::move(other); }
  InstrStore& operator=(InstrStore&& other) noexcept {
    std::swap(slabs_, other.slabs_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~InstrStore();

  size_t size() const { return size_; }
  Instr& Add(Instr instr = {});
  // Calls visit(Instr&) for each instruction, in order.
  template <typename F>
  void ForEach(F&& visit) const {
    for (const Slab& slab : slabs_)
      for (size_t i = 0; i < slab.size; ++i) visit(slab.instrs[i]);
  }

 private:
  struct Slab {
    Instr* instrs;
    size_t size, capacity;
  };
  std::vector<Slab> slabs_;  // each larger than the previous one, up to a large page
  size_t size_ = 0;
};

// Properties of a function's result besides its shape.
struct ResultInfo {
  std::optional<Sharding> sharding;
  AttrDict attributes;  // jax.result_info, mhlo.memory_kind ...
  bool operator==(const ResultInfo&) const = default;
};

class Computation {
 public:
  // Out of line, like all code that owns instructions; otherwise every includer would compile it.
  Computation(Module* module, std::string name);
  ~Computation();
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  Module* module() const { return module_; }
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // Appends an instruction whose shape is known. Nothing is checked here; see infer.h for
  // verification and builder.h for building by hand.
  Instr* Append(Op op, Shape shape, std::vector<Instr*> operands = {}, Attrs attrs = {},
                std::string name = {});
  Instr* AppendParameter(int64_t number, Shape shape, std::string name = {});

  // All instructions in program order, without removed ones. Parameters may be anywhere. The result
  // is a snapshot: the computation may be edited while iterating over it.
  std::vector<Instr*> Instrs() const;
  // Topological order: operands and control predecessors before users. Equals program order if that
  // is already topological.
  std::vector<Instr*> PostOrder() const;
  size_t size() const { return instrs_.size() - removed_count_; }
  size_t removed_count() const { return removed_count_; }
  // The number of instructions with this op, in constant time. A pass uses it to skip computations
  // without relevant instructions.
  size_t CountOf(Op op) const { return counts_[static_cast<size_t>(op)]; }
  // The instructions that call computations, in program order; fast if there are none.
  std::vector<Instr*> Callers() const;
  bool has_callers() const { return caller_count_ > 0; }
  // One more than the greatest id; the size of side tables.
  size_t id_limit() const { return instrs_.size(); }

  // parameters()[i] is parameter i; never null in a verified computation.
  const std::vector<Instr*>& parameters() const { return parameters_; }
  Instr* parameter(size_t i) const { return parameters_[i]; }
  Instr* root() const { return root_; }
  void set_root(Instr* root) { root_ = root; }

  // Linear in the uses, and in the size of the computation if `from` is a control predecessor.
  void ReplaceUses(Instr* from, Instr* to);
  // Removes an instruction that has no users and is not the root. Linear in its operands.
  void Remove(Instr* instr);
  // Makes these instructions the parameters, in this order. Former parameters that are not among
  // them must be removed.
  void SetParameters(std::vector<Instr*> parameters);
  // Makes `order`, which lists every instruction once, the program order, and makes ids dense.
  // Invalidates pointers to and ids of instructions.
  void SetOrder(const std::vector<Instr*>& order);
  // SetOrder(PostOrder()), unless every operand precedes its users and nothing was removed.
  void PutInOrder();

  bool is_public = true;            // func.func public, or HLO's ENTRY
  std::string execution_thread;     // "": the main thread
  std::vector<ResultInfo> results;  // per result of a function; may be shorter
  AttrDict attributes;              // attributes of func.func itself
  OriginId origins = OriginId::kNone;
  TextPos pos;

 private:
  friend class Instr;
  Module* module_;
  std::string name_;
  InstrStore instrs_;
  std::vector<Instr*> all_;  // all instructions, including removed ones, so that snapshots need not
                             // dereference them
  std::vector<Instr*> parameters_;
  Instr* root_ = nullptr;
  size_t removed_count_ = 0, caller_count_ = 0;
  std::array<uint32_t, kOpCount> counts_{};
};

// Element `output` of the result shares memory with element `parameter_index` of a parameter.
struct InputOutputAlias {
  Dims output;
  int64_t parameter = 0;
  Dims parameter_index;
  bool must = false;
  bool operator==(const InputOutputAlias&) const = default;
};

// A parameter whose memory the program may overwrite.
struct BufferDonor {
  int64_t parameter = 0;
  Dims parameter_index;
  bool operator==(const BufferDonor&) const = default;
};

class Module {
 public:
  explicit Module(std::string name = {});
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  Computation* AddComputation(std::string name);
  // In the order they were added.
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  Computation* FindComputation(std::string_view name) const;  // linear
  size_t CountInstrs() const;                                 // of all computations
  void RemoveComputation(Computation* computation);           // it must have no callers
  // Removes every computation i with keep[i] == false. Remaining computations must not call it.
  void KeepComputations(const std::vector<bool>& keep);
  // Moves computation i to index positions[i]; `positions` is a permutation.
  void OrderComputations(const std::vector<size_t>& positions);
  // Callees before callers. Empty if calls form a cycle (the verifier rejects those).
  std::vector<Computation*> CalleesFirst() const;

  // The entry computation: ENTRY, or @main, or the only public function. Null for a module without
  // functions, or with several and no main.
  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }

  OriginTable& origins() { return origins_; }
  const OriginTable& origins() const { return origins_; }

  std::string file;  // the input file, for messages
  int64_t num_replicas = 1, num_partitions = 1;
  std::vector<Mesh> meshes;
  std::vector<InputOutputAlias> aliases;
  std::vector<BufferDonor> donors;
  // HLO's entry_computation_layout, if it differs from the shapes of the entry.
  std::vector<Shape> entry_parameter_layouts;
  std::optional<Shape> entry_result_layout;
  AttrDict frontend_attributes;
  AttrDict attributes;  // any other attribute of the module: jax.uses_shape_polymorphism ...

 private:
  std::string name_;
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  OriginTable origins_;
};

// A side table with one T per instruction of a computation.
template <typename T>
class InstrMap {
 public:
  explicit InstrMap(const Computation& computation, T value = {})
      : values_(computation.id_limit(), Slot{value}) {}
  T& operator[](const Instr* instr) { return values_[static_cast<size_t>(instr->id())].value; }
  const T& operator[](const Instr* instr) const {
    return values_[static_cast<size_t>(instr->id())].value;
  }

 private:
  struct Slot {  // so that a table of bools is not std::vector<bool>
    T value;
  };
  std::vector<Slot> values_;
};

// "add.3 = f32[2]", for messages.
std::string Describe(const Instr& instr);
// The position of the instruction in the input text.
TextSpan SpanOf(const Instr& instr);

}  // namespace tokamak

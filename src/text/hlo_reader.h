#pragma once

// The parser of HLO text. hlo_reader*.cc share this class.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "support/result.h"
#include "text/hlo_cursor.h"
#include "text/hlo_names.h"
#include "text/hlo_shape.h"
#include "text/hlo_values.h"

namespace tokamak {

// The module's frontend attribute that preserves the order of its computations.
inline constexpr std::string_view kHloOrderAttribute = "tokamak.order";

// Parses one module of HLO text in one pass: an instruction is created as soon as its line is
// parsed. Only references to computations that are defined further down are resolved at the end.
// Every function returns false after an error, which the cursor keeps.
class HloReader {
 public:
  HloReader(std::string_view text, const std::string& file, int first_line);
  Result<std::unique_ptr<Module>> Read();

 private:
  // An instruction whose line is being parsed.
  struct ParsedInstr {
    std::string_view name;
    const char* op_start = nullptr;
    Op op{};
    // The wrapped op of an async op that is spelled out: "reduce-scatter-start".
    std::optional<Op> wrapped;
    std::optional<Shape> shape;
    std::vector<Instr*> operands;
    // Called computations by role (condition, then body). Resolved once the name has been defined.
    std::vector<std::pair<std::string_view, const char*>> called;
    Literal literal;
    int64_t parameter = 0;
    Attrs attrs;
    AsyncAttrs async;
    bool is_composite = false;
    int64_t captures = 0;
    std::unique_ptr<InstrExtras> extras;
    std::vector<std::pair<std::string_view, const char*>> control;
    OriginId origins = OriginId::kNone;

    InstrExtras& Extras() {
      if (extras == nullptr) extras = std::make_unique<InstrExtras>();
      return *extras;
    }
  };
  enum class AttrMatch : uint8_t { kNo, kYes, kFailed };
  static AttrMatch AsAttrMatch(bool fine) { return fine ? AttrMatch::kYes : AttrMatch::kFailed; }

  // hlo_reader_header.cc
  bool ReadHeader();
  bool ReadHeaderAttribute(std::string_view name, const char* start);
  bool ReadAliases();
  bool ReadDonors();
  bool ReadEntryLayout();
  bool ReadMeshTable();
  void TakeOrder(const char* where);
  bool ReadTables();
  bool ReadStringTable(std::vector<std::string>& table);
  bool ReadLocations();
  bool ReadFrames(const std::vector<std::string>& files, const std::vector<std::string>& functions);
  bool ReadFrontendAttributes(AttrDict& dict);
  bool ReadMetadata(OriginId& origins);
  bool ParseMetadata(std::string_view text, Origin& origin);

  // hlo_reader.cc
  bool ReadComputations();
  bool ReadComputation();
  // Parses { instructions } into computation_; `where` locates errors about the computation.
  bool ReadBody(const char* where);
  // Whether the next brace opens instructions (to_apply={ a = ... }) rather than a list of names.
  bool OpensBody() const;
  // Parses a computation written inline instead of its name; `key` identifies it.
  bool ReadInlineComputation(std::string name, std::string_view& key);
  bool ReadComputationAttributes(Computation& computation);
  bool ReadResults(Computation& computation);
  bool ReadInstruction();
  Instr* ReadRightSide(std::string_view name, bool allow_attributes);
  bool ReadOp(ParsedInstr& parsed_instr);
  bool ReadOperands(ParsedInstr& parsed_instr);
  bool ReadOperand(ParsedInstr& parsed_instr);
  bool CheckParameters(const char* where);
  bool Resolve();
  bool Reorder();
  bool CompareEntryLayout();
  bool FindEntry();

  // hlo_reader_attrs.cc
  bool ReadAttributes(ParsedInstr& parsed_instr, bool allow_attributes);
  template <typename A>
  bool ReadTyped(ParsedInstr& parsed_instr, bool allow_attributes);
  AttrMatch ReadCommon(ParsedInstr& parsed_instr, std::string_view name);
  AttrMatch ReadExtra(ParsedInstr& parsed_instr, std::string_view name);
  AttrMatch ReadCalled(ParsedInstr& parsed_instr, std::string_view name);
  bool ReadBackendConfig(std::string& text);
  bool CheckRequired(const ParsedInstr& parsed_instr);
  bool Saw(std::string_view attribute) const;
  Computation* FindComputation(std::string_view name) const {
    Computation* const* found = computations_.Find(name);
    return found == nullptr ? nullptr : *found;
  }

  // hlo_reader_instr.cc
  Instr* MakeInstr(ParsedInstr& parsed_instr);
  bool InferMissingShape(ParsedInstr& parsed_instr);
  bool MakeWrapped(ParsedInstr& parsed_instr, Computation*& wrapped);
  void MakeComposite(ParsedInstr& parsed_instr);
  void Link(Instr* instr, const ParsedInstr& parsed_instr);
  HloValueContext Values() { return {cursor_, shapes_, module_->meshes}; }

  std::string_view text_;
  HloCursor cursor_;
  std::unique_ptr<Module> module_;
  HloShapeReader shapes_;

  Computation* computation_ = nullptr;  // the one being parsed
  NameTable<Instr*> names_;             // its instructions
  NameTable<Computation*> computations_;
  Computation* marked_entry_ = nullptr;
  bool no_entry_ = false;
  Dims order_;  // index of each computation in the module, if it differs from the order in the text
  const char* order_where_ = nullptr;
  std::vector<Computation*> public_, private_;
  std::deque<std::string> inline_keys_;  // of computations that have no name in the text

  std::vector<std::string_view> seen_;  // attribute names of the instruction being parsed

  // References to definitions that may follow further down.
  struct CallLink {
    Instr* instr;
    std::vector<std::pair<std::string_view, const char*>> names;
  };
  struct ControlLink {
    Instr* instr;
    std::string_view name;
    const char* where;
  };
  std::vector<CallLink> call_links_;
  std::vector<ControlLink> control_links_;  // of this computation
  int64_t parameter_words_ = -1;            // number of occurrences of "parameter(" in the text

  struct EntryLayout {
    std::vector<Shape> parameters;
    Shape result;
    const char* where;
  };
  std::optional<EntryLayout> entry_layout_;

  NameTable<OriginId> metadata_cache_;
  struct Location {
    int64_t file = 0, function = 0, line = 0, end_line = 0, column = 0, end_column = 0;
  };
  std::vector<Location> locations_;
  std::vector<FrameId> frames_;  // by stack_frame_id, from 1
};

}  // namespace tokamak

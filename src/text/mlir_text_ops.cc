// Values, regions and ops in generic form:
//   %0:2 = "dialect.op"(%a, %b#1) <{properties}> ({ region }) {attributes} : (t, t) -> (t, t)
//   loc(...)

#include <algorithm>
#include <cstring>

#include "support/hash.h"
#include "support/near_names.h"
#include "text/mlir_ops.h"
#include "text/mlir_text.h"

namespace tokamak {

// ---- names

uint32_t MlirScopes::HashOf(std::string_view name) {
  uint64_t hash = name.size();
  while (name.size() > 8) {
    uint64_t word;
    std::memcpy(&word, name.data(), 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    name.remove_prefix(8);
  }
  // The remainder without a loop: two overlapping halves.
  uint64_t word = 0;
  if (size_t size = name.size(); size >= 4) {
    uint32_t first, last;
    std::memcpy(&first, name.data(), 4);
    std::memcpy(&last, name.data() + size - 4, 4);
    word = first | uint64_t{last} << 32;
  } else if (size > 0) {
    for (size_t i : {size_t{0}, size / 2, size - 1})
      word = word << 8 | static_cast<unsigned char>(name[i]);
  }
  // Two multiplications, so that the last characters of a name affect the low bits too.
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
  return static_cast<uint32_t>(hash >> 32);
}

const MlirScopes::Slot* MlirScopes::FindIn(const Scope& scope, std::string_view name,
                                           uint32_t hash) {
  if (scope.used == 0) return nullptr;
  size_t mask = scope.slots.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = scope.slots[i];
    if (slot.life != scope.life) return nullptr;
    if (slot.hash == hash && slot.name == name) return &slot;
  }
}

MlirScopes::Slot& MlirScopes::FreeSlot(Scope& scope, uint32_t hash) {
  size_t mask = scope.slots.size() - 1;
  size_t i = hash & mask;
  while (scope.slots[i].life == scope.life) i = (i + 1) & mask;
  return scope.slots[i];
}

void MlirScopes::Grow(Scope& scope) {
  // Small tables grow faster: most functions have hundreds of values.
  const size_t times = scope.slots.size() < 4096 ? 4 : 2;
  std::vector<Slot> old(std::max<size_t>(16, scope.slots.size() * times));
  old.swap(scope.slots);
  for (const Slot& slot : old)
    if (slot.life == scope.life) FreeSlot(scope, slot.hash) = slot;
}

void MlirScopes::Clear() {
  depth_ = 0;
  pool_.clear();
}

void MlirScopes::Push() {
  if (depth_ == scopes_.size()) scopes_.emplace_back();
  Scope& scope = scopes_[depth_++];
  scope.used = 0;
  if (++scope.life == 0) scope = {};  // the counter wrapped around
}

void MlirScopes::Pop() {
  --depth_;
}

const MlirScopes::Values* MlirScopes::Find(std::string_view name) const {
  return Find(name, HashOf(name));
}

const MlirScopes::Values* MlirScopes::Find(std::string_view name, uint32_t hash) const {
  for (size_t i = depth_; i-- > 0;)
    if (const Slot* slot = FindIn(scopes_[i], name, hash)) return &slot->values;
  return nullptr;
}

bool MlirScopes::Define(std::string_view name, std::span<Instr* const> values) {
  const uint32_t hash = HashOf(name);
  if (Find(name, hash) != nullptr) return false;
  Scope& scope = scopes_[depth_ - 1];
  if ((scope.used + 1) * 4 > scope.slots.size() * 3) Grow(scope);
  const Values added{static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(values.size())};
  FreeSlot(scope, hash) = {name, hash, scope.life, added};
  pool_.insert(pool_.end(), values.begin(), values.end());
  ++scope.used;
  return true;
}

// ---- ops

void MlirTextReader::OpText::Clear() {
  op = nullptr;
  operands.clear();
  operand_pos.clear();
  operand_types.clear();
  results.clear();
  attrs.clear();
  regions.clear();
  has_types = same_types = false;
}

const MlirOp* MlirTextReader::FindOp(std::string_view name, TextPos pos) {
  uint64_t word = name.size();
  if (name.size() >= 8) std::memcpy(&word, name.data() + name.size() - 8, 8);
  RecentOp& recent = recent_ops_[((word ^ name.size()) * 0x9e3779b97f4a7c15u) >> 57];
  if (recent.op != nullptr && recent.name == name) return recent.op;
  const MlirOp* op = FindMlirOp(name);
  if (op == nullptr) {
    FailAt(pos, ErrorCode::kMlirUnknownOp,
           ShownWord(name) + ": unknown op" + DidYouMean(name, MlirOpNames()));
    return nullptr;
  }
  recent = {name, op};
  return op;
}

// %name or %name#2
bool MlirTextReader::ParseOperand(std::vector<Instr*>& operands, std::vector<TextPos>* positions) {
  if (cursor_.Peek() != '%') return Expected("a value");
  TextPos pos = cursor_.Pos();
  cursor_.Advance();
  std::string_view name = cursor_.Name();
  const MlirScopes::Values* values = scopes_.Find(name);
  if (values == nullptr)
    return FailAt(pos, ErrorCode::kMlirUndefinedValue,
                  "%" + std::string(name) + " is not defined here");
  int64_t index = 0;
  bool numbered = cursor_.Here() == '#';
  if (numbered) {
    cursor_.Advance();
    if (!ParseInt(index)) return false;
  }
  if (index < 0 || index >= values->count)
    return FailAt(pos, ErrorCode::kMlirUndefinedValue,
                  "%" + std::string(name) + "#" + std::to_string(index) + ": the op has " +
                      std::to_string(values->count) + " results");
  operands.push_back(scopes_.value(values->first + static_cast<size_t>(index)));
  if (positions != nullptr) positions->push_back(pos);
  return true;
}

bool MlirTextReader::ParseOperandList(OpText& op, char close) {
  if (cursor_.Eat(close)) return true;
  do {
    if (!ParseOperand(op.operands, &op.operand_pos)) return false;
  } while (cursor_.Eat(','));
  return Expect(close);
}

bool MlirTextReader::CheckOperandTypes(OpText& op) {
  if (!op.has_types) return true;
  if (!op.same_types && op.operand_types.size() != op.operands.size())
    return FailAt(op.pos, ErrorCode::kMlirOperandTypes,
                  std::string(NameOf(*op.op)) + ": " + std::to_string(op.operands.size()) +
                      " operands have " + std::to_string(op.operand_types.size()) + " types");
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Shape& defined = op.operands[i]->shape();
    const Shape& written = op.same_types ? op.results[0] : op.operand_types[i];
    if (defined == written || Compatible(defined, written)) continue;
    // A result that our writer left inside its tuple.
    if (defined.IsTuple() && op.op->action == MlirAction::kTuple) continue;
    if (op.op->action == MlirAction::kCast) continue;
    TextPos pos = i < op.operand_pos.size() ? op.operand_pos[i] : op.pos;
    return FailAt(pos, ErrorCode::kMlirOperandTypes,
                  std::string(NameOf(*op.op)) + ": operand " + std::to_string(i) + " is " +
                      ToString(defined) + ", its type is written as " + ToString(written));
  }
  return true;
}

// %a, %b:2 = ...
bool MlirTextReader::ParseResultNames() {
  result_names_.clear();
  if (cursor_.Peek() != '%') return true;
  do {
    ResultName& result = result_names_.emplace_back();
    result.pos = cursor_.Pos();
    if (!Expect('%')) return false;
    result.name = cursor_.Name();
    if (result.name.empty()) return Expected("the name of a value");
    result.count = 1;
    if (cursor_.Here() == ':') {
      cursor_.Advance();
      int64_t count = 0;
      if (!ParseInt(count)) return false;
      if (count < 1 || count > (1 << 20))
        return FailAt(
            result.pos, ErrorCode::kMlirResultCount,
            "%" + std::string(result.name) + " names " + std::to_string(count) + " results");
      result.count = static_cast<uint32_t>(count);
    }
  } while (cursor_.Eat(','));
  return Expect('=');
}

bool MlirTextReader::DefineResults(TextPos pos) {
  size_t next = 0;
  for (const ResultName& result : result_names_) {
    if (next + result.count > values_.size()) break;
    std::span<Instr*> values(values_.data() + next, result.count);
    if (!scopes_.Define(result.name, values))
      return FailAt(result.pos, ErrorCode::kMlirRedefinedValue,
                    "%" + std::string(result.name) + " is defined twice");
    if (result.count == 1 && !IsMlirDigit(result.name[0]) && values[0]->name().empty() &&
        values[0]->op() != Op::kParameter)
      values[0]->set_name(std::string(result.name));
    next += result.count;
  }
  size_t named = 0;
  for (const ResultName& result : result_names_) named += result.count;
  if (!result_names_.empty() && named != values_.size())
    return FailAt(pos, ErrorCode::kMlirResultCount,
                  "the op has " + std::to_string(values_.size()) + " results, " +
                      std::to_string(named) + " are named");
  return true;
}

bool MlirTextReader::ParseOp() {
  if (!ParseResultNames()) return false;
  if (op_depth_ == op_pool_.size()) op_pool_.push_back(std::make_unique<OpText>());
  OpText& op = *op_pool_[op_depth_++];
  op.Clear();
  op.pos = cursor_.Pos();
  bool ok = false;
  // Regions inside the op overwrite the names.
  std::vector<ResultName> names;
  bool is_generic = cursor_.Peek() == '"';
  if (is_generic) {
    cursor_.Advance();
    std::string_view name = cursor_.Name();
    if (cursor_.Here() != '"') return Expected("'\"' after the name of an op");
    cursor_.Advance();
    op.op = FindOp(name, op.pos);
    names.swap(result_names_);
    ok = op.op != nullptr && ParseGenericOp(op);
  } else {
    std::string_view name = cursor_.Word();
    if (name.empty()) return Expected("an op");
    names.swap(result_names_);
    ok = ParsePrettyOp(op, name) && CheckAttrNames(op);
  }
  result_names_.swap(names);
  ok = ok && FinishOp(op);
  --op_depth_;
  return ok;
}

// A keyword may occur twice. A long attribute list comes from a dictionary and is sorted.
bool MlirTextReader::CheckAttrNames(const OpText& op) {
  constexpr size_t kFew = 16;  // names compared pairwise (chosen); beyond it they are sorted
  for (size_t i = 1; i < op.attrs.size(); ++i)
    for (size_t j = i < kFew ? 0 : i - 1; j < i; ++j)
      if (op.attrs[i].name == op.attrs[j].name)
        return FailAt(op.pos, ErrorCode::kMlirAttribute,
                      "attribute " + std::string(op.attrs[i].name) + " is given twice");
  return true;
}

bool MlirTextReader::FinishOp(OpText& op) {
  OriginId origins = OriginId::kNone;
  if (!ParseOptionalLoc(origins) || !CheckOperandTypes(op)) return false;
  MlirOpInput input;
  input.op = op.op;
  input.operands = op.operands;
  input.results = op.results;
  input.attrs = op.attrs;
  input.regions = op.regions;
  input.pos = op.pos;
  input.origins = origins;
  values_.clear();
  return Take(importer_.AddOp(input, values_)) && DefineResults(op.pos);
}

bool MlirTextReader::ParseGenericOp(OpText& op) {
  if (!Expect('(') || !ParseOperandList(op, ')')) return false;
  if (cursor_.Peek() == '[') return Fail(ErrorCode::kMlirBlocks, "an op has successors");
  importer_.Localize(op.operands);
  if (cursor_.StartsWith("<{")) {
    cursor_.Advance(2);
    if (!ParseAttrDictBody(op.attrs, '}') || !Expect('>')) return false;
  }
  if (cursor_.Peek() == '(' && !ParseRegionList(op)) return false;
  if (!ParseOptionalAttrDict(op.attrs) || !Expect(':')) return false;
  return ParseFunctionalTypes(op);
}

bool MlirTextReader::ParseRegionList(OpText& op) {
  importer_.BeginRegions(*op.op);
  if (!Expect('(')) return false;
  do {
    if (!Take(importer_.BeginRegion(cursor_.Pos()))) return false;
    if (!ParseRegion()) return false;
    Result<Computation*> region = importer_.EndRegion(cursor_.LastPos());
    if (!region.ok()) return Take(std::move(region.error()));
    op.regions.push_back(region.value());
  } while (cursor_.Eat(','));
  importer_.EndRegions();
  return Expect(')');
}

// ---- regions

// { ^bb0(%a: t): ops }. `arguments` is set for a printed form that names them before the brace.
bool MlirTextReader::ParseRegion(const std::vector<std::pair<std::string_view, Shape>>* arguments) {
  if (!Enter() || !Expect('{')) return false;
  scopes_.Push();
  bool ok = true;
  if (arguments != nullptr) {
    for (const auto& [name, shape] : *arguments) {
      std::string_view shown = name.empty() || IsMlirDigit(name[0]) ? std::string_view() : name;
      Result<Instr*> argument = importer_.AddArgument(shape, shown, {}, cursor_.Pos());
      if (!argument.ok()) return Take(std::move(argument.error()));
      Instr* value = argument.value();
      if (!scopes_.Define(name, {&value, 1}))
        return Fail(ErrorCode::kMlirRedefinedValue, "%" + std::string(name) + " is defined twice");
    }
  }
  ok = ParseRegionBody();
  scopes_.Pop();
  Leave();
  return ok && Expect('}');
}

bool MlirTextReader::ParseRegionBody() {
  if (cursor_.Peek() == '^' && !ParseBlockLabel()) return false;
  return ParseOps();
}

bool MlirTextReader::ParseOps() {
  while (cursor_.Peek() != '}') {
    if (cursor_.Peek() == '^')
      return Fail(ErrorCode::kMlirBlocks, "a region has more than one block");
    if (cursor_.left() == 0) return Expected("'}'");
    if (!ParseOp()) return false;
  }
  return true;
}

// ^bb0(%a: t loc(...), %b: t):
bool MlirTextReader::ParseBlockLabel() {
  cursor_.Advance();
  cursor_.Name();
  if (cursor_.Eat('(') && !cursor_.Eat(')')) {
    do {
      TextPos pos = cursor_.Pos();
      if (!Expect('%')) return false;
      std::string_view name = cursor_.Name();
      Shape shape;
      OriginId origins = OriginId::kNone;
      if (!Expect(':') || !ParseType(shape) || !ParseOptionalLoc(origins)) return false;
      std::string_view shown = name.empty() || IsMlirDigit(name[0]) ? std::string_view() : name;
      Result<Instr*> argument = importer_.AddArgument(std::move(shape), shown, {}, pos, origins);
      if (!argument.ok()) return Take(std::move(argument.error()));
      Instr* value = argument.value();
      if (!scopes_.Define(name, {&value, 1}))
        return FailAt(pos, ErrorCode::kMlirRedefinedValue,
                      "%" + std::string(name) + " is defined twice");
    } while (cursor_.Eat(','));
    if (!Expect(')')) return false;
  }
  return Expect(':');
}

}  // namespace tokamak

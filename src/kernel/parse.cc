#include "kernel/parse.h"

#include <charconv>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "kernel/kernel_cursor.h"
#include "support/limits.h"

namespace tokamak {
namespace {

// The bits of a literal of a type other than index and pred.
std::optional<Bits> BitsOfText(ScalarType type, std::string_view text) {
  const char *begin = text.data(), *end = begin + text.size();
  int width = InfoOf(type).bits;
  auto whole = [&](auto& value, int base) {
    auto [stop, error] = std::from_chars(begin, end, value, base);
    return error == std::errc() && stop == end;
  };
  if (text.starts_with("0x")) {
    Bits bits = 0;
    begin += 2;
    if (!whole(bits, 16) || (width < 64 && bits >> width != 0)) return std::nullopt;
    return bits;
  }
  if (IsFloat(type)) {
    double value = 0;
    float single = 0;
    bool is_f64 = type == ScalarType::kF64;
    auto [stop, error] =
        is_f64 ? std::from_chars(begin, end, value) : std::from_chars(begin, end, single);
    if (error != std::errc() || stop != end) return std::nullopt;
    return BitsOfDouble(type, is_f64 ? value : static_cast<double>(single));
  }
  if (IsSigned(type)) {
    int64_t value = 0;
    if (!whole(value, 10) || IntOfBits(type, BitsOfInt(type, value)) != value) return std::nullopt;
    return BitsOfInt(type, value);
  }
  Bits bits = 0;
  if (!whole(bits, 10) || (width < 64 && bits >> width != 0)) return std::nullopt;
  return bits;
}

class KernelParser {
 public:
  KernelParser(std::string_view text, const std::string& file) : cursor_(text), file_(file) {}

  Result<ParsedKernel> Parse() {
    parsed_.locations.file = file_;
    bool ok = cursor_.Expect("kernel") && cursor_.Name(kernel_.name) && cursor_.Expect("{") &&
              Header() && ParseBlock(kernel_.body, 1);
    if (ok && !cursor_.AtEnd()) ok = cursor_.FailExpected("the end");
    if (!ok) return cursor_.TakeError(file_);
    return std::move(parsed_);
  }

 private:
  // What a name refers to.
  struct Named {
    enum class Kind : uint8_t { kArray, kExtent, kLoop, kValue } kind{};
    uint32_t number = 0;
  };

  bool Declare(Named::Kind kind, size_t number, std::string& name) {
    size_t where = cursor_.Here();
    if (!cursor_.Name(name)) return false;
    if (names_.emplace(name, Named{kind, static_cast<uint32_t>(number)}).second) return true;
    return cursor_.Fail(ErrorCode::kKernelName, fmt::format("kernel: a second '{}'", name), where);
  }

  // ---- declarations

  bool Header() {
    int64_t bits = 64;
    for (;;) {
      if (cursor_.Try("index")) {
        if (!cursor_.Int(bits)) return false;
        kernel_.index_bits = static_cast<int>(bits);
      } else if (cursor_.Try("note")) {
        if (!cursor_.String(kernel_.notes.emplace_back())) return false;
      } else if (cursor_.Try("extent")) {
        if (!ParseExtent()) return false;
      } else if (cursor_.Try("argument")) {
        if (!ParseArray(Space::kArgument)) return false;
      } else if (cursor_.Try("shared")) {
        if (!ParseArray(Space::kShared)) return false;
      } else if (cursor_.Try("mbarrier")) {
        if (!ParseArray(Space::kMbarrier)) return false;
      } else if (cursor_.Try("registers")) {
        if (!ParseArray(Space::kRegisters)) return false;
      } else {
        return true;
      }
    }
  }

  bool ParseExtent() {
    LaunchExtent extent;
    if (!Declare(Named::Kind::kExtent, kernel_.extents.size(), extent.name) ||
        !cursor_.Expect(":") || !cursor_.Int(extent.minimum) || !cursor_.Expect(".."))
      return false;
    if (cursor_.AtDigit() && !cursor_.Int(extent.maximum)) return false;
    if (cursor_.Try(",") &&
        !(cursor_.Expect("multiple") && cursor_.Expect("of") && cursor_.Int(extent.multiple_of)))
      return false;
    kernel_.extents.push_back(std::move(extent));
    return true;
  }

  bool ParseType(ScalarType& type) {
    std::string_view word = cursor_.PeekWord();
    std::optional<ScalarType> found = ScalarTypeFromText(word);
    if (!found) return cursor_.FailExpected("a type");
    type = *found;
    return cursor_.Try(word);
  }

  bool ParseArray(Space space) {
    Array array;
    array.space = space;
    if (!Declare(Named::Kind::kArray, kernel_.arrays.size(), array.name) || !cursor_.Expect(":") ||
        !ParseType(array.type) || !cursor_.Expect("[") || !cursor_.Int(array.size) ||
        !cursor_.Expect("]"))
      return false;
    if (space == Space::kArgument) {
      if (cursor_.Try("readwrite")) {
        array.access = Access::kReadWrite;
      } else if (cursor_.Try("read")) {
        array.access = Access::kRead;
      } else if (cursor_.Try("write")) {
        array.access = Access::kWrite;
      } else {
        return cursor_.FailExpected("'read', 'write' or 'readwrite'");
      }
      if (!cursor_.Expect("align") || !cursor_.Int(array.alignment)) return false;
      array.distinct = !cursor_.Try("overlaps");
    } else if (space == Space::kMbarrier) {
      if (!cursor_.Expect("arrivals") || !cursor_.Int(array.arrivals)) return false;
    } else if (cursor_.Try("align") && !cursor_.Int(array.alignment)) {
      return false;
    }
    kernel_.arrays.push_back(std::move(array));
    return true;
  }

  // ---- values

  ValueId NewNode(const ScalarNode& node, size_t where) {
    TextSpan span = cursor_.Span(where);
    kernel_.nodes.push_back(node);
    parsed_.locations.values.push_back(span.line);
    parsed_.locations.columns_of_values.push_back(span.column);
    return ValueId{static_cast<uint32_t>(kernel_.nodes.size() - 1)};
  }

  // A constant, extent or loop variable, interned.
  ValueId Leaf(Prim prim, ScalarType type, Bits bits, size_t where) {
    auto [at, is_new] = leaves_.try_emplace(std::tuple(prim, type, bits), kNoValue);
    if (is_new) at->second = NewNode({.prim = prim, .type = type, .bits = bits}, where);
    return at->second;
  }

  bool Operand(ValueId& id) {
    size_t where = cursor_.Here();
    std::string_view word = cursor_.PeekWord();
    if (word == "true" || word == "false") {
      id = Leaf(Prim::kConst, ScalarType::kPred, word == "true" ? 1 : 0, where);
      return cursor_.Try(word);
    }
    if (word.empty() || cursor_.AtDigit()) {
      int64_t value = 0;
      if (!cursor_.Int(value)) return false;
      id = Leaf(Prim::kConst, ScalarType::kIndex, static_cast<Bits>(value), where);
      return true;
    }
    if (std::optional<ScalarType> type = ScalarTypeFromText(word)) return Constant(*type, id);
    std::string name;
    if (!cursor_.Name(name)) return false;
    auto found = names_.find(name);
    if (found == names_.end() || found->second.kind == Named::Kind::kArray)
      return cursor_.Fail(ErrorCode::kKernelName, fmt::format("kernel: undefined value '{}'", name),
                          where);
    Named named = found->second;
    switch (named.kind) {
      case Named::Kind::kExtent:
        id = Leaf(Prim::kExtent, ScalarType::kIndex, named.number, where);
        return true;
      case Named::Kind::kLoop:
        id = Leaf(Prim::kLoop, ScalarType::kIndex, named.number, where);
        return true;
      default:
        id = ValueId{named.number};
        return true;
    }
  }

  bool Constant(ScalarType type, ValueId& id) {
    size_t where = cursor_.Here();
    if (!cursor_.Try(InfoOf(type).text) || !cursor_.Expect("(")) return cursor_.FailExpected("'('");
    size_t number_at = cursor_.Here();
    std::string_view number = cursor_.Number();
    std::optional<Bits> bits = BitsOfText(type, number);
    if (!bits || type == ScalarType::kPred)
      return cursor_.Fail(
          ErrorCode::kKernelText,
          fmt::format("kernel: '{}' is not a {}", number.substr(0, 40), InfoOf(type).text),
          number_at);
    id = Leaf(Prim::kConst, type, *bits, where);
    return cursor_.Expect(")");
  }

  // name[index]
  bool Element(ArrayId& array, ValueId& index) {
    return ArrayName(array) && cursor_.Expect("[") && Operand(index) && cursor_.Expect("]");
  }

  bool ArrayName(ArrayId& array) {
    size_t where = cursor_.Here();
    std::string name;
    if (!cursor_.Name(name)) return false;
    auto found = names_.find(name);
    if (found == names_.end() || found->second.kind != Named::Kind::kArray)
      return cursor_.Fail(ErrorCode::kKernelName, fmt::format("kernel: undefined array '{}'", name),
                          where);
    array = ArrayId{found->second.number};
    return true;
  }

  // The right-hand side of `name: type =`.
  bool Expression(ScalarNode& node) {
    std::string_view word = cursor_.PeekWord();
    std::optional<Prim> prim = PrimFromText(word);
    bool is_constant = prim && InfoOf(*prim).arity == 0;
    if (!prim || is_constant || word.empty()) return Infix(node);
    node.prim = *prim;
    cursor_.Try(word);
    if (*prim == Prim::kLoad || *prim == Prim::kRead) {
      ArrayId array{};
      if (!Element(array, node.operands[0])) return false;
      node.bits = static_cast<Bits>(array);
      return true;
    }
    for (int i = 0; i < node.arity(); ++i)
      if (!cursor_.Expect(i == 0 ? "(" : ",") || !Operand(node.operands[static_cast<size_t>(i)]))
        return false;
    return cursor_.Expect(")");
  }

  bool Infix(ScalarNode& node) {
    if (!Operand(node.operands[0])) return false;
    for (Prim prim : {Prim::kAdd, Prim::kSub, Prim::kMul, Prim::kDiv, Prim::kRem, Prim::kLe,
                      Prim::kLt, Prim::kEq, Prim::kNe}) {
      if (!cursor_.Try(InfixOf(prim))) continue;
      node.prim = prim;
      return Operand(node.operands[1]);
    }
    return cursor_.FailExpected("an operator");
  }

  // name: type = expression. Reads, shuffles and matches are statements.
  bool Value(StmtList& block) {
    size_t where = cursor_.Here();
    std::string name;
    ScalarNode node;
    if (!cursor_.Name(name) || !cursor_.Expect(":") || !ParseType(node.type) ||
        !cursor_.Expect("=") || !Expression(node))
      return false;
    bool ordered = IsOrdered(node.prim);
    // A value that placement duplicated is defined once in each of its blocks.
    auto known = names_.find(name);
    if (!ordered && known != names_.end() && known->second.kind == Named::Kind::kValue &&
        kernel_.nodes[known->second.number] == node)
      return true;
    ValueId id = NewNode(node, where);
    if (!names_.emplace(name, Named{Named::Kind::kValue, static_cast<uint32_t>(id)}).second)
      return cursor_.Fail(ErrorCode::kKernelName, fmt::format("kernel: a second '{}'", name),
                          where);
    if (!ordered) return true;
    Note(where);
    Stmt& stmt = block.emplace_back();
    stmt.kind = node.prim == Prim::kRead ? StmtKind::kRead : StmtKind::kShuffle;
    stmt.value = id;
    return true;
  }

  // ---- statements

  void Note(size_t where) {
    TextSpan span = cursor_.Span(where);
    parsed_.locations.stmts.push_back(span.line);
    parsed_.locations.columns_of_stmts.push_back(span.column);
  }

  // Statements up to the closing brace.
  bool ParseBlock(StmtList& block, int depth) {
    if (depth > kMaxNesting)
      return cursor_.Fail(ErrorCode::kTooDeep,
                          fmt::format("kernel: nested deeper than {} blocks", kMaxNesting));
    while (!cursor_.Try("}"))
      if (!ParseStmt(block, depth)) return false;
    return true;
  }

  std::optional<LoopRole> TryRole() {
    for (LoopRole role : {LoopRole::kGrid, LoopRole::kThread, LoopRole::kSerial,
                          LoopRole::kUnrolled, LoopRole::kVector})
      if (cursor_.Try(TextOf(role))) return role;
    return std::nullopt;
  }

  // to[index] by n += lhs[index] by n, n * rhs[index] by n of rows x columns x depth
  // to[index] += lhs[index] by n, n * rhs[index] by n, n of rows x columns x depth warps n x n
  bool Multiply(Stmt& stmt) {
    stmt.kind = StmtKind::kMatMul;
    MatrixMultiply& product = stmt.matmul;
    if (cursor_.Try("async")) return AsyncMultiply(stmt);
    if (!Element(stmt.array, stmt.index)) return false;
    if (cursor_.Try("+=")) return BlockMultiply(product);
    if (!By(product.result_row_stride)) return false;
    product.overwrite = !cursor_.Try("+=");
    return (!product.overwrite || cursor_.Expect("=")) && Element(product.lhs, product.lhs_index) &&
           By(product.lhs_row_stride) && cursor_.Expect(",") &&
           cursor_.Int(product.lhs_column_stride) && cursor_.Expect("*") &&
           Element(product.rhs, product.rhs_index) && By(product.rhs_row_stride) && Sizes(product);
  }

  bool BlockMultiply(MatrixMultiply& product) {
    bool parsed = Element(product.lhs, product.lhs_index) && By(product.lhs_row_stride) &&
                  cursor_.Expect(",") && cursor_.Int(product.lhs_column_stride) &&
                  cursor_.Expect("*") && Element(product.rhs, product.rhs_index) &&
                  By(product.rhs_row_stride) && cursor_.Expect(",") &&
                  cursor_.Int(product.rhs_column_stride) && Sizes(product) &&
                  cursor_.Expect("warps") && cursor_.Int(product.warp_rows) &&
                  cursor_.Expect("x") && cursor_.Int(product.warp_columns);
    if (!parsed) return false;
    if (product.warp_rows < 1)
      return cursor_.Fail(ErrorCode::kKernelStructure, "multiply: warps without rows");
    product.tf32 = cursor_.Try("tf32");
    return true;
  }

  // to[index] += lhs[index] by n, n panel n * rhs[index] by n, n panel n of rows x columns x depth
  bool AsyncMultiply(Stmt& stmt) {
    MatrixMultiply& product = stmt.matmul;
    product.async = true;
    if (!Element(stmt.array, stmt.index)) return false;
    product.overwrite = !cursor_.Try("+=");
    bool parsed = (!product.overwrite || cursor_.Expect("=")) &&
                  Element(product.lhs, product.lhs_index) && By(product.lhs_row_stride) &&
                  cursor_.Expect(",") && cursor_.Int(product.lhs_column_stride) &&
                  cursor_.Expect("panel") && cursor_.Int(product.lhs_panel) &&
                  cursor_.Expect("*") && Element(product.rhs, product.rhs_index) &&
                  By(product.rhs_row_stride) && cursor_.Expect(",") &&
                  cursor_.Int(product.rhs_column_stride) && cursor_.Expect("panel") &&
                  cursor_.Int(product.rhs_panel) && Sizes(product);
    if (!parsed) return false;
    product.warp_rows = MatrixMultiply::kFragmentRows;
    product.warp_columns = product.columns;
    product.tf32 = cursor_.Try("tf32");
    if (!cursor_.Try("of")) return true;
    return ParseFloat8(product.float8[0]) && cursor_.Expect("by") && ParseFloat8(product.float8[1]);
  }

  bool ParseFloat8(Float8& format) {
    for (Float8 each : {Float8::kE4M3Fn, Float8::kE5M2})
      if (cursor_.Try(TextOf(each))) {
        format = each;
        return true;
      }
    return cursor_.Fail(ErrorCode::kKernelTypes, "multiply: of f8e4m3fn or f8e5m2");
  }

  bool Sizes(MatrixMultiply& product) {
    return cursor_.Expect("of") && cursor_.Int(product.rows) && cursor_.Expect("x") &&
           cursor_.Int(product.columns) && cursor_.Expect("x") && Operand(product.depth);
  }

  bool By(int64_t& number) { return cursor_.Expect("by") && cursor_.Int(number); }

  // ---- asynchronous work

  std::optional<AsyncKind> TryAsync() {
    constexpr std::pair<std::string_view, AsyncKind> kKinds[] = {
        {"arrive", AsyncKind::kArrive},     {"wait", AsyncKind::kWait},
        {"copy", AsyncKind::kCopy},         {"await", AsyncKind::kWaitMultiplies},
        {"copyback", AsyncKind::kCopyBack}, {"drain", AsyncKind::kWaitCopies},
        {"fence", AsyncKind::kFence},       {"limit", AsyncKind::kRegisters},
    };
    for (auto [text, kind] : kKinds)
      if (cursor_.Try(text)) return kind;
    return std::nullopt;
  }

  bool ParseAsync(Stmt& stmt, AsyncKind kind) {
    stmt.kind = StmtKind::kAsync;
    AsyncOp op{.kind = kind};
    if (!AsyncText(stmt, op)) return false;
    stmt.async = std::make_shared<const AsyncOp>(std::move(op));
    return true;
  }

  bool AsyncText(Stmt& stmt, AsyncOp& op) {
    switch (op.kind) {
      case AsyncKind::kArrive:
        return Element(stmt.array, stmt.index) &&
               (!cursor_.Try("expect") || cursor_.Int(op.number));
      case AsyncKind::kWait:
        return Element(stmt.array, stmt.index) && cursor_.Expect("parity") && Operand(op.parity);
      case AsyncKind::kCopy:
        return Element(op.copy.to, op.copy.to_index) && cursor_.Expect("=") &&
               ArrayName(op.copy.from) && Boxes(op.copy) && cursor_.Expect("to") &&
               Element(stmt.array, stmt.index);
      case AsyncKind::kCopyBack:
        return ArrayName(op.copy.to) && Boxes(op.copy) && cursor_.Expect("=") &&
               Element(op.copy.from, op.copy.from_index);
      case AsyncKind::kWaitCopies:
        return cursor_.Expect("pending") && cursor_.Int(op.number);
      case AsyncKind::kWaitMultiplies:
        return ArrayName(stmt.array) && cursor_.Expect("pending") && cursor_.Int(op.number);
      case AsyncKind::kFence:
        return cursor_.Expect("async");
      case AsyncKind::kRegisters:
        return cursor_.Expect("registers") && cursor_.Int(op.number);
    }
    return false;
  }

  // { at of size by stride box n, ... } swizzled tf32
  bool Boxes(TileCopy& copy) {
    if (!cursor_.Expect("{")) return false;
    do {
      TileCopy::Dimension& dimension = copy.dimensions.emplace_back();
      if (!Operand(dimension.at) || !cursor_.Expect("of") || !cursor_.Int(dimension.size) ||
          !By(dimension.stride) || !cursor_.Expect("box") || !cursor_.Int(dimension.box) ||
          (cursor_.Try("step") && !cursor_.Int(dimension.step)))
        return false;
    } while (cursor_.Try(","));
    if (!cursor_.Expect("}")) return false;
    copy.swizzled = cursor_.Try("swizzled");
    copy.tf32 = cursor_.Try("tf32");
    return true;
  }

  bool ParseStmt(StmtList& block, int depth) {
    size_t where = cursor_.Here();
    if (std::optional<LoopRole> role = TryRole()) {
      Note(where);
      return For(block, *role, depth);
    }
    Stmt stmt;
    if (std::optional<AsyncKind> kind = TryAsync()) {
      Note(where);
      if (!ParseAsync(stmt, *kind)) return false;
      block.push_back(std::move(stmt));
      return true;
    }
    if (cursor_.Try("if")) {
      Note(where);
      stmt.kind = StmtKind::kIf;
      stmt.uniform = cursor_.Try("uniform");
      if (!Operand(stmt.condition) || !cursor_.Expect("{") || !ParseBlock(stmt.body, depth + 1))
        return false;
      if (cursor_.Try("else") && !(cursor_.Expect("{") && ParseBlock(stmt.else_body, depth + 1)))
        return false;
    } else if (cursor_.Try("repeat")) {
      Note(where);
      stmt.kind = StmtKind::kWhile;
      if (!cursor_.Expect("{") || !ParseBlock(stmt.condition_stmts, depth + 1) ||
          !cursor_.Expect("while"))
        return false;
      stmt.uniform = cursor_.Try("uniform");
      if (!Operand(stmt.condition) || !cursor_.Expect("{") || !ParseBlock(stmt.body, depth + 2))
        return false;
    } else if (cursor_.Try("store")) {
      Note(where);
      stmt.kind = StmtKind::kStore;
      if (!Element(stmt.array, stmt.index) || !cursor_.Expect("=") || !Operand(stmt.value))
        return false;
    } else if (cursor_.Try("multiply")) {
      Note(where);
      if (!Multiply(stmt)) return false;
    } else if (cursor_.Try("barrier")) {
      Note(where);
      stmt.kind = StmtKind::kBarrier;
      stmt.scope = cursor_.Try("warp") ? BarrierScope::kWarp : BarrierScope::kBlock;
      if (stmt.scope == BarrierScope::kBlock && !cursor_.Expect("block")) return false;
    } else {
      return Value(block);
    }
    block.push_back(std::move(stmt));
    return true;
  }

  bool For(StmtList& block, LoopRole role, int depth) {
    size_t number = kernel_.loops.size();
    kernel_.loops.push_back({.name = {}, .role = role});
    std::string name;
    ValueId extent{};
    if (!Declare(Named::Kind::kLoop, number, name) || !cursor_.Expect("<") || !Operand(extent) ||
        !cursor_.Expect("{"))
      return false;
    kernel_.loops[number].name = name;
    kernel_.loops[number].extent = extent;
    Stmt stmt;
    stmt.kind = StmtKind::kFor;
    stmt.loop = LoopId{static_cast<uint32_t>(number)};
    if (!ParseBlock(stmt.body, depth + 1)) return false;
    block.push_back(std::move(stmt));
    return true;
  }

  KernelCursor cursor_;
  std::string file_;
  ParsedKernel parsed_;
  Kernel& kernel_ = parsed_.kernel;
  std::unordered_map<std::string, Named> names_;
  std::map<std::tuple<Prim, ScalarType, Bits>, ValueId> leaves_;
};

}  // namespace

Result<ParsedKernel> ParseKernel(std::string_view text, const std::string& file) {
  return KernelParser(text, file).Parse();
}

}  // namespace tokamak

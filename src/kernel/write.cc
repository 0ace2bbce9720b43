#include "kernel/write.h"

#include <iterator>

#include <fmt/format.h>

#include "kernel/names.h"
#include "kernel/placement.h"

namespace tokamak {
namespace {

// What the types of the operands of an asynchronous multiply do not say.
std::string FactorsText(const MatrixMultiply& product) {
  if (product.tf32) return " tf32";
  if (!product.IsFloat8()) return "";
  return fmt::format(" of {} by {}", TextOf(product.float8[0]), TextOf(product.float8[1]));
}

class KernelWriter {
 public:
  KernelWriter(const Kernel& kernel, KernelLocations* locations)
      : kernel_(kernel), placement_(kernel), names_(kernel, placement_), locations_(locations) {
    if (locations_ != nullptr) {
      *locations_ = {};
      locations_->file = names_.kernel;
      locations_->values.assign(kernel.nodes.size(), 0);
      locations_->columns_of_values.assign(kernel.nodes.size(), 0);
    }
  }

  std::string Write() {
    Line("kernel {} {{", names_.kernel);
    ++depth_;
    Header();
    WriteBlock(kernel_.body);
    --depth_;
    Line("}}");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
    ++line_;
  }

  void Header() {
    Line("index {}", kernel_.index_bits);
    for (const std::string& note : kernel_.notes) Line("note \"{}\"", Escaped(note));
    for (size_t i = 0; i < kernel_.extents.size(); ++i) {
      const LaunchExtent& extent = kernel_.extents[i];
      std::string facts = fmt::format("{}..", extent.minimum);
      if (extent.maximum != INT64_MAX) facts += fmt::format("{}", extent.maximum);
      if (extent.multiple_of != 1) facts += fmt::format(", multiple of {}", extent.multiple_of);
      Line("extent {}: {}", names_.extents[i], facts);
    }
    for (size_t i = 0; i < kernel_.arrays.size(); ++i) {
      const Array& array = kernel_.arrays[i];
      std::string rest;
      if (array.space == Space::kArgument) {
        rest = fmt::format(" {} align {}", TextOf(array.access), array.alignment);
        if (!array.distinct) rest += " overlaps";
      } else if (array.space == Space::kMbarrier) {
        rest = fmt::format(" arrivals {}", array.arrivals);
      } else if (array.alignment != Array{}.alignment) {
        rest = fmt::format(" align {}", array.alignment);
      }
      Line("{} {}: {}[{}]{}", TextOf(array.space), names_.arrays[i], InfoOf(array.type).text,
           array.size, rest);
    }
  }

  static std::string Escaped(const std::string& text) {
    std::string out;
    for (char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
    return out;
  }

  std::string Expression(ValueId id) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kLoad || node.prim == Prim::kRead)
      return fmt::format("{} {}[{}]", InfoOf(node.prim).text, names_.Of(node.array()),
                         names_.Operand(node.operands[0]));
    if (!InfixOf(node.prim).empty())
      return fmt::format("{} {} {}", names_.Operand(node.operands[0]), InfixOf(node.prim),
                         names_.Operand(node.operands[1]));
    std::string operands;
    for (ValueId operand : kernel_.operands(id)) {
      if (!operands.empty()) operands += ", ";
      operands += names_.Operand(operand);
    }
    return fmt::format("{}({})", InfoOf(node.prim).text, operands);
  }

  void Define(ValueId id) {
    if (locations_ != nullptr) {
      locations_->values[static_cast<size_t>(id)] = line_;
      locations_->columns_of_values[static_cast<size_t>(id)] = depth_ * 2 + 1;
    }
    Line("{}: {} = {}", names_.Operand(id), InfoOf(kernel_.node(id).type).text, Expression(id));
  }

  void WriteBlock(const StmtList& block) {
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) Define(id);
      if (i < block.size()) WriteStmt(block[i]);
    }
  }

  void WriteInner(const StmtList& block) {
    ++depth_;
    WriteBlock(block);
    --depth_;
  }

  void WriteStmt(const Stmt& stmt) {
    if (locations_ != nullptr) {
      locations_->stmts.push_back(line_);
      locations_->columns_of_stmts.push_back(depth_ * 2 + 1);
    }
    std::string_view uniform = stmt.uniform ? "uniform " : "";
    switch (stmt.kind) {
      case StmtKind::kFor: {
        const Loop& loop = kernel_.loop(stmt.loop);
        Line("{} {} < {} {{", TextOf(loop.role), names_.Of(stmt.loop), names_.Operand(loop.extent));
        WriteInner(stmt.body);
        break;
      }
      case StmtKind::kIf:
        Line("if {}{} {{", uniform, names_.Operand(stmt.condition));
        WriteInner(stmt.body);
        if (stmt.else_body.empty()) break;
        Line("}} else {{");
        WriteInner(stmt.else_body);
        break;
      case StmtKind::kWhile:
        Line("repeat {{");
        WriteInner(stmt.condition_stmts);
        Line("}} while {}{} {{", uniform, names_.Operand(stmt.condition));
        WriteInner(stmt.body);
        break;
      case StmtKind::kStore:
        Line("store {}[{}] = {}", names_.Of(stmt.array), names_.Operand(stmt.index),
             names_.Operand(stmt.value));
        return;
      case StmtKind::kRead:
      case StmtKind::kShuffle:
        Define(stmt.value);
        return;
      case StmtKind::kBarrier:
        Line("barrier {}", TextOf(stmt.scope));
        return;
      case StmtKind::kAsync:
        return WriteAsync(stmt);
      case StmtKind::kMatMul: {
        const MatrixMultiply& product = stmt.matmul;
        if (product.async) {
          Line(
              "multiply async {}[{}] {} {}[{}] by {}, {} panel {} * {}[{}] by {}, {} panel {} "
              "of {} x {} x {}{}",
              names_.Of(stmt.array), names_.Operand(stmt.index),
              product.overwrite ? "=" : "+=", names_.Of(product.lhs),
              names_.Operand(product.lhs_index), product.lhs_row_stride, product.lhs_column_stride,
              product.lhs_panel, names_.Of(product.rhs), names_.Operand(product.rhs_index),
              product.rhs_row_stride, product.rhs_column_stride, product.rhs_panel, product.rows,
              product.columns, names_.Operand(product.depth), FactorsText(product));
          return;
        }
        if (product.IsBlockWide()) {
          Line(
              "multiply {}[{}] += {}[{}] by {}, {} * {}[{}] by {}, {} of {} x {} x {} warps {} x "
              "{}{}",
              names_.Of(stmt.array), names_.Operand(stmt.index), names_.Of(product.lhs),
              names_.Operand(product.lhs_index), product.lhs_row_stride, product.lhs_column_stride,
              names_.Of(product.rhs), names_.Operand(product.rhs_index), product.rhs_row_stride,
              product.rhs_column_stride, product.rows, product.columns,
              names_.Operand(product.depth), product.warp_rows, product.warp_columns,
              product.tf32 ? " tf32" : "");
          return;
        }
        Line("multiply {}[{}] by {} {} {}[{}] by {}, {} * {}[{}] by {} of {} x {} x {}",
             names_.Of(stmt.array), names_.Operand(stmt.index), product.result_row_stride,
             product.overwrite ? "=" : "+=", names_.Of(product.lhs),
             names_.Operand(product.lhs_index), product.lhs_row_stride, product.lhs_column_stride,
             names_.Of(product.rhs), names_.Operand(product.rhs_index), product.rhs_row_stride,
             product.rows, product.columns, names_.Operand(product.depth));
        return;
      }
    }
    Line("}}");
  }

  std::string Mbarrier(const Stmt& stmt) const {
    return fmt::format("{}[{}]", names_.Of(stmt.array), names_.Operand(stmt.index));
  }

  void WriteAsync(const Stmt& stmt) {
    const AsyncOp& op = *stmt.async;
    switch (op.kind) {
      case AsyncKind::kArrive:
        return Line("arrive {}{}", Mbarrier(stmt),
                    op.number == 0 ? "" : fmt::format(" expect {}", op.number));
      case AsyncKind::kWait:
        return Line("wait {} parity {}", Mbarrier(stmt), names_.Operand(op.parity));
      case AsyncKind::kCopy:
        return Line("copy {}[{}] = {} {{ {} }}{}{} to {}", names_.Of(op.copy.to),
                    names_.Operand(op.copy.to_index), names_.Of(op.copy.from), BoxOf(op.copy),
                    op.copy.swizzled ? " swizzled" : "", op.copy.tf32 ? " tf32" : "",
                    Mbarrier(stmt));
      case AsyncKind::kCopyBack:
        return Line("copyback {} {{ {} }}{} = {}[{}]", names_.Of(op.copy.to), BoxOf(op.copy),
                    op.copy.swizzled ? " swizzled" : "", names_.Of(op.copy.from),
                    names_.Operand(op.copy.from_index));
      case AsyncKind::kWaitCopies:
        return Line("drain pending {}", op.number);
      case AsyncKind::kWaitMultiplies:
        return Line("await {} pending {}", names_.Of(stmt.array), op.number);
      case AsyncKind::kFence:
        return Line("fence async");
      case AsyncKind::kRegisters:
        return Line("limit registers {}", op.number);
    }
  }

  std::string BoxOf(const TileCopy& copy) const {
    std::string text;
    for (const TileCopy::Dimension& dimension : copy.dimensions)
      text +=
          fmt::format("{}{} of {} by {} box {}{}", text.empty() ? "" : ", ",
                      names_.Operand(dimension.at), dimension.size, dimension.stride, dimension.box,
                      dimension.step == 1 ? "" : fmt::format(" step {}", dimension.step));
    return text;
  }

  const Kernel& kernel_;
  Placement placement_;
  KernelNames names_;
  KernelLocations* locations_;
  std::string text_;
  int depth_ = 0, line_ = 1;
};

TextSpan At(const std::string& file, const std::vector<int>& lines, const std::vector<int>& columns,
            size_t i) {
  TextSpan span{.file = file};
  if (i >= lines.size() || lines[i] == 0) return span;
  span.line = lines[i];
  span.column = i < columns.size() ? columns[i] : 1;
  return span;
}

}  // namespace

TextSpan KernelLocations::OfValue(ValueId id) const {
  return At(file, values, columns_of_values, static_cast<size_t>(id));
}

TextSpan KernelLocations::OfStmt(int number) const {
  return At(file, stmts, columns_of_stmts, static_cast<size_t>(number));
}

std::string_view TextOf(LoopRole role) {
  switch (role) {
    case LoopRole::kGrid:
      return "grid";
    case LoopRole::kThread:
      return "thread";
    case LoopRole::kSerial:
      return "serial";
    case LoopRole::kUnrolled:
      return "unrolled";
    case LoopRole::kVector:
      break;
  }
  return "vector";
}

std::string_view TextOf(Space space) {
  switch (space) {
    case Space::kArgument:
      return "argument";
    case Space::kShared:
      return "shared";
    case Space::kMbarrier:
      return "mbarrier";
    case Space::kRegisters:
      break;
  }
  return "registers";
}

std::string_view TextOf(Access access) {
  switch (access) {
    case Access::kRead:
      return "read";
    case Access::kWrite:
      return "write";
    case Access::kReadWrite:
      break;
  }
  return "readwrite";
}

std::string_view TextOf(BarrierScope scope) {
  return scope == BarrierScope::kWarp ? "warp" : "block";
}

std::string_view InfixOf(Prim prim) {
  switch (prim) {
    case Prim::kAdd:
      return "+";
    case Prim::kSub:
      return "-";
    case Prim::kMul:
      return "*";
    case Prim::kDiv:
      return "/";
    case Prim::kRem:
      return "%";
    case Prim::kLt:
      return "<";
    case Prim::kLe:
      return "<=";
    case Prim::kEq:
      return "==";
    case Prim::kNe:
      return "!=";
    default:
      return {};
  }
}

std::string WriteKernel(const Kernel& kernel, KernelLocations* locations) {
  return KernelWriter(kernel, locations).Write();
}

}  // namespace tokamak

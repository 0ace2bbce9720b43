#include "backend/cuda/cuda_text.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "kernel/linear.h"
#include "kernel/names.h"
#include "kernel/placement.h"
#include "kernel/range.h"
#include "kernel/variance.h"
#include "kernel/write.h"

namespace tokamak::cuda {
namespace {

constexpr int64_t kStaticTeamBytes = 48 << 10;
constexpr int64_t kMostTeamBytes = 227 << 10;
constexpr int64_t kWideBytes = 16;  // of one access of a thread

constexpr std::string_view kPackText =
    "// What neighbouring lanes load or store at once.\n"
    "template <typename T, int N>\n"
    "struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {\n"
    "  T at[N];\n"
    "};\n\n";

constexpr std::string_view kF16Text =
    "__device__ inline float F16ToF32(unsigned short bits) {\n"
    "  float value;\n"
    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(value) : \"h\"(bits));\n"
    "  return value;\n"
    "}\n"
    "__device__ inline unsigned short F16FromF32(float value) {\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));\n"
    "  return bits;\n"
    "}\n"
    "__device__ inline unsigned short F16FromF64(double value) {\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(bits) : \"d\"(value));\n"
    "  return bits;\n"
    "}\n\n";

constexpr std::string_view kBf16Text =
    "__device__ inline float Bf16ToF32(unsigned short bits) {\n"
    "  return __uint_as_float((unsigned)bits << 16);\n"
    "}\n"
    "__device__ inline unsigned short Bf16FromF32(float value) {\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));\n"
    "  return bits;\n"
    "}\n"
    "// One rounding: towards zero first, with a last bit that tells whether anything was lost.\n"
    "__device__ inline unsigned short Bf16FromF64(double value) {\n"
    "  float part = __double2float_rz(value);\n"
    "  if ((double)part != value) part = __uint_as_float(__float_as_uint(part) | 1u);\n"
    "  return Bf16FromF32(part);\n"
    "}\n\n";

// Which values a text names, each with the one in whose line it stands.
class Mentions {
 public:
  void Add(ValueId by, ValueId value) { by_[by].push_back(value); }
  // What others than unneeded values name, directly or not.
  std::set<ValueId> Needed() const {
    std::set<ValueId> needed;
    std::vector<ValueId> open = {kNoValue};
    while (!open.empty()) {
      auto at = by_.find(open.back());
      open.pop_back();
      if (at == by_.end()) continue;
      for (ValueId value : at->second)
        if (needed.insert(value).second) open.push_back(value);
    }
    return needed;
  }

 private:
  std::map<ValueId, std::vector<ValueId>> by_;
};

class Writer {
 public:
  // With `needed`, only those values are written: a first text tells which they are. Indices of
  // lanes whose accesses are one are in no line of it.
  // `part`: the name of a function of the device, for a pack of kernels.
  explicit Writer(const Kernel& kernel, const std::set<ValueId>* needed = nullptr,
                  const std::string* part = nullptr)
      : kernel_(kernel),
        needed_(needed),
        part_(part),
        placement_(kernel),
        variance_(kernel),
        names_(kernel, placement_),
        spelling_(kernel.index_bits) {}

  const Mentions& mentions() const { return mentions_; }

  Result<CudaSource> Write() {
    TOK_RETURN_IF_ERROR(Layout(kernel_.body));
    source_.name = names_.kernel;
    Function();
    Body(kernel_.body);
    --depth_;
    Line("}}");
    if (failed_) return MakeError(ErrorCode::kCudaText, std::move(failure_));
    std::string top = fmt::format("// Kernel {}.\n", kernel_.name);
    for (const std::string& note : kernel_.notes) top += fmt::format("// {}\n", OneLine(note));
    if (part_ == nullptr) top += "\n" + Prelude(source_);
    source_.text = top + text_;
    return std::move(source_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  static std::string OneLine(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
    std::ranges::replace(text, '\\', '/');  // a backslash at the end would go on
    return text;
  }
  void Fail(const std::string& what) {
    if (!failed_) failure_ = fmt::format("kernel {}: {}", kernel_.name, what);
    failed_ = true;
  }
  Error Unsupported(const std::string& what) const {
    return MakeError(ErrorCode::kCudaText, fmt::format("kernel {}: {}", kernel_.name, what));
  }
  int64_t ConstantOf(ValueId id) const {
    return IntOfBits(ScalarType::kIndex, kernel_.node(id).bits);
  }
  std::string_view Type(ScalarType type) const { return spelling_.Type(type); }
  std::string_view IndexType() const { return Type(ScalarType::kIndex); }
  std::string Operand(ValueId id) const {
    const ScalarNode& node = kernel_.node(id);
    mentions_.Add(defining_, id);
    return node.prim == Prim::kConst ? spelling_.Constant(node.type, node.bits)
                                     : names_.Operand(id);
  }

  // ---- the function around the statements

  // Which loops are the grid and the block: those at the head, one in the other.
  Status Layout(const Block& block) {
    const Block* at = &block;
    while (at->size() == 1 && (*at)[0].kind == StmtKind::kFor) {
      const Stmt& stmt = (*at)[0];
      LoopRole role = kernel_.loop(stmt.loop).role;
      if (role == LoopRole::kGrid) grid_.push_back(stmt.loop);
      if (role == LoopRole::kThread) threads_.push_back(stmt.loop);
      if (role != LoopRole::kGrid && role != LoopRole::kThread) break;
      at = &stmt.body;
    }
    for (size_t i = 0; i < threads_.size(); ++i)
      source_.threads[threads_.size() - 1 - i] =
          static_cast<int>(ConstantOf(kernel_.loop(threads_[i]).extent));
    if (source_.threads[2] > 64)
      return Unsupported(
          fmt::format("{} threads in the third dimension, 64 are allowed", source_.threads[2]));
    for (const Array& array : kernel_.arrays)
      if (array.space == Space::kTeam)
        team_bytes_ += (array.size * BytesOf(array.type) + 15) / 16 * 16;
    if (team_bytes_ > kMostTeamBytes)
      return Unsupported(
          fmt::format("{} bytes of team memory, {} are there", team_bytes_, kMostTeamBytes));
    if (part_ != nullptr || team_bytes_ > kStaticTeamBytes) source_.dynamic_bytes = team_bytes_;
    if (part_ != nullptr && !kernel_.extents.empty())
      return Unsupported("a part of a pack has no extents");
    return Ok();
  }

  void Function() {
    std::string parameters;
    auto add = [&](const std::string& text) {
      parameters += (parameters.empty() ? "\n    " : ",\n    ") + text;
    };
    for (size_t i = 0; i < kernel_.ArgumentCount(); ++i) {
      const Array& array = kernel_.arrays[i];
      NoteType(array.type);
      add(fmt::format("{}{}*{} {}", array.access == Access::kRead ? "const " : "", Type(array.type),
                      array.distinct ? " __restrict__" : "", names_.arrays[i]));
    }
    for (const std::string& extent : names_.extents)
      add(fmt::format("const long long {}{}", extent, kernel_.index_bits == 32 ? "_wide" : ""));
    int block = source_.threads[0] * source_.threads[1] * source_.threads[2];
    if (part_ != nullptr) {
      Line(
          "__device__ __forceinline__ void {}(const int team_number, unsigned char* "
          "team_memory{}{}) {{",
          *part_, parameters.empty() ? "" : ",", parameters);
    } else {
      Line("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{", block, names_.kernel,
           parameters);
    }
    ++depth_;
    if (kernel_.index_bits == 32)
      for (const std::string& extent : names_.extents)
        Line("const int {0} = (int){0}_wide;", extent);
    TeamArrays();
    for (size_t i = kernel_.ArgumentCount(); i < kernel_.arrays.size(); ++i) Registers(i);
  }

  void TeamArrays() {
    if (source_.dynamic_bytes > 0 && part_ == nullptr)
      Line("extern __shared__ __align__(16) unsigned char team_memory[];");
    int64_t offset = 0;
    for (size_t i = 0; i < kernel_.arrays.size(); ++i) {
      const Array& array = kernel_.arrays[i];
      if (array.space != Space::kTeam) continue;
      NoteType(array.type);
      if (source_.dynamic_bytes > 0) {
        Line("{0}* const {1} = ({0}*)(team_memory + {2});", Type(array.type), names_.arrays[i],
             offset);
      } else {
        Line("__shared__ __align__(16) {} {}[{}];", Type(array.type), names_.arrays[i], array.size);
      }
      offset += (array.size * BytesOf(array.type) + 15) / 16 * 16;
    }
  }

  void Registers(size_t i) {
    const Array& array = kernel_.arrays[i];
    if (array.space != Space::kRegisters) return;
    NoteType(array.type);
    int64_t lanes = variance_.PerLane(ArrayId{static_cast<uint32_t>(i)}) ? LanesOf(i) : 1;
    if (lanes > 1) {
      Line("{} {}[{}][{}];  // for each lane", Type(array.type), names_.arrays[i], lanes,
           array.size);
    } else {
      Line("{} {}[{}];", Type(array.type), names_.arrays[i], array.size);
    }
  }

  // Lanes of the vector loops that touch an array of which each lane has its own: all alike.
  int64_t LanesOf(size_t array) {
    int64_t lanes = 1;
    FindLanes(kernel_.body, 1, array, lanes);
    return lanes;
  }
  void FindLanes(const Block& block, int64_t around, size_t array, int64_t& lanes) const {
    for (const Stmt& stmt : block) {
      int64_t inner = around;
      if (stmt.kind == StmtKind::kFor && IsVector(kernel_, kernel_.loop(stmt.loop)))
        inner = ConstantOf(kernel_.loop(stmt.loop).extent);
      if (stmt.kind == StmtKind::kStore && static_cast<size_t>(stmt.array) == array && inner > 1)
        lanes = inner;
      for (const Block* below : {&stmt.head, &stmt.body, &stmt.otherwise})
        FindLanes(*below, inner, array, lanes);
    }
  }

  void NoteType(ScalarType type) {
    if (type == ScalarType::kF16) source_.uses_f16 = true;
    if (type == ScalarType::kBF16) source_.uses_bf16 = true;
  }

  // ---- values

  std::string Element(ArrayId id, ValueId index) const {
    const std::string& name = names_.Of(id);
    if (variance_.PerLane(id)) return fmt::format("{}[{}][{}]", name, lane_, Operand(index));
    return fmt::format("{}[{}]", name, Operand(index));
  }

  void Define(ValueId id) {
    if (needed_ != nullptr && !needed_->contains(id)) return;
    const ScalarNode& node = kernel_.node(id);
    NoteType(node.type);
    std::string value;
    defining_ = id;
    if (node.prim == Prim::kLoad && packed_loads_.contains(id)) {
      value = fmt::format("{}_all.at[{}]", names_.Operand(id), lane_);
    } else if (node.prim == Prim::kLoad || node.prim == Prim::kRead) {
      value = Element(node.array(), node.operands[0]);
    } else {
      std::array<std::string, 3> operands;
      for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
        operands[i] = Operand(node.operands[i]);
      ScalarType from = kernel_.node(node.operands[0]).type;
      NoteType(from);
      value = spelling_.Prim(node.prim, node.type, from, operands);
    }
    Line("const {} {} = {};", Type(node.type), names_.Operand(id), value);
    defining_ = kNoValue;
  }

  void Shuffle(ValueId id) {
    if (in_vector_) return Fail("a shuffle between the lanes of a vector loop");
    const ScalarNode& node = kernel_.node(id);
    int count = source_.threads[0] * source_.threads[1] * source_.threads[2];
    if (count > 32 && count % 32 != 0) return Fail("a shuffle in a warp that is not full");
    std::string mask = count >= 32 ? "0xffffffffu" : fmt::format("{:#x}u", (1u << count) - 1);
    Line("const {} {} = {};", Type(node.type), names_.Operand(id),
         spelling_.Shuffle(node.type, Operand(node.operands[0]), Operand(node.operands[1]), mask));
  }

  // ---- statements

  void Body(const Block& block) {
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) Define(id);
      if (i < block.size()) WriteStmt(block[i]);
    }
  }

  void Inner(const Block& block) {
    ++depth_;
    Body(block);
    --depth_;
  }

  void WriteStmt(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        return For(stmt);
      case StmtKind::kIf:
        Line("if ({}) {{", Operand(stmt.condition));
        Inner(stmt.body);
        if (!stmt.otherwise.empty()) {
          Line("}} else {{");
          Inner(stmt.otherwise);
        }
        Line("}}");
        return;
      case StmtKind::kWhile:
        Line("for (;;) {{");
        ++depth_;
        Body(stmt.head);
        Line("if (!{}) break;", Operand(stmt.condition));
        Body(stmt.body);
        --depth_;
        Line("}}");
        return;
      case StmtKind::kStore:
        return Store(stmt);
      case StmtKind::kRead:
        return Define(stmt.value);
      case StmtKind::kShuffle:
        return Shuffle(stmt.value);
      case StmtKind::kBarrier:
        Line("{}", stmt.scope == Scope::kBlock ? "__syncthreads();" : "__syncwarp();");
        return;
      case StmtKind::kMultiply:
        return Multiply(stmt);
    }
  }

  // By one thread: no generator of a GPU makes one, and tests want the meaning.
  void Multiply(const Stmt& stmt) {
    const Multiplication& product = stmt.product;
    ScalarType type = kernel_.array(product.lhs).type;
    source_.uses_bf16 = source_.uses_bf16 || type == ScalarType::kBF16;
    std::string_view widen = type == ScalarType::kBF16 ? "Bf16ToF32" : "";
    std::string to = fmt::format("{}[{} + i * {} + j]", names_.Of(stmt.array), Operand(stmt.index),
                                 product.to_row);
    Line("for (int i = 0; i < {}; ++i)", product.rows);
    Line("  for (int j = 0; j < {}; ++j) {{", product.columns);
    Line("    {} sum = {};", Type(kernel_.array(stmt.array).type), product.fresh ? "0" : to);
    Line("    for ({} p = 0; p < {}; ++p)", IndexType(), Operand(product.depth));
    Line("      sum += {}({}[{} + i * {} + p * {}]) *", widen, names_.Of(product.lhs),
         Operand(product.lhs_at), product.lhs_row, product.lhs_column);
    Line("             {}({}[{} + p / {} * {} + j * {} + p % {}]);", widen, names_.Of(product.rhs),
         Operand(product.rhs_at), GroupOf(type), product.rhs_row, GroupOf(type), GroupOf(type));
    Line("    {} = sum;", to);
    Line("  }}");
  }

  void Store(const Stmt& stmt) {
    if (packed_stores_.contains(&stmt)) {
      Line("{}.at[{}] = {};", StoredName(stmt), lane_, Operand(stmt.value));
    } else if (variance_.PerLane(stmt.array) && !in_vector_) {
      int64_t lanes = LanesOf(static_cast<size_t>(stmt.array));
      Line("for (int lane = 0; lane < {}; ++lane) {}[lane][{}] = {};", lanes, names_.Of(stmt.array),
           Operand(stmt.index), Operand(stmt.value));
    } else {
      Line("{} = {};", Element(stmt.array, stmt.index), Operand(stmt.value));
    }
  }

  void For(const Stmt& stmt) {
    const Loop& loop = kernel_.loop(stmt.loop);
    const std::string& name = names_.Of(stmt.loop);
    switch (loop.role) {
      case LoopRole::kGrid:
        Grid(stmt);
        return Body(stmt.body);
      case LoopRole::kThread: {
        auto at = static_cast<size_t>(std::ranges::find(threads_, stmt.loop) - threads_.begin());
        Line("const {} {} = {};", IndexType(), name, ThreadIndex(threads_.size() - 1 - at));
        return Body(stmt.body);
      }
      case LoopRole::kVector:
        if (IsVector(kernel_, loop)) return Vector(stmt);
        [[fallthrough]];
      case LoopRole::kUnrolled:
        Line("#pragma unroll");
        [[fallthrough]];
      case LoopRole::kSerial:
        Line("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", IndexType(), name, Operand(loop.extent));
        Inner(stmt.body);
        Line("}}");
    }
  }

  // A thread's number along a dimension of the block; of a part, in the order of a block of so
  // many.
  std::string ThreadIndex(size_t dimension) const {
    if (part_ == nullptr) return fmt::format("threadIdx.{}", "xyz"[dimension]);
    int below = 1;
    for (size_t i = 0; i < dimension; ++i) below *= source_.threads[i];
    std::string value = "(int)threadIdx.x";
    if (below > 1) value += fmt::format(" / {}", below);
    if (dimension + 1 < threads_.size()) value += fmt::format(" % {}", source_.threads[dimension]);
    return value;
  }

  // A team's number, taken apart for the grid loops; the innermost one changes fastest.
  void Grid(const Stmt& stmt) {
    std::string value = kernel_.index_bits == 32 ? "(int)blockIdx.x" : "(long long)blockIdx.x";
    if (part_ != nullptr)
      value = kernel_.index_bits == 32 ? "team_number" : "(long long)team_number";
    auto at = static_cast<size_t>(std::ranges::find(grid_, stmt.loop) - grid_.begin());
    std::string inner;
    for (size_t i = at + 1; i < grid_.size(); ++i) {
      inner += (inner.empty() ? "" : " * ") + GridExtent(kernel_.loop(grid_[i]).extent);
    }
    if (!inner.empty()) value = fmt::format("{} / ({})", value, inner);
    if (at > 0) value += fmt::format(" % {}", GridExtent(kernel_.loop(stmt.loop).extent));
    Line("const {} {} = {};", IndexType(), names_.Of(stmt.loop), value);
  }

  // The extent of an inner grid loop, which may not have been computed yet: its expression.
  std::string GridExtent(ValueId id) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.arity() == 0) return Operand(id);
    std::array<std::string, 3> operands;
    for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
      operands[i] = GridExtent(node.operands[i]);
    ScalarType from = kernel_.node(node.operands[0]).type;
    return "(" + spelling_.Prim(node.prim, node.type, from, operands) + ")";
  }

  // ---- lanes

  void Vector(const Stmt& stmt) {
    const Loop& loop = kernel_.loop(stmt.loop);
    int64_t lanes = ConstantOf(loop.extent);
    std::string outer = std::exchange(lane_, names_.Of(stmt.loop));
    in_vector_ = true;
    FindPacks(stmt, lanes);
    for (const auto& [id, base] : packed_loads_) {
      const ScalarNode& node = kernel_.node(id);
      Line("const Pack<{0}, {1}> {2}_all = *(const Pack<{0}, {1}>*)({3} + {4});", Type(node.type),
           lanes, names_.Operand(id), names_.Of(node.array()), base);
    }
    for (const auto& [store, base] : packed_stores_)
      Line("Pack<{}, {}> {};", Type(kernel_.array(store->array).type), lanes, StoredName(*store));
    Line("#pragma unroll");
    Line("for (int {0} = 0; {0} < {1}; ++{0}) {{", lane_, lanes);
    Inner(stmt.body);
    Line("}}");
    for (const auto& [store, base] : packed_stores_)
      Line("*(Pack<{0}, {1}>*)({2} + {3}) = {4};", Type(kernel_.array(store->array).type), lanes,
           names_.Of(store->array), base, StoredName(*store));
    packed_loads_.clear();
    packed_stores_.clear();
    in_vector_ = false;
    lane_ = std::move(outer);
  }

  // The loads and stores of all lanes that are one wide access: each lane's element next to its
  // neighbour's, the first one aligned.
  void FindPacks(const Stmt& stmt, int64_t lanes) {
    std::set<ArrayId> read;
    std::map<ArrayId, int> stored;
    inside_.clear();
    FindAccesses(stmt.body, read, stored);
    if (StoresAlike(stmt.body, read))
      return Fail(fmt::format("vector loop {}: all lanes store alike what they also read",
                              kernel_.loop(stmt.loop).name));
    if ((lanes & (lanes - 1)) != 0) return;
    for (size_t i = 0; i <= stmt.body.size(); ++i) {
      for (ValueId id : placement_.Before(stmt.body, i)) {
        const ScalarNode& node = kernel_.node(id);
        if (node.prim != Prim::kLoad) continue;
        std::string base = PackBase(stmt.loop, lanes, node.array(), node.operands[0]);
        if (!base.empty()) packed_loads_.emplace(id, base);
      }
      if (i == stmt.body.size() || stmt.body[i].kind != StmtKind::kStore) continue;
      const Stmt& store = stmt.body[i];
      if (read.contains(store.array)) continue;
      // Several of one array stay in their order only if none of them is done before.
      if (stored[store.array] > 1 && !AreWide(stmt, lanes, store.array)) continue;
      // It waits until all lanes are done.
      if (!kernel_.array(store.array).distinct && LoadsAfter(stmt.body, i)) continue;
      std::string base = PackBase(stmt.loop, lanes, store.array, store.index);
      if (!base.empty()) packed_stores_.emplace(&store, base);
    }
    if (!packed_loads_.empty() || !packed_stores_.empty()) source_.uses_packs = true;
  }

  // What all lanes store, by the number of the store among those to its array.
  std::string StoredName(const Stmt& stmt) const {
    int number = 0;
    for (const auto& [store, base] : packed_stores_)
      if (store->array == stmt.array && store < &stmt) ++number;
    return number == 0 ? names_.Of(stmt.array) + "_all"
                       : fmt::format("{}_all_{}", names_.Of(stmt.array), number);
  }

  // Whether all stores of a vector loop to an array are wide ones, of the loop's own block.
  bool AreWide(const Stmt& loop, int64_t lanes, ArrayId array) {
    if (!kernel_.array(array).distinct) return false;
    size_t wide = 0, all = 0;
    for (const Stmt& stmt : loop.body) {
      if (stmt.kind == StmtKind::kStore && stmt.array == array)
        wide += PackBase(loop.loop, lanes, array, stmt.index).empty() ? 0 : 1;
      all += StoresTo(stmt, array);
    }
    return wide == all;
  }
  static size_t StoresTo(const Stmt& stmt, ArrayId array) {
    size_t count = stmt.kind == StmtKind::kStore && stmt.array == array ? 1 : 0;
    for (const Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise})
      for (const Stmt& below : *inner) count += StoresTo(below, array);
    return count;
  }

  // Whether something that may overlap other arrays is loaded after a statement of a block.
  bool LoadsAfter(const Block& block, size_t stmt) const {
    for (size_t i = stmt + 1; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) {
        const ScalarNode& node = kernel_.node(id);
        if (node.prim == Prim::kLoad && !kernel_.array(node.array()).distinct) return true;
      }
      if (i < block.size() && block[i].kind != StmtKind::kStore) return true;
    }
    return false;
  }

  void FindAccesses(const Block& block, std::set<ArrayId>& read, std::map<ArrayId, int>& stored) {
    for (size_t i = 0; i <= block.size(); ++i) {
      auto values = placement_.Before(block, i);
      inside_.insert(values.begin(), values.end());
    }
    for (const Stmt& stmt : block) {
      if (stmt.kind == StmtKind::kRead || stmt.kind == StmtKind::kShuffle)
        inside_.insert(stmt.value);
      if (stmt.kind == StmtKind::kRead) read.insert(kernel_.node(stmt.value).array());
      if (stmt.kind == StmtKind::kStore) ++stored[stmt.array];
      for (const Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise})
        if (!inner->empty()) FindAccesses(*inner, read, stored);
    }
  }

  // Lanes in lockstep do so once, lanes one after the other would do it again and again.
  bool StoresAlike(const Block& block, const std::set<ArrayId>& read) const {
    for (const Stmt& stmt : block) {
      if (stmt.kind == StmtKind::kStore && read.contains(stmt.array) &&
          !variance_.ByLane(stmt.index) && !variance_.PerLane(stmt.array))
        return true;
      for (const Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise})
        if (StoresAlike(*inner, read)) return true;
    }
    return false;
  }

  // Where the first lane's element is, as text; empty: no wide access.
  std::string PackBase(LoopId loop, int64_t lanes, ArrayId id, ValueId index) {
    const Array& array = kernel_.array(id);
    if (array.space == Space::kRegisters) return {};
    int64_t bytes = std::min(lanes * BytesOf(array.type), kWideBytes);
    int64_t aligned = array.space == Space::kTeam ? 16 : array.alignment;
    std::optional<LinearIndex> linear = LinearOf(kernel_, index);
    if (!linear || aligned < bytes || linear->constant % lanes != 0) return {};
    std::string base;
    bool found = false;
    for (auto [value, factor] : linear->terms) {
      const ScalarNode& node = kernel_.node(value);
      if (node.prim == Prim::kLoop && node.loop() == loop) {
        found = factor == 1;
        if (!found) return {};
        continue;
      }
      int64_t stride = 0;
      if (variance_.ByLane(value) || inside_.contains(value) ||
          __builtin_mul_overflow(ranges_.Of(kernel_, value).stride, factor, &stride) ||
          stride % lanes != 0)
        return {};
      if (!base.empty()) base += " + ";
      base += factor == 1 ? Operand(value) : fmt::format("{} * {}", Operand(value), factor);
    }
    if (!found) return {};
    if (base.empty()) return fmt::format("{}", linear->constant);
    return linear->constant == 0 ? base : fmt::format("{} + {}", base, linear->constant);
  }

  const Kernel& kernel_;
  const std::set<ValueId>* needed_;
  const std::string* part_;
  mutable Mentions mentions_;
  ValueId defining_ = kNoValue;
  Placement placement_;
  Variance variance_;
  KernelNames names_;
  Spelling spelling_;
  RangeTable ranges_;
  CudaSource source_;
  std::string text_, failure_;
  bool failed_ = false, in_vector_ = false;
  int depth_ = 0;
  std::string lane_ = "0";
  std::vector<LoopId> grid_, threads_;
  int64_t team_bytes_ = 0;
  std::map<ValueId, std::string> packed_loads_;
  std::map<const Stmt*, std::string> packed_stores_;  // of one block: in its order
  std::set<ValueId> inside_;                          // computed within the vector loop
};

}  // namespace

std::string Prelude(const CudaSource& source) {
  std::string text;
  if (source.uses_packs) text += kPackText;
  if (source.uses_f16) text += kF16Text;
  if (source.uses_bf16) text += kBf16Text;
  return text;
}

Result<CudaSource> CudaText(const Kernel& kernel) {
  Writer draft(kernel);
  TOK_RETURN_IF_ERROR(draft.Write());
  std::set<ValueId> needed = draft.mentions().Needed();
  return Writer(kernel, &needed).Write();
}

Result<CudaSource> CudaPartText(const Kernel& kernel, const std::string& name) {
  Writer draft(kernel, nullptr, &name);
  TOK_RETURN_IF_ERROR(draft.Write());
  std::set<ValueId> needed = draft.mentions().Needed();
  return Writer(kernel, &needed, &name).Write();
}

}  // namespace tokamak::cuda

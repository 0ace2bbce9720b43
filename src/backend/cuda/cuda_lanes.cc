// Vector loops: lanes run in sequence in registers, with their contiguous accesses as one wide
// access.

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/cuda/cuda_writer.h"
#include "kernel/linear.h"

namespace tokamak::cuda {
namespace {

constexpr int64_t kWideBytes = 16;  // per thread: the widest load or store (CUDA programming guide)

}  // namespace

void CudaWriter::Vector(const Stmt& stmt) {
  const Loop& loop = kernel_.loop(stmt.loop);
  int64_t lanes = ConstantOf(loop.extent);
  std::string outer = std::exchange(lane_, names_.Of(stmt.loop));
  in_vector_ = true;
  lanes_ = lanes;
  FindVectorAccesses(stmt, lanes);
  for (const auto& [id, base] : vector_loads_) {
    const ScalarNode& node = kernel_.node(id);
    bool in_words = AreBytes(node.type, lanes);
    Line("const Vec<{0}, {1}> {2}_all = *(const Vec<{0}, {1}>*)({3} + {4});",
         in_words ? "unsigned" : Type(node.type), in_words ? lanes / 4 : lanes, names_.Operand(id),
         names_.Of(node.array()), base);
  }
  for (const auto& [store, base] : vector_stores_)
    Line("Vec<{}, {}> {};", Type(kernel_.array(store->array).type), lanes, StoredName(*store));
  Line("#pragma unroll");
  Line("for (int {0} = 0; {0} < {1}; ++{0}) {{", lane_, lanes);
  Inner(stmt.body);
  Line("}}");
  for (const auto& [store, base] : vector_stores_)
    Line("*(Vec<{0}, {1}>*)({2} + {3}) = {4};", Type(kernel_.array(store->array).type), lanes,
         names_.Of(store->array), base, StoredName(*store));
  for (const auto& [store, base] : vector_stores_) vector_loaded_.insert(store->array);
  vector_loads_.clear();
  beside_.clear();
  vector_stores_.clear();
  in_vector_ = false;
  lane_ = std::move(outer);
}

bool CudaWriter::AreBytes(ScalarType type, int64_t lanes) {
  constexpr int64_t kFewBytes = 4;  // up to 4, they are loaded into separate registers
  return BytesOf(type) == 1 && lanes > kFewBytes;
}

std::string CudaWriter::Lane(ValueId vector_access, int64_t lanes, const std::string& lane) {
  ScalarType type = kernel_.node(vector_access).type;
  std::string all = names_.Operand(vector_access) + "_all";
  if (!AreBytes(type, lanes)) return fmt::format("{}.at[{}]", all, lane);
  source_.helpers.insert(Helper::kBytes);
  return fmt::format("({})ByteOf({}, {})", Type(type), all, lane);
}

// Finds loads and stores of a vector loop that become one wide access. Wide loads precede all lanes
// and wide stores follow them, so an access that another lane could observe in between stays
// scalar.
void CudaWriter::FindVectorAccesses(const Stmt& stmt, int64_t lanes) {
  std::set<ArrayId> read;
  std::map<ArrayId, int> stored;
  inside_.clear();
  FindAccesses(stmt.body, read, stored);
  std::set<ArrayId> kept = read;
  std::erase_if(kept, [&](ArrayId array) { return BeginsAnew(stmt.body, array); });
  if (StoresUniform(stmt.body, kept))
    return Fail(
        fmt::format("vector loop {}: all lanes store the same elements, which they also read",
                    kernel_.loop(stmt.loop).name));
  if ((lanes & (lanes - 1)) != 0) return;
  for (size_t i = 0; i <= stmt.body.size(); ++i) {
    for (ValueId id : placement_.Before(stmt.body, i)) {
      const ScalarNode& node = kernel_.node(id);
      if (node.prim != Prim::kLoad) continue;
      std::string base = VectorBase(stmt.loop, lanes, node.array(), node.operands[0]);
      if (!base.empty()) vector_loads_.emplace(id, base);
    }
    if (i == stmt.body.size()) continue;
    if (stmt.body[i].kind == StmtKind::kRead)
      FindVectorRead(stmt, lanes, stmt.body[i].value, stored);
    if (stmt.body[i].kind != StmtKind::kStore) continue;
    const Stmt& store = stmt.body[i];
    if (read.contains(store.array) && !IsReplaced(stmt.body, store.array)) continue;
    // Several stores to one array stay in order only if either all or none are deferred.
    if (stored[store.array] > 1 && !AreWide(stmt, lanes, store.array)) continue;
    // The wide store is deferred until all lanes are done.
    if (!kernel_.array(store.array).distinct && LoadsAfter(stmt.body, i)) continue;
    std::string base = VectorBase(stmt.loop, lanes, store.array, store.index);
    if (!base.empty()) vector_stores_.emplace(&store, base);
  }
  FindBeside(stmt, lanes);
  if (!vector_loads_.empty() || !vector_stores_.empty())
    source_.helpers.insert(Helper::kVectorAccess);
}

void CudaWriter::FindBeside(const Stmt& stmt, int64_t lanes) {
  for (size_t i = 0; i <= stmt.body.size(); ++i) {
    for (ValueId id : placement_.Before(stmt.body, i)) {
      const ScalarNode& node = kernel_.node(id);
      if (node.prim != Prim::kLoad || vector_loads_.contains(id)) continue;
      for (int64_t by : {-1, 1}) {
        std::string base = VectorBase(stmt.loop, lanes, node.array(), node.operands[0], by);
        if (base.empty()) continue;
        for (const auto& [vector_access, other] : vector_loads_)
          if (other == base && kernel_.node(vector_access).array() == node.array())
            beside_.emplace(id, Beside{vector_access, by, lanes});
      }
    }
  }
}

void CudaWriter::FindVectorRead(const Stmt& loop, int64_t lanes, ValueId id,
                                const std::map<ArrayId, int>& stored) {
  const ScalarNode& node = kernel_.node(id);
  if (kernel_.array(node.array()).space != Space::kShared) return;
  if (stored.contains(node.array()) && !IsReplaced(loop.body, node.array())) return;
  std::string base = VectorBase(loop.loop, lanes, node.array(), node.operands[0]);
  if (!base.empty()) vector_loads_.emplace(id, base);
}

bool CudaWriter::IsReplaced(const StmtList& body, ArrayId array) const {
  if (kernel_.array(array).space != Space::kShared) return false;
  ValueId first_index = kNoValue;
  bool is_stored = false;
  for (const Stmt& stmt : body) {
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      for (const Stmt& below : *inner)
        if (Touches(below, array)) return false;
    if (!Touches(stmt, array)) continue;
    bool is_read = stmt.kind == StmtKind::kRead;
    if ((!is_read && stmt.kind != StmtKind::kStore) || is_stored) return false;
    ValueId index = is_read ? kernel_.node(stmt.value).operands[0] : stmt.index;
    if (first_index != kNoValue && first_index != index) return false;
    first_index = index;
    is_stored = !is_read;
  }
  return is_stored;
}

bool CudaWriter::Touches(const Stmt& stmt, ArrayId array) const {
  if (stmt.kind == StmtKind::kRead && kernel_.node(stmt.value).array() == array) return true;
  if ((stmt.kind == StmtKind::kStore || stmt.kind == StmtKind::kMatMul) && stmt.array == array)
    return true;
  for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
    for (const Stmt& below : *inner)
      if (Touches(below, array)) return true;
  return false;
}

std::string CudaWriter::StoredName(const Stmt& stmt) const {
  int number = 0;
  for (const auto& [store, base] : vector_stores_)
    if (store->array == stmt.array && store < &stmt) ++number;
  std::string name = names_.Of(stmt.array) + "_all";
  // Another loop of the same block may have stored a vector of this array.
  if (vector_loaded_.contains(stmt.array)) name += "_" + lane_;
  return number == 0 ? name : fmt::format("{}_{}", name, number);
}

bool CudaWriter::AreWide(const Stmt& loop, int64_t lanes, ArrayId array) {
  if (!kernel_.array(array).distinct) return false;
  size_t wide = 0, all = 0;
  for (const Stmt& stmt : loop.body) {
    if (stmt.kind == StmtKind::kStore && stmt.array == array)
      wide += VectorBase(loop.loop, lanes, array, stmt.index).empty() ? 0 : 1;
    all += StoresTo(stmt, array);
  }
  return wide == all;
}

size_t CudaWriter::StoresTo(const Stmt& stmt, ArrayId array) {
  size_t count = stmt.kind == StmtKind::kStore && stmt.array == array ? 1 : 0;
  for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
    for (const Stmt& below : *inner) count += StoresTo(below, array);
  return count;
}

bool CudaWriter::LoadsAfter(const StmtList& block, size_t stmt) const {
  for (size_t i = stmt + 1; i <= block.size(); ++i) {
    for (ValueId id : placement_.Before(block, i)) {
      const ScalarNode& node = kernel_.node(id);
      if (node.prim == Prim::kLoad && !kernel_.array(node.array()).distinct) return true;
    }
    if (i < block.size() && block[i].kind != StmtKind::kStore) return true;
  }
  return false;
}

void CudaWriter::FindAccesses(const StmtList& block, std::set<ArrayId>& read,
                              std::map<ArrayId, int>& stored) {
  for (size_t i = 0; i <= block.size(); ++i) {
    auto values = placement_.Before(block, i);
    inside_.insert(values.begin(), values.end());
  }
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kRead || stmt.kind == StmtKind::kShuffle) inside_.insert(stmt.value);
    if (stmt.kind == StmtKind::kRead) read.insert(kernel_.node(stmt.value).array());
    if (stmt.kind == StmtKind::kStore) ++stored[stmt.array];
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      if (!inner->empty()) FindAccesses(*inner, read, stored);
  }
}

bool CudaWriter::BeginsAnew(const StmtList& body, ArrayId array) const {
  const Array& of = kernel_.array(array);
  if (of.space != Space::kRegisters || of.size != 1) return false;
  auto first = std::ranges::find_if(body, [&](const Stmt& stmt) { return Touches(stmt, array); });
  return first != body.end() && first->kind == StmtKind::kStore;
}

bool CudaWriter::StoresUniform(const StmtList& block, const std::set<ArrayId>& read) const {
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kStore && read.contains(stmt.array) &&
        !divergence_.ByLane(stmt.index) && !divergence_.PerLane(stmt.array))
      return true;
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      if (StoresUniform(*inner, read)) return true;
  }
  return false;
}

std::string CudaWriter::VectorBase(LoopId loop, int64_t lanes, ArrayId id, ValueId index,
                                   int64_t by) {
  const Array& array = kernel_.array(id);
  if (array.space == Space::kRegisters) return {};
  int64_t bytes = std::min(lanes * BytesOf(array.type), kWideBytes);
  int64_t aligned = array.space == Space::kShared ? 16 : array.alignment;
  std::optional<LinearIndex> linear = LinearOf(kernel_, index);
  if (!linear || aligned < bytes || (linear->constant - by) % lanes != 0) return {};
  linear->constant -= by;
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
    if (divergence_.ByLane(value) || inside_.contains(value) ||
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

}  // namespace tokamak::cuda

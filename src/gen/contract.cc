// The CPU contract generator: a dot with the elementwise code that produces its operands and uses
// its results.
//
//   for each tile of the result (grid)
//     for each panel along the contracted dimension
//       compute and pack lhs and rhs of the panel (unless memory has that layout already)
//       sums += lhs * rhs                  (the multiply statement of kernel IR)
//     for each element of the tile: compute its consumers, store
//       (or row by row with rows_body.h if rows of results are reduced, as in a softmax)
//
// A chain is a dot whose lhs consists of rows that are reduced, possibly rows of another dot's
// results (softmax(q k) v). The lhs is never stored to memory:
//
//   for each batch and block of rows (grid)
//     pack rhs of both dots
//     for each tile of whole rows
//       sums of the inner dot, as above
//       for each of its rows: reduce it and compute a row of lhs
//       sums = lhs * rhs; compute the consumers, store
//
// Tiles depend on the shape only. Tiles at the end overlap the ones before them. Along the
// contracted dimension operands are padded with zeros; padded rows and columns are not stored.

#include "gen/contract.h"

#include <algorithm>
#include <unordered_set>

#include "gen/dot_tile.h"
#include "gen/roots.h"
#include "gen/rows_body.h"

namespace tokamak {
namespace {

// Elements. Shorter rows are left to the columns generator, which reduces in another order. Chosen.
constexpr int64_t kContractLeastRow = 8;

bool HasReduction(const FusedRegion& region) {
  return std::any_of(region.instrs.begin(), region.instrs.end(),
                     [](const Instr* instr) { return instr->op() == Op::kReduce; });
}

// The region, split around its dots.
struct ContractRegions {
  const Instr* dot = nullptr;    // the last dot
  const Instr* inner = nullptr;  // the dot that its lhs is computed from
  FusedRegion rows;              // produces lhs row by row; empty if lhs has no reductions
  FusedRegion rest;              // all other instructions
  int64_t columns = 1;           // column groups that roots combine (see ColumnGroups)
  bool left_is_root = false;     // lhs is also stored
  bool IsChain() const { return !rows.instrs.empty(); }
};

// The instructions of the region that the values depend on, not following the operands of
// `without`.
std::unordered_set<const Instr*> DependenciesOf(const FusedRegion& region,
                                                std::vector<const Instr*> open,
                                                const Instr* without) {
  std::unordered_set<const Instr*> inside(region.instrs.begin(), region.instrs.end()), found;
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (instr == without || !inside.contains(instr) || !found.insert(instr).second) continue;
    for (const Instr* operand : instr->operands()) open.push_back(operand);
  }
  return found;
}

FusedRegion SubRegion(const FusedRegion& region, const std::unordered_set<const Instr*>& which) {
  FusedRegion part;
  part.computation = region.computation;
  for (const Instr* instr : region.instrs)
    if (which.contains(instr)) part.instrs.push_back(instr);
  for (const Instr* root : region.roots)
    if (which.contains(root)) part.roots.push_back(root);
  part.inputs = InputsOf(part.instrs);
  return part;
}

// The number of equal column ranges that roots combine, such as the gates of a recurrent cell: 1 if
// roots have as many elements as the dot, 0 if they have another size.
int64_t ColumnGroups(const ContractRegions& parts) {
  // Column groups. Chosen: an LSTM has 4.
  constexpr int64_t kMaxColumnGroups = 8;
  std::optional<int64_t> count;
  int64_t elements = parts.dot->shape().ElementCount();
  for (const Instr* root : parts.rest.roots) {
    int64_t own = root->shape().IsArray() ? DomainOf(*root).ElementCount() : 0;
    if (own == 0) return 0;
    int64_t of_root = elements / own;
    bool even = of_root * own == elements;
    if (!even || of_root > kMaxColumnGroups || count.value_or(of_root) != of_root) return 0;
    count = of_root;
  }
  return parts.IsChain() && count != 1 ? 0 : count.value_or(0);
}

// Drops dimensions of size 1.
Dims Squeezed(const Dims& dims) {
  Dims squeezed;
  std::ranges::copy_if(dims, std::back_inserter(squeezed), [](int64_t size) { return size != 1; });
  return squeezed;
}

// Returns why the region is not a contraction, empty if it is.
std::string FindContractRegions(const FusedRegion& region, const Machine& machine,
                                ContractRegions& parts) {
  for (const Instr* instr : region.instrs)
    if (instr->op() == Op::kDot) parts.dot = instr;
  if (parts.dot == nullptr) return "it has no contraction";
  const Instr* left = parts.dot->operand(0);
  parts.rest = region;
  FusedRegion rows = SubRegion(region, DependenciesOf(region, {left}, nullptr));
  if (HasReduction(rows)) {
    std::vector<const Instr*> results;
    for (const Instr* root : region.roots)
      if (std::find(rows.roots.begin(), rows.roots.end(), root) == rows.roots.end())
        results.push_back(root);
    parts.rows = std::move(rows);
    parts.rest = SubRegion(region, DependenciesOf(region, std::move(results), left));
    parts.left_is_root =
        std::find(parts.rows.roots.begin(), parts.rows.roots.end(), left) != parts.rows.roots.end();
    if (!parts.left_is_root) parts.rows.roots.push_back(left);
  }
  for (const Instr* instr : region.instrs) {
    if (instr->op() != Op::kDot || instr == parts.dot) continue;
    if (parts.inner != nullptr || !parts.IsChain() || !CanUseContract(*instr, machine) ||
        std::find(parts.rest.instrs.begin(), parts.rest.instrs.end(), instr) !=
            parts.rest.instrs.end())
      return "it has a second contraction";
    parts.inner = instr;
  }
  if (!HasReduction(parts.rest)) parts.columns = ColumnGroups(parts);
  return parts.columns > 0 ? "" : "a root has another number of elements than the contraction";
}

// Whether these dimensions of a shape follow `last` in ascending order; dimensions of size 1 may be
// anywhere.
bool AreBehind(const Dims& dims, const Shape& shape, int64_t& last) {
  for (int64_t d : dims) {
    if (shape.dim(static_cast<size_t>(d)) == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

class ContractBuilder {
 public:
  ContractBuilder(const FusedRegion& region, const ContractRegions& parts, const Machine& machine,
                  const std::string& name)
      : region_(region),
        parts_(parts),
        machine_(machine),
        stitched_(HasReduction(parts.rest)),
        b_(name),
        emitter_(b_, region),
        follow_(parts.rest, machine, b_, emitter_),
        before_(parts.rows, machine, b_, emitter_) {}

  BuildOutcome Build() { return parts_.IsChain() ? BuildChain() : BuildTiles(); }

 private:
  BuildOutcome BuildTiles() {
    const Instr& dot = *parts_.dot;
    DotDimensions dot_dims(dot);
    if (dot_dims.n % parts_.columns != 0) return {std::nullopt, "its columns have no such groups"};
    tile_.emplace(environment_, dot, TilingOf(dot, dot_dims, machine_, stitched_, parts_.columns));
    if (std::string why = WhyNoRows(); !why.empty()) return {std::nullopt, why};
    if (parts_.columns > 1 && !AreRootsOfColumnGroups())
      return {std::nullopt, "its columns have no groups"};
    bool is_all = StoresSumsDirectly();
    if (is_all) tile_->WriteTo(emitter_.OutputOf(*parts_.rest.roots[0]));
    tile_->DeclareArrays();
    const TiledDimension &rows = tile_->tiling().rows, &columns = tile_->tiling().columns;
    int64_t grid_size = tile_->dot_dims().batch * rows.count * columns.count;
    b_.For("tile", LoopRole::kGrid, b_.Index(grid_size), [&](Scalar g) {
      Scalar rest = g / b_.Index(columns.count);
      column_ = Begin(columns, g % b_.Index(columns.count));
      row_ = Begin(rows, rest % b_.Index(rows.count));
      batch_ = rest / b_.Index(rows.count);
      tile_->BeginBatch(batch_);
      tile_->EmitTile(row_, column_);
      if (!is_all) Finish();
    });
    return FinishRegionKernel(b_, emitter_, region_, grid_size, false);
  }

  // Whether the results have no consumers in the region: the sums are stored directly.
  bool StoresSumsDirectly() const {
    const std::vector<const Instr*>& roots = parts_.rest.roots;
    const Instr& dot = *parts_.dot;
    bool alone = roots.size() == 1 &&
                 (roots[0] == &dot || (dot.users().size() == 1 && roots[0] == &tile_->result()));
    return alone && !stitched_ && tile_->CanWriteTo();
  }

  BuildOutcome BuildChain() {
    if (std::string why = WhyNoChain(); !why.empty()) return {std::nullopt, why};
    std::optional<ChainTiling> chain = TilingOfChain(*parts_.dot, parts_.inner, machine_);
    if (!chain) return {std::nullopt, "storing its lhs is cheaper than recomputing it per task"};
    if (parts_.inner != nullptr) inner_.emplace(environment_, *parts_.inner, chain->inner);
    tile_.emplace(environment_, *parts_.dot, chain->outer);
    if (std::string why = WhyNoRows(); !why.empty()) return {std::nullopt, why};
    if (inner_) inner_->DeclareArrays();
    left_ = tile_->DeclareLhs();
    tile_->DeclareArrays();
    const TiledDimension& rows = chain->outer.rows;
    int64_t tasks = chain->tasks(tile_->dot_dims().batch),
            of_batch = rows.count / chain->row_tiles_per_task;
    column_ = b_.Index(0);
    b_.For("task", LoopRole::kGrid, b_.Index(tasks), [&](Scalar task) {
      batch_ = task / b_.Index(of_batch);
      for (DotTile* tile : {inner_ ? &*inner_ : nullptr, &*tile_}) {
        if (tile == nullptr) continue;
        tile->BeginBatch(batch_);
        tile->PackRhsOnce(column_);
      }
      tile_->ZeroLhsPadding();
      Scalar first = task % b_.Index(of_batch) * b_.Index(chain->row_tiles_per_task);
      b_.For("tile", LoopRole::kSerial, b_.Index(chain->row_tiles_per_task), [&](Scalar tile) {
        row_ = Begin(rows, first + tile);
        MakeLeft();
        tile_->EmitTile(row_, column_);
        Finish();
      });
    });
    return FinishRegionKernel(b_, emitter_, region_, tasks, false);
  }

  // Whether all roots have the rows of the results and the columns of one group.
  bool AreRootsOfColumnGroups() const {
    if (!tile_->SupportsColumnGroups()) return false;
    Dims dims = tile_->result().shape().dims();
    dims.back() /= parts_.columns;
    return std::ranges::all_of(parts_.rest.roots, [&](const Instr* root) {
      return Squeezed(DomainOf(*root).dims()) == Squeezed(dims);
    });
  }

  // The reductions must reduce whole rows of results.
  std::string WhyNoRows() {
    if (!stitched_) return "";
    const DotDimensions& dot_dims = tile_->dot_dims();
    if (dot_dims.n > kMaxWholeRowElements) return "its rows are too long for a tile";
    return WhyOtherRows(parts_.rest, follow_, dot_dims);
  }

  // lhs must have the rows that its reductions reduce, in the same order.
  std::string WhyNoChain() {
    DotDimensions dot_dims(*parts_.dot);
    const Shape& left = parts_.dot->operand(0)->shape();
    int64_t last = 0;
    if (!AreBehind(dot_dims.attrs.lhs_batch, left, last) ||
        !AreBehind(dot_dims.lhs_free, left, last) ||
        !AreBehind(dot_dims.attrs.lhs_contracting, left, last))
      return "its lhs is not produced in rows";
    if (parts_.inner == nullptr) {
      if (std::string why = before_.Analyze(); !why.empty()) return why;
      if (before_.row_length() < kContractLeastRow) return "its rows are reduced faster as columns";
    } else {
      DotDimensions inner(*parts_.inner);
      if (inner.batch != dot_dims.batch) return "its dots have different batches";
      if (std::string why = WhyOtherRows(parts_.rows, before_, inner); !why.empty()) return why;
    }
    bool fits =
        before_.row_count() == dot_dims.batch * dot_dims.m && before_.row_length() == dot_dims.k;
    return fits ? "" : "its reductions reduce other rows than the dot's lhs has";
  }

  static std::string WhyOtherRows(const FusedRegion& region, RowsBody& body,
                                  const DotDimensions& dot_dims) {
    RowLevels found;
    if (std::string why = AnalyzeRowLevels(region, found); !why.empty()) return why;
    if (std::string why = body.Analyze(); !why.empty()) return why;
    if (body.row_length() < kContractLeastRow) return "its rows are reduced faster as columns";
    bool fits = body.row_count() == dot_dims.batch * dot_dims.m && body.row_length() == dot_dims.n;
    return fits ? "" : "its reductions reduce other rows than the dot's";
  }

  Scalar Begin(const TiledDimension& cut, Scalar tile_index) {
    if (cut.count == 1) return b_.Index(0);
    Scalar begin = tile_index * b_.Index(cut.size);
    return cut.total % cut.size == 0 ? begin : LesserOf(begin, b_.Index(cut.total - cut.size));
  }

  // Calls body for the rows of the tile, with their row index in the dot's results.
  template <typename Body>
  void ForRows(Body&& body) {
    const DotDimensions& dot_dims = tile_->dot_dims();
    b_.For("i", LoopRole::kSerial, b_.Index(tile_->tiling().rows.ValidSize()),
           [&](Scalar i) { body(i, batch_ * b_.Index(dot_dims.m) + (row_ + i)); });
  }

  static RowLocation SumsOf(const DotTile& tile, Scalar begin) {
    return {&tile.result(), tile.sum_type(), tile.sums(), begin};
  }

  // Computes lhs for the rows of the tile.
  void MakeLeft() {
    if (inner_) inner_->EmitTile(row_, b_.Index(0));
    ForRows([&](Scalar i, Scalar row) {
      RowLocation source, sink{parts_.dot->operand(0), tile_->factor_type(), left_,
                               i * b_.Index(tile_->lhs_pitch()), parts_.left_is_root};
      if (inner_) source = SumsOf(*inner_, i * b_.Index(inner_->tiling().TileColumns()));
      before_.Emit(row, source, sink);
    });
  }

  // Computes and stores the consumers of the tile's results.
  void Finish() {
    const Tiling& t = tile_->tiling();
    Dims row_dims = SizesAlong(tile_->dot_dims().lhs_dims, tile_->dot_dims().lhs_free);
    int64_t lanes = (machine_.HasShortVectors() ? InterleaveFactor(machine_) : 1) * t.lanes;
    ForRows([&](Scalar i, Scalar row) {
      Scalar begin = i * b_.Index(t.TileColumns());
      if (stitched_) return follow_.Emit(row, SumsOf(*tile_, begin));
      ForVectors(b_, t.columns.ValidSize(), lanes, [&](Scalar j) {
        Coordinates of_row = tile_->batch_at();
        for (Scalar c : Delinearized(b_, row_ + i, row_dims)) of_row.push_back(c);
        parts_.columns > 1 ? FinishColumnGroups(of_row, row, begin, j)
                           : FinishOne(of_row, row, begin, j);
      });
    });
  }

  // The sum in column `at` of a row of the tile.
  Element SumAt(Scalar begin, Scalar at) {
    Element sum{b_.Read(tile_->sums(), begin + at), {}};
    return ConvertElement(b_, tile_->sum_type(), parts_.dot->shape().type(), sum);
  }

  void FinishOne(Coordinates at, Scalar row, Scalar begin, Scalar j) {
    for (Scalar c : Delinearized(b_, column_ + j, tile_->ColumnDims())) at.push_back(c);
    emitter_.Bind(tile_->result(), 0, at, SumAt(begin, j));
    Scalar linear = row * b_.Index(tile_->dot_dims().n) + (column_ + j);
    for (const Instr* root : parts_.rest.roots) {
      if (IsSliceUpdate(*root)) {
        StoreElements(emitter_, {ElementAt(*root, tile_->result().shape().dims(), at, linear)});
      } else {
        StoreContractRoot(b_, emitter_, *root, tile_->result(), at, linear);
      }
    }
  }

  // Combines one result of each column group.
  void FinishColumnGroups(Coordinates at, Scalar row, Scalar begin, Scalar j) {
    const Tiling& t = tile_->tiling();
    int64_t of_group = t.columns.total;
    Coordinates result = at;
    result.emplace_back();
    for (int64_t group = 0; group < t.column_groups; ++group) {
      result.back() = b_.Index(group * of_group) + (column_ + j);
      emitter_.Memoize(tile_->result(), result, SumAt(begin, b_.Index(group * t.columns.size) + j));
    }
    at.push_back(column_ + j);
    Scalar linear = row * b_.Index(of_group) + (column_ + j);
    Dims dims = tile_->result().shape().dims();
    dims.back() = of_group;
    std::vector<RootElement> ready;
    for (const Instr* root : parts_.rest.roots) ready.push_back(ElementAt(*root, dims, at, linear));
    StoreElements(emitter_, ready);
  }

  // The root's element at this index of `dims`, which are the dimensions of the root or of its
  // update.
  RootElement ElementAt(const Instr& root, const Dims& dims, const Coordinates& at, Scalar linear) {
    const Dims& own = DomainOf(root).dims();
    Coordinates here = own == dims ? at : Delinearized(b_, linear, own);
    if (own != dims && Squeezed(own) == Squeezed(dims)) {
      size_t from = 0;
      for (size_t d = 0; d < own.size(); ++d) {
        while (own[d] != 1 && dims[from] == 1) ++from;
        here[d] = own[d] == 1 ? b_.Index(0) : at[from++];
      }
    }
    if (IsSliceUpdate(root)) return UpdateAt(b_, emitter_, root, here);
    return {&root, 0, linear, emitter_.At(root, here)};
  }

  const FusedRegion& region_;
  const ContractRegions& parts_;
  const Machine& machine_;
  bool stitched_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  RowsBody follow_, before_;  // reductions of the results, and reductions that produce lhs
  DotTile::Environment environment_{region_, machine_, b_, emitter_};
  std::optional<DotTile> tile_, inner_;
  ArrayId left_{};
  Scalar batch_, row_, column_;
};

}  // namespace

void StoreContractRoot(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                       const Instr& dot, const Coordinates& at, Scalar linear) {
  const Dims& dims = root.shape().dims();
  if (root.op() == Op::kTranspose && root.operand(0)->shape().dims() == dot.shape().dims()) {
    const Dims& order = root.attrs<DimensionsAttrs>().dimensions;
    if (order.back() + 1 != static_cast<int64_t>(at.size()))
      return emitter.Fail("a transpose of the contraction's rows");
    Coordinates here;
    for (int64_t d : order) here.push_back(at[static_cast<size_t>(d)]);
    return emitter.Store(root, 0, here, emitter.At(root, here));
  }
  Coordinates here = dims == dot.shape().dims() ? at : Delinearized(b, linear, dims);
  emitter.StoreLinear(root, 0, linear, emitter.At(root, here));
}

BuildOutcome BuildContract(const FusedRegion& region, const Machine& machine,
                           const std::string& name) {
  ContractRegions parts;
  if (std::string why = FindContractRegions(region, machine, parts); !why.empty())
    return {std::nullopt, why};
  return ContractBuilder(region, parts, machine, name).Build();
}

}  // namespace tokamak

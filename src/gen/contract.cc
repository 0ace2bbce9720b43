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
// The preferred tiles depend on the shape only. Tiles at the end overlap the ones before them.
// Along the contracted dimension operands are padded with zeros; padded rows and columns are not
// stored.

#include "gen/contract.h"

#include <algorithm>
#include <unordered_set>

#include "gen/contract_regions.h"
#include "gen/contract_schedules.h"
#include "gen/dot_tile.h"
#include "gen/roots.h"
#include "gen/rows_body.h"

namespace tokamak {
namespace {

// Elements. Shorter rows are left to the columns generator, which reduces in another order. Chosen:
// they do not fill a vector, so combining its lanes costs more than the reduction.
constexpr int64_t kContractLeastRow = 8;

// Drops dimensions of size 1.
Dims Squeezed(const Dims& dims) {
  Dims squeezed;
  std::ranges::copy_if(dims, std::back_inserter(squeezed), [](int64_t size) { return size != 1; });
  return squeezed;
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
  ContractBuilder(const FusedRegion& region, const ContractRegions& parts, const Schedule* schedule,
                  const Machine& machine, const std::string& name)
      : region_(region),
        parts_(parts),
        schedule_(schedule),
        machine_(machine),
        stitched_(HasReduce(parts.rest)),
        b_(name),
        emitter_(b_, region),
        follow_(parts.rest, machine, b_, emitter_),
        before_(parts.rows, machine, b_, emitter_) {}

  BuildOutcome Build() {
    BuildOutcome outcome = parts_.IsChain() ? BuildChain() : BuildTiles();
    if (outcome.built) outcome.built->schedule = tiling_.schedule;
    return outcome;
  }

 private:
  BuildOutcome BuildTiles() {
    if (std::string why = Expand(); !why.empty()) return {std::nullopt, why};
    tile_.emplace(environment_, *parts_.dot, tiling_.dots.outer);
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

  std::string Expand() { return ExpandSchedule(region_, parts_, schedule_, machine_, tiling_); }

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
    if (std::string why = Expand(); !why.empty()) return {std::nullopt, why};
    const ChainTiling& chain = tiling_.dots;
    if (parts_.inner != nullptr) inner_.emplace(environment_, *parts_.inner, chain.inner);
    tile_.emplace(environment_, *parts_.dot, chain.outer);
    if (std::string why = WhyNoRows(); !why.empty()) return {std::nullopt, why};
    if (inner_) inner_->DeclareArrays();
    left_ = tile_->DeclareLhs();
    tile_->DeclareArrays();
    const TiledDimension& rows = chain.outer.rows;
    int64_t tasks = chain.tasks(tile_->dot_dims().batch),
            of_batch = rows.count / chain.row_tiles_per_task;
    column_ = b_.Index(0);
    b_.For("task", LoopRole::kGrid, b_.Index(tasks), [&](Scalar task) {
      batch_ = task / b_.Index(of_batch);
      for (DotTile* tile : {inner_ ? &*inner_ : nullptr, &*tile_}) {
        if (tile == nullptr) continue;
        tile->BeginBatch(batch_);
        tile->PackRhsOnce(column_);
      }
      tile_->ZeroLhsPadding();
      Scalar first = task % b_.Index(of_batch) * b_.Index(chain.row_tiles_per_task);
      b_.For("tile", LoopRole::kSerial, b_.Index(chain.row_tiles_per_task), [&](Scalar tile) {
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
    int64_t lanes = tiling_.schedule.unroll * t.lanes;
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
  const Schedule* schedule_;  // null: the preferred one
  const Machine& machine_;
  bool stitched_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  RowsBody follow_, before_;  // reductions of the results, and reductions that produce lhs
  DotTile::Environment environment_{region_, machine_, b_, emitter_};
  ContractTiling tiling_;
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

BuildOutcome BuildContract(const FusedRegion& region, const Schedule* schedule,
                           const Machine& machine, const std::string& name) {
  ContractRegions parts;
  if (std::string why = FindContractRegions(region, machine, parts); !why.empty())
    return {std::nullopt, why};
  return ContractBuilder(region, parts, schedule, machine, name).Build();
}

}  // namespace tokamak

// The contract generator: a dot, with the element code that makes its operands and that uses its
// results.
//
//   for each tile of the results (the grid)
//     for each panel of the depth
//       lhs and rhs of the panel, computed and put in order (unless they lie so already)
//       sums += lhs * rhs                  (kernel form's multiply)
//     for each element of the tile: what follows from it, written
//       (or, where rows of results are folded, such as by a softmax: row by row, rows_body.h)
//
// A chain is a dot whose left side is made in rows that something folds, perhaps rows of another
// dot's results (softmax(q k) v): the left side is never stored.
//
//   for each batch, and each so many rows (the grid)
//     rhs of both dots, put in order
//     for each tile of whole rows
//       sums of the inner dot, as above
//       for each of its rows: folded, and what follows from it is a row of lhs
//       sums = lhs * rhs, and what follows from them, written
//
// Tiles follow from the shape alone. Those at the ends overlap those before them. What an operand
// is padded with along the depth is zero; rows and columns that are padded are not written.

#include "gen/contract.h"

#include <algorithm>
#include <unordered_set>

#include "gen/dot_tile.h"
#include "gen/roots.h"
#include "gen/rows_body.h"

namespace tokamak {
namespace {

// Shorter rows are columns to others, which fold them in another order.
constexpr int64_t kContractLeastRow = 8;

bool HasReduction(const Region& region) {
  return std::any_of(region.instrs.begin(), region.instrs.end(),
                     [](const Instr* instr) { return instr->op() == Op::kReduce; });
}

// The region, in two.
struct Parts {
  const Instr* dot = nullptr;    // the last one
  const Instr* inner = nullptr;  // the one whose results its left side is made of
  Region rows;                   // makes the left side, in rows; nothing when it has no rows
  Region rest;                   // all else
  int64_t columns = 1;           // parts of the dot's columns of which roots have an element each
  bool left_is_root = false;     // written, too
  bool IsChain() const { return !rows.instrs.empty(); }
};

// What the values need, of the region, `without` what is behind that one.
std::unordered_set<const Instr*> Behind(const Region& region, std::vector<const Instr*> open,
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

Region PartOf(const Region& region, const std::unordered_set<const Instr*>& which) {
  Region part;
  part.computation = region.computation;
  for (const Instr* instr : region.instrs)
    if (which.contains(instr)) part.instrs.push_back(instr);
  for (const Instr* root : region.roots)
    if (which.contains(root)) part.roots.push_back(root);
  part.inputs = InputsOf(part.instrs);
  return part;
}

// Into how many parts the columns are cut that roots take together: gates of a recurrent cell. 1:
// a root has as many elements as the dot; 0: another number.
int64_t PartsOfColumns(const Parts& parts) {
  constexpr int64_t kMost = 8;
  std::optional<int64_t> count;
  int64_t elements = parts.dot->shape().ElementCount();
  for (const Instr* root : parts.rest.roots) {
    int64_t own = root->shape().IsArray() ? DomainOf(*root).ElementCount() : 0;
    if (own == 0) return 0;
    int64_t of_root = elements / own;
    bool even = of_root * own == elements;
    if (!even || of_root > kMost || count.value_or(of_root) != of_root) return 0;
    count = of_root;
  }
  return parts.IsChain() && count != 1 ? 0 : count.value_or(0);
}

// Without those of one element.
Dims Squeezed(const Dims& dims) {
  Dims squeezed;
  std::ranges::copy_if(dims, std::back_inserter(squeezed), [](int64_t size) { return size != 1; });
  return squeezed;
}

// Why the region is no contraction; "" when it is.
std::string FindParts(const Region& region, const Machine& machine, Parts& parts) {
  for (const Instr* instr : region.instrs)
    if (instr->op() == Op::kDot) parts.dot = instr;
  if (parts.dot == nullptr) return "it has no contraction";
  const Instr* left = parts.dot->operand(0);
  parts.rest = region;
  Region rows = PartOf(region, Behind(region, {left}, nullptr));
  if (HasReduction(rows)) {
    std::vector<const Instr*> results;
    for (const Instr* root : region.roots)
      if (std::find(rows.roots.begin(), rows.roots.end(), root) == rows.roots.end())
        results.push_back(root);
    parts.rows = std::move(rows);
    parts.rest = PartOf(region, Behind(region, std::move(results), left));
    parts.left_is_root =
        std::find(parts.rows.roots.begin(), parts.rows.roots.end(), left) != parts.rows.roots.end();
    if (!parts.left_is_root) parts.rows.roots.push_back(left);
  }
  for (const Instr* instr : region.instrs) {
    if (instr->op() != Op::kDot || instr == parts.dot) continue;
    if (parts.inner != nullptr || !parts.IsChain() || !IsForContract(*instr, machine) ||
        std::find(parts.rest.instrs.begin(), parts.rest.instrs.end(), instr) !=
            parts.rest.instrs.end())
      return "it has a second contraction";
    parts.inner = instr;
  }
  if (!HasReduction(parts.rest)) parts.columns = PartsOfColumns(parts);
  return parts.columns > 0 ? "" : "a root has another number of elements than the contraction";
}

// Whether the dimensions of this shape stand behind `last`, in order; those of one element may
// stand anywhere.
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
  ContractBuilder(const Region& region, const Parts& parts, const Machine& machine,
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
    DotSides sides(dot);
    if (sides.n % parts_.columns != 0) return {std::nullopt, "its columns have no such parts"};
    tile_.emplace(setting_, dot, TilingOf(dot, sides, machine_, stitched_, parts_.columns));
    if (std::string why = WhyNoRows(); !why.empty()) return {std::nullopt, why};
    if (parts_.columns > 1 && !AreRootsOfParts())
      return {std::nullopt, "its columns are not taken in parts"};
    bool is_all = MakesAll();
    if (is_all) tile_->WriteTo(emitter_.OutputOf(*parts_.rest.roots[0]));
    tile_->MakeArrays();
    const TileCut &rows = tile_->tiling().rows, &columns = tile_->tiling().columns;
    int64_t teams = tile_->sides().batch * rows.count * columns.count;
    b_.For("tile", LoopRole::kGrid, b_.Index(teams), [&](Scalar g) {
      Scalar rest = g / b_.Index(columns.count);
      column_ = Begin(columns, g % b_.Index(columns.count));
      row_ = Begin(rows, rest % b_.Index(rows.count));
      batch_ = rest / b_.Index(rows.count);
      tile_->BeginBatch(batch_);
      tile_->Emit(row_, column_);
      if (!is_all) Finish();
    });
    return FinishLoop(b_, emitter_, region_, teams, false);
  }

  // Whether nothing follows from the results: what is multiplied is written.
  bool MakesAll() const {
    const std::vector<const Instr*>& roots = parts_.rest.roots;
    const Instr& dot = *parts_.dot;
    bool alone = roots.size() == 1 &&
                 (roots[0] == &dot || (dot.users().size() == 1 && roots[0] == &tile_->result()));
    return alone && !stitched_ && tile_->MayWriteTo();
  }

  BuildOutcome BuildChain() {
    if (std::string why = WhyNoChain(); !why.empty()) return {std::nullopt, why};
    std::optional<ChainTiling> chain = TilingOfChain(*parts_.dot, parts_.inner, machine_);
    if (!chain) return {std::nullopt, "its left side is sooner stored than made in the cache"};
    if (parts_.inner != nullptr) inner_.emplace(setting_, *parts_.inner, chain->inner);
    tile_.emplace(setting_, *parts_.dot, chain->outer);
    if (std::string why = WhyNoRows(); !why.empty()) return {std::nullopt, why};
    if (inner_) inner_->MakeArrays();
    left_ = tile_->MakeLhs();
    tile_->MakeArrays();
    const TileCut& rows = chain->outer.rows;
    int64_t tasks = chain->tasks(tile_->sides().batch), of_batch = rows.count / chain->tiles;
    column_ = b_.Index(0);
    b_.For("task", LoopRole::kGrid, b_.Index(tasks), [&](Scalar task) {
      batch_ = task / b_.Index(of_batch);
      for (DotTile* tile : {inner_ ? &*inner_ : nullptr, &*tile_}) {
        if (tile == nullptr) continue;
        tile->BeginBatch(batch_);
        tile->ShareRhs(column_);
      }
      tile_->PadLhs();
      Scalar first = task % b_.Index(of_batch) * b_.Index(chain->tiles);
      b_.For("tile", LoopRole::kSerial, b_.Index(chain->tiles), [&](Scalar tile) {
        row_ = Begin(rows, first + tile);
        MakeLeft();
        tile_->Emit(row_, column_);
        Finish();
      });
    });
    return FinishLoop(b_, emitter_, region_, tasks, false);
  }

  // Whether roots have the rows of the results, and columns of one part.
  bool AreRootsOfParts() const {
    if (!tile_->TakesParts()) return false;
    Dims dims = tile_->result().shape().dims();
    dims.back() /= parts_.columns;
    return std::ranges::all_of(parts_.rest.roots, [&](const Instr* root) {
      return Squeezed(DomainOf(*root).dims()) == Squeezed(dims);
    });
  }

  // Rows of results, whole, are what the reductions fold.
  std::string WhyNoRows() {
    if (!stitched_) return "";
    const DotSides& sides = tile_->sides();
    if (sides.n > kMaxWhole) return "its rows are too long to be kept";
    return WhyOtherRows(parts_.rest, follow_, sides);
  }

  // The left side has the rows that its reductions fold, in their order.
  std::string WhyNoChain() {
    DotSides sides(*parts_.dot);
    const Shape& left = parts_.dot->operand(0)->shape();
    int64_t last = 0;
    if (!AreBehind(sides.attrs.lhs_batch, left, last) || !AreBehind(sides.lhs_free, left, last) ||
        !AreBehind(sides.attrs.lhs_contracting, left, last))
      return "its left side is not made of rows";
    if (parts_.inner == nullptr) {
      if (std::string why = before_.Find(); !why.empty()) return why;
      if (before_.row() < kContractLeastRow) return "its rows are folded sooner side by side";
    } else {
      DotSides inner(*parts_.inner);
      if (inner.batch != sides.batch) return "its contractions are of other batches";
      if (std::string why = WhyOtherRows(parts_.rows, before_, inner); !why.empty()) return why;
    }
    bool fits = before_.rows() == sides.batch * sides.m && before_.row() == sides.k;
    return fits ? "" : "its reductions fold other rows than the contraction's left side has";
  }

  static std::string WhyOtherRows(const Region& region, RowsBody& body, const DotSides& sides) {
    RowLevels found;
    if (std::string why = FindRowLevels(region, found); !why.empty()) return why;
    if (std::string why = body.Find(); !why.empty()) return why;
    if (body.row() < kContractLeastRow) return "its rows are folded sooner side by side";
    bool fits = body.rows() == sides.batch * sides.m && body.row() == sides.n;
    return fits ? "" : "its reductions fold other rows than the contraction makes";
  }

  Scalar Begin(const TileCut& cut, Scalar piece) {
    if (cut.count == 1) return b_.Index(0);
    Scalar begin = piece * b_.Index(cut.size);
    return cut.total % cut.size == 0 ? begin : LesserOf(begin, b_.Index(cut.total - cut.size));
  }

  // Rows of the tile, by their numbers in the results of a dot.
  template <typename Body>
  void ForRows(Body&& body) {
    const DotSides& sides = tile_->sides();
    b_.For("i", LoopRole::kSerial, b_.Index(tile_->tiling().rows.valid()),
           [&](Scalar i) { body(i, batch_ * b_.Index(sides.m) + (row_ + i)); });
  }

  static RowPlace SumsOf(const DotTile& tile, Scalar begin) {
    return {&tile.result(), tile.sum_type(), tile.sums(), begin};
  }

  // The left side of the tile's rows.
  void MakeLeft() {
    if (inner_) inner_->Emit(row_, b_.Index(0));
    ForRows([&](Scalar i, Scalar row) {
      RowPlace source, sink{parts_.dot->operand(0), tile_->type(), left_,
                            i * b_.Index(tile_->lhs_pitch()), parts_.left_is_root};
      if (inner_) source = SumsOf(*inner_, i * b_.Index(inner_->tiling().Width()));
      before_.Emit(row, source, sink);
    });
  }

  // What follows from the tile's results, written.
  void Finish() {
    const Tiling& t = tile_->tiling();
    Dims row_dims = SizesOf(tile_->sides().lhs, tile_->sides().lhs_free);
    int64_t lanes = (machine_.HasShortVectors() ? VectorsTogether(machine_) : 1) * t.lanes;
    ForRows([&](Scalar i, Scalar row) {
      Scalar begin = i * b_.Index(t.Width());
      if (stitched_) return follow_.Emit(row, SumsOf(*tile_, begin));
      ForVectors(b_, t.columns.valid(), lanes, [&](Scalar j) {
        Coordinates of_row = tile_->batch_at();
        for (Scalar c : Delinearized(b_, row_ + i, row_dims)) of_row.push_back(c);
        parts_.columns > 1 ? FinishParts(of_row, row, begin, j) : FinishOne(of_row, row, begin, j);
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
    Scalar linear = row * b_.Index(tile_->sides().n) + (column_ + j);
    for (const Instr* root : parts_.rest.roots) {
      if (IsSliceUpdate(*root)) {
        StoreElements(emitter_, {ElementAt(*root, tile_->result().shape().dims(), at, linear)});
      } else {
        StoreContractRoot(b_, emitter_, *root, tile_->result(), at, linear);
      }
    }
  }

  // Of each part one result.
  void FinishParts(Coordinates at, Scalar row, Scalar begin, Scalar j) {
    const Tiling& t = tile_->tiling();
    int64_t of_part = t.columns.total;
    Coordinates result = at;
    result.emplace_back();
    for (int64_t part = 0; part < t.parts; ++part) {
      result.back() = b_.Index(part * of_part) + (column_ + j);
      emitter_.Remember(tile_->result(), result, SumAt(begin, b_.Index(part * t.columns.size) + j));
    }
    at.push_back(column_ + j);
    Scalar linear = row * b_.Index(of_part) + (column_ + j);
    Dims dims = tile_->result().shape().dims();
    dims.back() = of_part;
    std::vector<RootElement> ready;
    for (const Instr* root : parts_.rest.roots) ready.push_back(ElementAt(*root, dims, at, linear));
    StoreElements(emitter_, ready);
  }

  // At this place of `dims`, which the root has too, or its update.
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

  const Region& region_;
  const Parts& parts_;
  const Machine& machine_;
  bool stitched_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  RowsBody follow_, before_;  // what is folded of the results, and for the left side
  DotTile::Setting setting_{region_, machine_, b_, emitter_};
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

BuildOutcome BuildContract(const Region& region, const Machine& machine, const std::string& name) {
  Parts parts;
  if (std::string why = FindParts(region, machine, parts); !why.empty()) return {std::nullopt, why};
  return ContractBuilder(region, parts, machine, name).Build();
}

}  // namespace tokamak

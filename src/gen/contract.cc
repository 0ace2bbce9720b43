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
// Tiles follow from the shape alone. Those at the ends overlap those before them. What an operand
// is padded with along the depth is zero; rows and columns that are padded are not written.

#include "gen/contract.h"

#include <algorithm>

#include "gen/dot_sides.h"
#include "gen/element.h"
#include "gen/roots.h"
#include "gen/rows_body.h"

namespace tokamak {
namespace {

// Results of a tile, at most, in each direction: their sums and both panels lie in the second
// cache. A shallow product is done sooner than its sums are moved: smaller tiles.
constexpr int64_t kMaxSide = 256, kMaxShallowRows = 64, kShallow = 128;
// Elements of a panel's depth, times their bytes.
constexpr int64_t kPanelBytes = 1024;
// Sums of a tile of whole rows, and its panel of rhs.
constexpr int64_t kWholeBytes = 256 << 10, kWholePanelBytes = 512 << 10, kMaxWhole = 8192;
// Tiles that keep the threads of a large machine busy, and multiplications that make one worth it.
constexpr int64_t kTilesWanted = 16, kLeastOfTile = 1 << 18;
// So few rows do not pay for putting the right side in order.
constexpr int64_t kFewRows = 36;
// Rows this far apart meet in the same few places of the first cache.
constexpr int64_t kBadDistance = 4096;
// Rows that fill a part of the processor's tiles.
constexpr int64_t kWorthTiles = 4, kTileRows = 16, kTileDepth = 32;

int64_t CeilDiv(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
int64_t RoundUp(int64_t x, int64_t to) {
  return CeilDiv(x, to) * to;
}

// One direction, cut.
struct Cut {
  int64_t total = 0;  // as the program has it
  int64_t size = 0;   // of a piece; more than `total` when it is padded
  int64_t count = 1;

  bool IsPadded() const { return size > total; }
  int64_t valid() const { return std::min(size, total); }
};

Cut CutInto(int64_t total, int64_t most, int64_t unit) {
  Cut cut{.total = total};
  cut.count = CeilDiv(total, std::max(most / unit, int64_t{1}) * unit);
  cut.size = RoundUp(CeilDiv(total, cut.count), unit);
  cut.count = CeilDiv(total, cut.size);
  return cut;
}

ElementType ElementOfScalar(ScalarType type) {
  switch (type) {
    case ScalarType::kS16:
      return ElementType::kS16;
    case ScalarType::kS32:
      return ElementType::kS32;
    case ScalarType::kF64:
      return ElementType::kF64;
    default:
      return ElementType::kF32;
  }
}

struct Tiling {
  ScalarType type{};  // of what is multiplied
  Cut rows, columns;
  // The depth: all panels are alike, the last one is padded.
  Cut depth;
  int64_t lanes = 1;  // of sums
  int64_t PaddedDepth() const { return depth.size * depth.count; }
};

// `whole`: a tile has whole rows.
Tiling TilingOf(const Instr& dot, const DotSides& sides, const Machine& machine, bool whole) {
  Tiling t;
  t.type = ContractType(dot, machine);
  bool tiles = t.type == ScalarType::kBF16 && machine.matrix_tiles && sides.m >= kWorthTiles;
  int64_t bytes = BytesOf(t.type);
  t.lanes = machine.Lanes(t.type == ScalarType::kF64 ? 64 : 32);
  int64_t row_unit = tiles ? kTileRows : 1, depth_unit = tiles ? kTileDepth : GroupOf(t.type);
  // Panels that need no padding, if there are such of a fair size.
  int64_t most = std::min(RoundUp(sides.k, depth_unit), kPanelBytes / bytes);
  if (whole) most = std::clamp(kWholePanelBytes / (sides.n * bytes), depth_unit, most);
  t.depth = CutInto(sides.k, most, depth_unit);
  for (int64_t size = most / depth_unit * depth_unit; size >= most / 2; size -= depth_unit) {
    if (sides.k % size != 0) continue;
    t.depth = {.total = sides.k, .size = size, .count = sides.k / size};
    break;
  }
  int64_t rows = sides.k <= kShallow ? kMaxShallowRows : kMaxSide, columns = kMaxSide;
  if (whole) {
    columns = RoundUp(sides.n, t.lanes);
    rows = std::clamp(kWholeBytes / (columns * 4), row_unit, rows);
  }
  auto cut = [&] {
    t.rows = CutInto(sides.m, rows, row_unit);
    t.columns = CutInto(sides.n, columns, t.lanes);
    return sides.batch * t.rows.count * t.columns.count;
  };
  // The longer side is cut finer while there is work enough in each piece.
  while (cut() < kTilesWanted && t.rows.size * t.columns.size * sides.k > 2 * kLeastOfTile) {
    if (!whole && t.columns.size >= t.rows.size && columns > t.lanes) {
      columns = std::max(columns / 2, t.lanes);
    } else if (rows > row_unit) {
      rows = std::max(rows / 2, row_unit);
    } else {
      break;
    }
  }
  return t;
}

// One operand of the dot.
struct Side {
  const Instr* instr = nullptr;
  const Dims *dims = nullptr, *batch = nullptr, *contracting = nullptr, *free = nullptr;
  bool depth_is_inner = false;  // its last dimension is contracted
  // Read as it lies in memory: distances along its rows (columns) and along the depth.
  bool direct = false;
  int64_t free_distance = 0, depth_distance = 0;
};

class ContractBuilder {
 public:
  ContractBuilder(const Region& region, const Instr& dot, const Machine& machine,
                  const std::string& name)
      : region_(region),
        dot_(dot),
        machine_(machine),
        sides_(dot),
        stitched_(std::any_of(region.instrs.begin(), region.instrs.end(),
                              [](const Instr* instr) { return instr->op() == Op::kReduce; })),
        t_(TilingOf(dot, sides_, machine, stitched_)),
        b_(name),
        emitter_(b_, region),
        rows_body_(region, machine, b_, emitter_) {}

  BuildOutcome Build() {
    if (std::string why = stitched_ ? WhyNoRows() : ""; !why.empty()) return {std::nullopt, why};
    FindSides();
    MakeArrays();
    int64_t teams = sides_.batch * t_.rows.count * t_.columns.count;
    b_.For("tile", LoopRole::kGrid, b_.Index(teams), [&](Scalar g) {
      Scalar column = g % b_.Index(t_.columns.count);
      Scalar rest = g / b_.Index(t_.columns.count);
      column_ = Begin(t_.columns, column);
      row_ = Begin(t_.rows, rest % b_.Index(t_.rows.count));
      Scalar batch = rest / b_.Index(t_.rows.count);
      batch_at_ = Delinearized(b_, batch, SizesOf(sides_.lhs, sides_.attrs.lhs_batch));
      batch_ = batch;
      Panels();
      Finish();
    });
    return FinishLoop(b_, emitter_, region_, teams, false);
  }

 private:
  // Rows of results, whole, are what the reductions fold.
  std::string WhyNoRows() {
    if (sides_.n > kMaxWhole) return "its rows are too long to be kept";
    RowLevels found;
    if (std::string why = FindRowLevels(region_, found); !why.empty()) return why;
    if (std::string why = rows_body_.Find(); !why.empty()) return why;
    bool fits = rows_body_.dims() == dot_.shape().dims() &&
                rows_body_.rows() == sides_.batch * sides_.m && rows_body_.row() == sides_.n;
    return fits ? "" : "its reductions fold other rows than the contraction makes";
  }

  Scalar Begin(const Cut& cut, Scalar piece) {
    if (cut.count == 1) return b_.Index(0);
    Scalar begin = piece * b_.Index(cut.size);
    return cut.total % cut.size == 0 ? begin : LesserOf(begin, b_.Index(cut.total - cut.size));
  }

  void FindSides() {
    const DotAttrs& attrs = sides_.attrs;
    lhs_ = {.instr = dot_.operand(0),
            .dims = &sides_.lhs,
            .batch = &attrs.lhs_batch,
            .contracting = &attrs.lhs_contracting,
            .free = &sides_.lhs_free};
    rhs_ = {.instr = dot_.operand(1),
            .dims = &sides_.rhs,
            .batch = &attrs.rhs_batch,
            .contracting = &attrs.rhs_contracting,
            .free = &sides_.rhs_free};
    for (Side* side : {&lhs_, &rhs_}) FindPlaces(*side);
    int64_t bytes = BytesOf(t_.type);
    bool apart = lhs_.free_distance * bytes % kBadDistance != 0;
    lhs_.direct = lhs_.direct && !t_.rows.IsPadded() && lhs_.depth_distance == 1 && apart;
    rhs_.direct = rhs_.direct && !t_.columns.IsPadded() && rhs_.free_distance == 1 &&
                  GroupOf(t_.type) == 1 && t_.rows.count == 1 && t_.rows.size <= kFewRows &&
                  rhs_.depth_distance >= sides_.n;
  }

  void FindPlaces(Side& side) {
    side.depth_is_inner = !side.dims->empty() && !side.contracting->empty() &&
                          side.contracting->back() + 1 == static_cast<int64_t>(side.dims->size());
    std::optional<int64_t> free = DistanceAlong(*side.dims, *side.free);
    std::optional<int64_t> depth = DistanceAlong(*side.dims, *side.contracting);
    side.direct = IsInput(side) && free && depth && t_.PaddedDepth() == sides_.k &&
                  StorageType(side.instr->shape().type()) == t_.type &&
                  !IsComplex(side.instr->shape().type());
    side.free_distance = free.value_or(0);
    side.depth_distance = depth.value_or(0);
    if (sides_.k == 1) side.depth_distance = std::max<int64_t>(side.free_distance, 1);
  }

  bool IsInput(const Side& side) const {
    return std::find(region_.inputs.begin(), region_.inputs.end(), side.instr) !=
           region_.inputs.end();
  }

  void MakeArrays() {
    sums_ = b_.Local("sums", *SumTypeOf(t_.type), Space::kTeam, t_.rows.size * t_.columns.size);
    if (!lhs_.direct)
      lhs_panel_ = b_.Local("lhs_panel", t_.type, Space::kTeam, t_.rows.size * t_.depth.size);
    if (!rhs_.direct)
      rhs_panel_ = b_.Local("rhs_panel", t_.type, Space::kTeam, t_.depth.size * t_.columns.size);
    int64_t side = SquareSide();
    bool turns = NeedsTurn(lhs_) || NeedsTurn(rhs_);
    if (turns) square_ = b_.Local("square", t_.type, Space::kRegisters, side * side);
    if ((NeedsTurn(lhs_) && !IsInput(lhs_)) || (NeedsTurn(rhs_) && !IsInput(rhs_)))
      stage_ = b_.Local("stage", t_.type, Space::kTeam, side * side);
  }

  // A larger square takes more code, and longer to compile, than it saves.
  int64_t SquareSide() const { return std::min<int64_t>(machine_.Lanes(BytesOf(t_.type) * 8), 16); }

  // Element code of an operand whose neighbours lie along the other direction than its panel wants.
  bool NeedsTurn(const Side& side) const {
    if (side.direct) return false;
    int64_t lanes = SquareSide();
    int64_t free = (&side == &lhs_ ? t_.rows : t_.columns).size;
    if (free < lanes || t_.depth.size < lanes) return false;
    if (&side == &rhs_) return side.depth_is_inner;
    return GroupOf(t_.type) > 1 && !side.depth_is_inner;
  }

  // The panel of lhs has rows of neighbours along the depth, except of what lies the other way.
  bool LhsLiesAcross() const { return GroupOf(t_.type) == 1 && !lhs_.depth_is_inner; }

  // ---- operands

  Coordinates OperandAt(const Side& side, Scalar free, Scalar depth) {
    Coordinates at(side.dims->size());
    auto put = [&](const Dims& which, const Coordinates& values) {
      for (size_t i = 0; i < which.size(); ++i) at[static_cast<size_t>(which[i])] = values[i];
    };
    put(*side.batch, batch_at_);
    put(*side.free, Delinearized(b_, free, SizesOf(*side.dims, *side.free)));
    put(*side.contracting, Delinearized(b_, depth, SizesOf(*side.dims, *side.contracting)));
    return at;
  }

  // An element, as it is multiplied. `free` and `depth` count within the tile and the panel.
  Scalar ElementOf(const Side& side, Scalar panel, Scalar free, Scalar depth) {
    const Cut& cut = &side == &lhs_ ? t_.rows : t_.columns;
    if (cut.IsPadded()) free = LesserOf(free, b_.Index(cut.total - 1));
    Scalar along = (&side == &lhs_ ? row_ : column_) + free;
    Scalar p = panel * b_.Index(t_.depth.size) + depth;
    bool padded = t_.PaddedDepth() != sides_.k;
    Scalar inside = padded ? LesserOf(p, b_.Index(sides_.k - 1)) : p;
    Element value = emitter_.At(*side.instr, OperandAt(side, along, inside));
    if (!emitter_.fault().empty()) return b_.Constant(t_.type, 0);
    ElementType type = side.instr->shape().type();
    Scalar scalar = t_.type == ScalarType::kBF16
                        ? ToStorage(b_, type, value)[0]
                        : ConvertElement(b_, type, ElementOfScalar(t_.type), value)[0];
    return padded ? Choose(p < b_.Index(sides_.k), scalar, b_.Constant(t_.type, 0)) : scalar;
  }

  Scalar LhsPlace(Scalar row, Scalar depth) {
    return LhsLiesAcross() ? depth * b_.Index(t_.rows.size) + row
                           : row * b_.Index(t_.depth.size) + depth;
  }
  Scalar RhsPlace(Scalar column, Scalar group, int64_t in_group) {
    int64_t of = GroupOf(t_.type);
    return group * b_.Index(t_.columns.size * of) + column * b_.Index(of) + b_.Index(in_group);
  }

  // Runs body(first, lane) for vectors of `lanes` over `count`, the last one overlapping.
  template <typename Body>
  void ForVectors(int64_t count, int64_t lanes, Body&& body) {
    lanes = std::min(lanes, PowerBelow(count));
    int64_t steps = CeilDiv(count, lanes);
    b_.For("v", LoopRole::kSerial, b_.Index(steps), [&](Scalar v) {
      Scalar begin = v * b_.Index(lanes);
      if (count % lanes != 0) begin = LesserOf(begin, b_.Index(count - lanes));
      if (lanes == 1) return body(begin);
      b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) { body(begin + l); });
    });
  }

  void PackLhs(Scalar panel) {
    if (NeedsTurn(lhs_)) return Turn(lhs_, panel);
    bool across = LhsLiesAcross();
    int64_t outer = across ? t_.depth.size : t_.rows.size;
    int64_t inner = across ? t_.rows.size : t_.depth.size;
    int64_t lanes = machine_.Lanes(BytesOf(t_.type) * 8);
    b_.For("i", LoopRole::kSerial, b_.Index(outer), [&](Scalar i) {
      ForVectors(inner, lanes, [&](Scalar l) {
        Scalar row = across ? l : i, depth = across ? i : l;
        b_.Store(lhs_panel_, LhsPlace(row, depth), ElementOf(lhs_, panel, row, depth));
      });
    });
  }

  void PackRhs(Scalar panel) {
    if (NeedsTurn(rhs_)) return Turn(rhs_, panel);
    int64_t group = GroupOf(t_.type);
    b_.For("i", LoopRole::kSerial, b_.Index(t_.depth.size / group), [&](Scalar i) {
      ForVectors(t_.columns.size, 2 * t_.lanes, [&](Scalar column) {
        std::vector<Scalar> values;
        for (int64_t p = 0; p < group; ++p)
          values.push_back(ElementOf(rhs_, panel, column, i * b_.Index(group) + b_.Index(p)));
        for (int64_t p = 0; p < group; ++p)
          b_.Store(rhs_panel_, RhsPlace(column, i, p), values[static_cast<size_t>(p)]);
      });
    });
  }

  // Squares, read along one direction and stored along the other.
  void Turn(const Side& side, Scalar panel) {
    int64_t lanes = SquareSide();
    bool is_lhs = &side == &lhs_;
    int64_t free = (is_lhs ? t_.rows : t_.columns).size;
    auto begin = [&](Scalar i, int64_t size) {
      Scalar at = i * b_.Index(lanes);
      return size % lanes == 0 ? at : LesserOf(at, b_.Index(size - lanes));
    };
    b_.For("f", LoopRole::kSerial, b_.Index(CeilDiv(free, lanes)), [&](Scalar f) {
      b_.For("d", LoopRole::kSerial, b_.Index(CeilDiv(t_.depth.size, lanes)), [&](Scalar d) {
        Scalar free_at = begin(f, free), depth_at = begin(d, t_.depth.size);
        // Along the source's neighbours: of rhs the depth, of lhs the rows. What takes code to
        // compute is not written out for each row of the square.
        bool plain = IsInput(side);
        auto fill = [&](LoopRole role, ArrayId to, bool computes) {
          b_.For("k", role, b_.Index(lanes), [&](Scalar k) {
            b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) {
              Scalar at = k * b_.Index(lanes) + l;
              if (!computes) return b_.Store(to, at, b_.Read(stage_, at));
              b_.Store(to, at,
                       is_lhs ? ElementOf(side, panel, free_at + l, depth_at + k)
                              : ElementOf(side, panel, free_at + k, depth_at + l));
            });
          });
        };
        if (!plain) fill(LoopRole::kSerial, stage_, true);
        fill(LoopRole::kUnrolled, square_, plain);
        StoreTurned(is_lhs, lanes, free_at, depth_at);
      });
    });
  }

  void StoreTurned(bool is_lhs, int64_t lanes, Scalar free_at, Scalar depth_at) {
    int64_t group = is_lhs ? 1 : GroupOf(t_.type);
    for (int64_t k = 0; k < lanes; k += group) {
      b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) {
        std::vector<Scalar> values;
        for (int64_t p = 0; p < group; ++p)
          values.push_back(b_.Read(square_, l * b_.Index(lanes) + b_.Index(k + p)));
        for (int64_t p = 0; p < group; ++p) {
          if (is_lhs) {
            b_.Store(lhs_panel_, LhsPlace(free_at + b_.Index(k), depth_at + l), values[0]);
          } else {
            Scalar at = (depth_at + b_.Index(k)) / b_.Index(group);
            b_.Store(rhs_panel_, RhsPlace(free_at + l, at, p), values[static_cast<size_t>(p)]);
          }
        }
      });
    }
  }

  // ---- sums

  // Where a direct operand begins.
  Scalar PlaceOf(const Side& side, Scalar along, Scalar panel) {
    Dims strides = RowMajorStrides(*side.dims);
    Scalar at = along * b_.Index(side.free_distance) +
                panel * b_.Index(t_.depth.size * side.depth_distance);
    for (size_t i = 0; i < side.batch->size(); ++i)
      at = at + batch_at_[i] * b_.Index(strides[static_cast<size_t>((*side.batch)[i])]);
    return at;
  }

  ArrayId InputArray(const Instr& instr) const {
    auto at = std::find(region_.inputs.begin(), region_.inputs.end(), &instr);
    return ArrayId{static_cast<uint32_t>(at - region_.inputs.begin())};
  }

  void Panels() {
    if (t_.depth.count == 1) return Panel(b_.Index(0), true);
    b_.For("i", LoopRole::kSerial, b_.Index(t_.rows.size), [&](Scalar i) {
      ForVectors(t_.columns.size, t_.lanes, [&](Scalar j) {
        b_.Store(sums_, i * b_.Index(t_.columns.size) + j,
                 b_.Constant(b_.kernel().array(sums_).type, 0));
      });
    });
    b_.For("panel", LoopRole::kSerial, b_.Index(t_.depth.count),
           [&](Scalar panel) { Panel(panel, false); });
  }

  void Panel(Scalar panel, bool fresh) {
    if (!lhs_.direct) PackLhs(panel);
    if (!rhs_.direct) PackRhs(panel);
    if (!emitter_.fault().empty()) return;
    bool across = LhsLiesAcross();
    Multiplication product{.fresh = fresh,
                           .rows = t_.rows.size,
                           .columns = t_.columns.size,
                           .to_row = t_.columns.size};
    product.depth = b_.Index(t_.depth.size).id();
    if (lhs_.direct) {
      product.lhs = InputArray(*lhs_.instr);
      product.lhs_at = PlaceOf(lhs_, row_, panel).id();
      product.lhs_row = std::max<int64_t>(lhs_.free_distance, 1);
      product.lhs_column = 1;
    } else {
      product.lhs = lhs_panel_;
      product.lhs_at = b_.Index(0).id();
      product.lhs_row = across ? 1 : t_.depth.size;
      product.lhs_column = across ? t_.rows.size : 1;
    }
    if (rhs_.direct) {
      product.rhs = InputArray(*rhs_.instr);
      product.rhs_at = PlaceOf(rhs_, column_, panel).id();
      product.rhs_row = rhs_.depth_distance;
    } else {
      product.rhs = rhs_panel_;
      product.rhs_at = b_.Index(0).id();
      product.rhs_row = t_.columns.size * GroupOf(t_.type);
    }
    b_.Multiply(sums_, b_.Index(0), product);
  }

  // What follows from the tile's results, written.
  void Finish() {
    ElementType sum_type = ElementOfScalar(*SumTypeOf(t_.type));
    if (stitched_) {
      b_.For("i", LoopRole::kSerial, b_.Index(t_.rows.valid()), [&](Scalar i) {
        rows_body_.Emit(batch_ * b_.Index(sides_.m) + (row_ + i),
                        {&dot_, sum_type, sums_, i * b_.Index(t_.columns.size)});
      });
      return;
    }
    Dims row_dims = SizesOf(sides_.lhs, sides_.lhs_free);
    Dims column_dims = SizesOf(sides_.rhs, sides_.rhs_free);
    ElementType type = dot_.shape().type();
    b_.For("i", LoopRole::kSerial, b_.Index(t_.rows.valid()), [&](Scalar i) {
      ForVectors(t_.columns.valid(), t_.lanes, [&](Scalar j) {
        Coordinates at = batch_at_;
        for (const Coordinates& more :
             {Delinearized(b_, row_ + i, row_dims), Delinearized(b_, column_ + j, column_dims)})
          at.insert(at.end(), more.begin(), more.end());
        Element sum{b_.Read(sums_, i * b_.Index(t_.columns.size) + j), {}};
        emitter_.Bind(dot_, 0, at, ConvertElement(b_, sum_type, type, sum));
        Scalar linear =
            (batch_ * b_.Index(sides_.m) + (row_ + i)) * b_.Index(sides_.n) + (column_ + j);
        for (const Instr* root : region_.roots) StoreRoot(*root, at, linear);
      });
    });
  }

  // `at`, `linear`: of the contraction's result. A root that moves whole rows elsewhere is written
  // there.
  void StoreRoot(const Instr& root, const Coordinates& at, Scalar linear) {
    const Dims& dims = root.shape().dims();
    if (root.op() == Op::kTranspose && root.operand(0)->shape().dims() == dot_.shape().dims()) {
      const Dims& order = root.attrs<DimensionsAttrs>().dimensions;
      if (order.back() + 1 != static_cast<int64_t>(at.size()))
        return emitter_.Fail("a transpose of the contraction's rows");
      Coordinates here;
      for (int64_t d : order) here.push_back(at[static_cast<size_t>(d)]);
      return emitter_.Store(root, 0, here, emitter_.At(root, here));
    }
    Coordinates here = dims == dot_.shape().dims() ? at : Delinearized(b_, linear, dims);
    emitter_.StoreLinear(root, 0, linear, emitter_.At(root, here));
  }

  const Region& region_;
  const Instr& dot_;
  const Machine& machine_;
  DotSides sides_;
  bool stitched_;
  Tiling t_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  RowsBody rows_body_;
  Side lhs_, rhs_;
  ArrayId sums_{}, lhs_panel_{}, rhs_panel_{}, square_{}, stage_{};
  Coordinates batch_at_;
  Scalar batch_, row_, column_;
};

}  // namespace

namespace {

bool FitsS16(ElementType type) {
  return InfoOf(type).bits < 16 || type == ElementType::kS16;
}

// Operands whose products are added up in the type `wide`. Integers of 32 bits wrap, whatever the
// order.
bool MayMultiply(ElementType type, ElementType wide) {
  if (wide == ElementType::kF64) return IsReal(type);
  if (wide == ElementType::kF32) return IsReal(type) && type != ElementType::kF64;
  return IsInteger(wide) && IsInteger(type) && InfoOf(wide).bits <= 32 && InfoOf(type).bits <= 32;
}

}  // namespace

ScalarType ContractType(const Instr& dot, const Machine& machine) {
  auto all = [&](auto&& holds) {
    return holds(dot.operand(0)->shape().type()) && holds(dot.operand(1)->shape().type());
  };
  if (IsInteger(dot.shape().type()))
    return all([](ElementType type) { return FitsS16(type); }) ? ScalarType::kS16
                                                               : ScalarType::kS32;
  if (machine.dots_bf16 && all([](ElementType type) { return type == ElementType::kBF16; }))
    return ScalarType::kBF16;
  return WideType(dot.shape().type()) == ElementType::kF64 ? ScalarType::kF64 : ScalarType::kF32;
}

int64_t TimesMade(const Instr& dot, size_t operand, const Machine& machine) {
  Tiling tiling = TilingOf(dot, DotSides(dot), machine, false);
  return operand == 0 ? tiling.columns.count : tiling.rows.count;
}

bool IsForContract(const Instr& dot, const Machine& machine) {
  // Fewer multiplications are a loop's business; vectors are read once, and nothing is to be
  // gained by putting them in order.
  constexpr int64_t kLeastWork = 4096;
  if (machine.is_gpu() || dot.op() != Op::kDot || !IsPlainArray(dot.shape())) return false;
  ElementType wide = WideType(dot.shape().type());
  for (const Instr* operand : dot.operands())
    if (!IsPlainArray(operand->shape()) || !MayMultiply(operand->shape().type(), wide))
      return false;
  DotSides sides(dot);
  if (sides.IsEmpty() || sides.m == 1 || sides.n == 1) return false;
  return sides.m * sides.n >= CeilDiv(kLeastWork, sides.k);
}

BuildOutcome BuildContract(const Region& region, const Machine& machine, const std::string& name) {
  const Instr* dot = nullptr;
  bool stitched = false;
  for (const Instr* instr : region.instrs) {
    if (instr->op() == Op::kReduce) stitched = true;
    if (instr->op() != Op::kDot) continue;
    if (dot != nullptr) return {std::nullopt, "it has a second contraction"};
    dot = instr;
  }
  if (dot == nullptr) return {std::nullopt, "it has no contraction"};
  for (const Instr* root : region.roots)
    if (stitched) {
      break;  // rows know
    } else if (!root->shape().IsArray() ||
               root->shape().ElementCount() != dot->shape().ElementCount())
      return {std::nullopt, "a root has another number of elements than the contraction"};
  return ContractBuilder(region, *dot, machine, name).Build();
}

}  // namespace tokamak

#include "gen/whole_loop_tiles.h"

#include <algorithm>
#include <unordered_set>

#include "gen/contract.h"
#include "gen/dot_operand.h"
#include "gen/gpu/dot_panel.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

// Elements behind each line of sums, with which the lanes that store a fragment access different
// banks (32 banks of 4 bytes, CUDA programming guide).
constexpr int64_t kSumPadding = 4;
// Sums of a thread in one multiply. Chosen: a thread has registers for them, the operands, and the
// carried values of its point.
constexpr int64_t kMaxThreadSums = 64;

// Elements of a vector that a thread computes at once. Chosen: their chains overlap. Elements that
// are computed without a loop. Chosen: bounds the code.
constexpr int64_t kTermsTogether = 4, kMaxWrittenTerms = 16;

// Results of a narrow dot. Chosen: a fragment has twice as many columns.
constexpr int64_t kMostNarrowResults = 4;

constexpr int64_t kFragmentColumns = MatrixMultiply::kFragmentColumns;
// Columns of two fragments, which a warp loads together (hardware: ldmatrix of four matrices).
constexpr int64_t kFragmentPairColumns = 2 * kFragmentColumns;

// The lanes that store a fragment of sums access different banks with one padding, those that read
// fragments for tensor cores with the other.
int64_t PitchOf(const std::vector<WholeLoopTileDot>& dots, const WholeLoopTileShape& shape) {
  bool tensor = std::ranges::any_of(
      dots, [](const WholeLoopTileDot& dot) { return dot.tf32 || dot.type != ScalarType::kF32; });
  return shape.Points() + (tensor ? gpu::kLinePadding : kSumPadding);
}
int64_t MatrixPitchOf(const WholeLoopTileDot& dot) {
  return dot.columns + (dot.is_narrow ? 0 : gpu::kLinePadding);
}

// A shared array for vectors and sums. Time 2 i: vectors of dot i are stored; 2 i + 1: its sums.
struct TileBuffer {
  ScalarType type{};
  int64_t lines = 0;      // terms or sums
  size_t busy_until = 0;  // the last time of a use
};
struct DotBuffers {
  size_t vectors = 0, sums = 0;
};
std::vector<DotBuffers> BuffersOf(const std::vector<WholeLoopTileDot>& dots,
                                  std::vector<TileBuffer>& buffers) {
  auto take = [&](size_t number, int64_t lines, size_t until) {
    TileBuffer& buffer = buffers[number];
    buffer.lines = std::max(buffer.lines, lines);
    buffer.busy_until = until;
    return number;
  };
  auto free_at = [&](size_t time, ScalarType type) {
    auto found = std::ranges::find_if(buffers, [&](const TileBuffer& buffer) {
      return buffer.type == type && buffer.busy_until < time;
    });
    if (found == buffers.end()) found = buffers.insert(found, TileBuffer{.type = type});
    return static_cast<size_t>(found - buffers.begin());
  };
  std::vector<DotBuffers> of_dots;
  for (size_t i = 0; i < dots.size(); ++i) {
    const WholeLoopTileDot& dot = dots[i];
    size_t stored = 2 * i, multiplied = stored + 1;
    DotBuffers own;
    own.vectors = take(dot.overwrites ? of_dots[*dot.overwrites].sums : free_at(stored, dot.type),
                       dot.depth, multiplied);
    own.sums = own.vectors;
    if (!dot.is_narrow) {
      size_t read = dot.last_reader == SIZE_MAX ? SIZE_MAX : 2 * dot.last_reader;
      bool in_place = dot.type == ScalarType::kF32 && dot.columns == dot.pass_columns;
      own.sums = take(in_place ? own.vectors : free_at(multiplied, ScalarType::kF32), dot.columns,
                      std::max(read, multiplied));
    }
    of_dots.push_back(own);
  }
  return of_dots;
}

// Sets the last dot whose vector reads the results of a value, through any ops.
class SumsReaderFinder {
 public:
  explicit SumsReaderFinder(const std::vector<WholeLoopTileDot>& dots) {
    for (size_t i = 0; i < dots.size(); ++i) numbers_[dots[i].product.dot] = i;
  }
  size_t LastReaderOf(const Instr& value) {
    auto [known, is_new] = last_.try_emplace(&value, 0);
    if (!is_new) return known->second;
    size_t last = value.parent()->root() == &value ? SIZE_MAX : 0;
    for (const Instr* user : value.users()) {
      auto dot = numbers_.find(user);
      // The bodies of loops and branches read their operands at any time.
      bool has_body = !user->called().empty() && user->op() != Op::kReduce;
      last = std::max(last, dot != numbers_.end() ? dot->second
                            : has_body            ? SIZE_MAX
                                                  : LastReaderOf(*user));
    }
    last_[&value] = last;
    return last;
  }

 private:
  std::unordered_map<const Instr*, size_t> numbers_, last_;
};

// Finds the dots from whose results a value is computed element by element, and those that it
// depends on in another way.
class ElementsFinder {
 public:
  explicit ElementsFinder(const std::vector<WholeLoopTileDot>& dots) {
    for (size_t i = 0; i < dots.size(); ++i) numbers_[dots[i].product.dot] = i;
  }
  // The last dot of the first kind that is none of the second.
  std::optional<size_t> Find(const Instr& value) {
    Visit(value, true);
    for (size_t i = numbers_.size(); i-- > 0;)
      if (same_.contains(i) && !other_.contains(i)) return i;
    return {};
  }

 private:
  void Visit(const Instr& value, bool same) {
    if (!visited_[same ? 1 : 0].insert(&value).second) return;
    if (auto dot = numbers_.find(&value); dot != numbers_.end()) {
      (same ? same_ : other_).insert(dot->second);
      return;
    }
    for (const Instr* operand : value.operands())
      Visit(*operand, same && value.info().Is(kElementwise) && operand->shape().IsArray() &&
                          operand->shape().dims() == value.shape().dims());
  }

  std::unordered_map<const Instr*, size_t> numbers_;
  std::unordered_set<const Instr*> visited_[2];
  std::unordered_set<size_t> same_, other_;
};

// The dot whose sums the vector of dot `i` overwrites: no other dot reads them, and each element
// is computed from the sum with its number.
std::optional<size_t> OverwrittenBy(const std::vector<WholeLoopTileDot>& dots, size_t i) {
  const WholeLoopMatVec& product = dots[i].product;
  std::optional<size_t> found = ElementsFinder(dots).Find(*product.dot->operand(product.vector));
  if (!found || dots[i].type != ScalarType::kF32) return {};
  const WholeLoopTileDot& from = dots[*found];
  bool numbers = product.dot->attrs<DotAttrs>().lhs_contracting.size() == 1 &&
                 from.product.ResultDims().size() == 1 && from.product.results == product.terms;
  return numbers && !from.is_narrow && from.last_reader == i ? found : std::nullopt;
}

}  // namespace

WholeLoopTileDots TileDotsOf(const WholeLoopRegion& region, const Machine& machine) {
  WholeLoopTileDots found;
  auto fail = [&](const std::string& why) { return WholeLoopTileDots{{}, why}; };
  const Computation& body = *region.loop.body;
  if (!region.trip_count || HasUnknownLoop(body)) return fail("a trip count is unknown");
  for (const auto& [dot, axes] : region.independence.dots)
    if (dot->parent() != &body && !IsUnrolledDot(region.independence, *dot))
      return fail("a dot is in a nested loop or branch");
  for (const Instr* instr : body.PostOrder()) {
    if (!region.independence.dots.contains(instr) || IsUnrolledDot(region.independence, *instr))
      continue;
    std::optional<WholeLoopMatVec> product = MatVecOf(region.independence, *instr);
    if (!product) return fail("a dot is not the product of a vector and a matrix");
    if (std::string why = WhyNotInvariantMatrix(region, *product); !why.empty()) return fail(why);
    WholeLoopTileDot dot{.product = *product,
                         .type = FactorTypeOf(*instr, machine),
                         .tf32 = MultipliesTf32(*instr, machine)};
    if (AccumulatorElementType(instr->shape().type()) != ElementType::kF32 ||
        AccumulatorScalarType(dot.type) != ScalarType::kF32)
      return fail("a dot does not accumulate in f32");
    dot.is_narrow =
        !dot.tf32 && dot.type == ScalarType::kF32 && product->results <= kMostNarrowResults;
    dot.depth = dot.is_narrow ? product->terms
                              : RoundUp(product->terms, MatrixMultiply::DepthUnit(dot.type));
    found.dots.push_back(dot);
  }
  if (found.dots.empty()) return fail("it contains no dot that is not unrolled");
  SumsReaderFinder readers(found.dots);
  for (WholeLoopTileDot& dot : found.dots) dot.last_reader = readers.LastReaderOf(*dot.product.dot);
  for (size_t i = 0; i < found.dots.size(); ++i)
    found.dots[i].overwrites = OverwrittenBy(found.dots, i);
  return found;
}

void SetColumns(std::vector<WholeLoopTileDot>& dots, const WholeLoopTileShape& shape) {
  for (WholeLoopTileDot& dot : dots) {
    int64_t results = dot.product.results;
    // A warp multiplies one fragment or pairs of them.
    int64_t columns = CeilDiv(results, shape.column_warps);
    dot.warp_columns = columns <= kFragmentColumns
                           ? kFragmentColumns
                           : std::min(RoundUp(columns, kFragmentPairColumns),
                                      kMaxThreadSums * kWarpSize / shape.warp_points);
    dot.pass_columns = dot.warp_columns * shape.column_warps;
    dot.columns = dot.is_narrow ? results : RoundUp(results, dot.pass_columns);
  }
}

int64_t SharedBytesOf(const std::vector<WholeLoopTileDot>& dots, const WholeLoopTileShape& shape) {
  int64_t bytes = 0;
  std::vector<TileBuffer> buffers;
  BuffersOf(dots, buffers);
  for (const TileBuffer& buffer : buffers)
    bytes += buffer.lines * PitchOf(dots, shape) * BytesOf(buffer.type);
  for (const WholeLoopTileDot& dot : dots)
    bytes += dot.depth * MatrixPitchOf(dot) * BytesOf(dot.type);
  return bytes;
}

WholeLoopTiles::WholeLoopTiles(KernelBuilder& b, std::vector<WholeLoopTileDot> dots,
                               const WholeLoopTileShape& shape)
    : b_(b), dots_(std::move(dots)), shape_(shape), pitch_(PitchOf(dots_, shape)) {
  std::vector<TileBuffer> buffers;
  std::vector<DotBuffers> of_dots = BuffersOf(dots_, buffers);
  std::vector<ArrayId> arrays;
  for (const TileBuffer& buffer : buffers)
    arrays.push_back(b.Local("vectors", buffer.type, Space::kShared, buffer.lines * pitch_));
  for (size_t i = 0; i < dots_.size(); ++i) {
    WholeLoopTileDot& dot = dots_[i];
    dot.vectors = arrays[of_dots[i].vectors];
    dot.sums = arrays[of_dots[i].sums];
    dot.matrix = b.Local("matrix", dot.type, Space::kShared, dot.depth * MatrixPitchOf(dot));
    dot.accumulators =
        b.Local("accumulators", ScalarType::kF32, Space::kRegisters,
                dot.is_narrow ? dot.columns : shape.warp_points * dot.warp_columns / kWarpSize);
  }
}

const WholeLoopTileDot* WholeLoopTiles::Find(const Instr& instr) const {
  auto dot = std::ranges::find_if(
      dots_, [&](const WholeLoopTileDot& of) { return of.product.dot == &instr; });
  return dot == dots_.end() ? nullptr : &*dot;
}

Scalar WholeLoopTiles::Factor(const WholeLoopTileDot& dot, ElementType from, const Element& value) {
  Scalar factor = ConvertToFactorType(b_, from, dot.type, value);
  return dot.tf32 ? gpu::RoundedToTf32(b_, factor) : factor;
}

void WholeLoopTiles::LoadMatrices(ElementEmitter& emitter, Scalar thread) {
  int64_t threads = shape_.Threads();
  for (const WholeLoopTileDot& dot : dots_) {
    const WholeLoopMatVec& product = dot.product;
    const Instr& matrix = *product.dot->operand(1 - product.vector);
    // It does not depend on the point.
    Coordinates point(product.axes->size(), b_.Index(0));
    int64_t elements = dot.depth * dot.columns;
    b_.For("i", LoopRole::kSerial, b_.Index(CeilDiv(elements, threads)), [&](Scalar i) {
      Scalar element = i * b_.Index(threads) + thread;
      Scalar term = element / b_.Index(dot.columns), column = element % b_.Index(dot.columns);
      b_.If(element < b_.Index(elements), [&] {
        Coordinates at = product.CoordinatesOf(b_, 1 - product.vector, point,
                                               LesserOf(term, b_.Index(product.terms - 1)),
                                               LesserOf(column, b_.Index(product.results - 1)));
        Scalar factor = Factor(dot, matrix.shape().type(), emitter.At(matrix, at));
        Scalar exists = (term < b_.Index(product.terms)) & (column < b_.Index(product.results));
        b_.Store(dot.matrix, term * b_.Index(MatrixPitchOf(dot)) + column,
                 Choose(exists, factor, b_.Constant(dot.type, 0)));
      });
    });
    emitter.ClearMemo();
  }
  b_.Barrier(BarrierScope::kBlock);
}

void WholeLoopTiles::BeginVector(const WholeLoopTileDot& dot) const {
  // Other threads may still read what was in the buffer. Sums are overwritten by their readers.
  if (!dot.overwrites) Barrier();
}

void WholeLoopTiles::StoreVector(const WholeLoopTileDot& dot, Scalar point, Scalar term,
                                 Element value) {
  const Instr& vector = *dot.product.dot->operand(dot.product.vector);
  b_.Store(dot.vectors, term * b_.Index(pitch_) + point, Factor(dot, vector.shape().type(), value));
}

void WholeLoopTiles::PadVector(const WholeLoopTileDot& dot, Scalar point, Scalar member,
                               int64_t threads) {
  for (int64_t first = dot.product.terms; first < dot.depth; first += threads) {
    Scalar term = b_.Index(first) + member;
    b_.If(term < b_.Index(dot.depth), [&] {
      b_.Store(dot.vectors, term * b_.Index(pitch_) + point, b_.Constant(dot.type, 0));
    });
  }
}

void WholeLoopTiles::Multiply(const WholeLoopTileDot& dot, Scalar thread) {
  MatrixMultiply multiply{.lhs = dot.vectors,
                          .rhs = dot.matrix,
                          .lhs_index = b_.Index(0).id(),
                          .depth = b_.Index(dot.depth).id(),
                          .rows = shape_.Points(),
                          .columns = dot.pass_columns,
                          .lhs_row_stride = 1,
                          .lhs_column_stride = pitch_,
                          .rhs_row_stride = MatrixPitchOf(dot),
                          .rhs_column_stride = 1,
                          .warp_rows = shape_.warp_points,
                          .warp_columns = dot.warp_columns,
                          .tf32 = dot.tf32};
  Scalar own = b_.Index(multiply.AccumulatorsPerThread());
  Barrier();
  for (int64_t first = 0; first < dot.columns; first += dot.pass_columns) {
    b_.For("s", LoopRole::kUnrolled, own,
           [&](Scalar s) { b_.Store(dot.accumulators, s, b_.Constant(ScalarType::kF32, 0)); });
    multiply.rhs_index = b_.Index(first).id();
    b_.Multiply(dot.accumulators, b_.Index(0), multiply);
    if (dot.sums == dot.vectors) Barrier();
    b_.For("s", LoopRole::kUnrolled, own, [&](Scalar s) {
      AccumulatorPosition<Scalar> at(multiply, thread, s, [&](int64_t x) { return b_.Index(x); });
      b_.Store(dot.sums, (at.column + b_.Index(first)) * b_.Index(pitch_) + at.row,
               b_.Read(dot.accumulators, s));
    });
  }
  Barrier();
  stored_[static_cast<uint32_t>(dot.vectors)] = nullptr;
  stored_[static_cast<uint32_t>(dot.sums)] = &dot;
}

std::vector<Scalar> WholeLoopTiles::MultiplyNarrow(const WholeLoopTileDot& dot, Scalar point) {
  stored_[static_cast<uint32_t>(dot.vectors)] = nullptr;
  Barrier();
  for (int64_t i = 0; i < dot.columns; ++i)
    b_.Store(dot.accumulators, b_.Index(i), b_.Constant(ScalarType::kF32, 0));
  b_.For("i", LoopRole::kSerial, b_.Index(dot.depth), [&](Scalar term) {
    Scalar x = b_.Read(dot.vectors, term * b_.Index(pitch_) + point);
    for (int64_t i = 0; i < dot.columns; ++i) {
      Scalar y = b_.Read(dot.matrix, term * b_.Index(MatrixPitchOf(dot)) + b_.Index(i));
      b_.Store(dot.accumulators, b_.Index(i), Fma(x, y, b_.Read(dot.accumulators, b_.Index(i))));
    }
  });
  std::vector<Scalar> sums;
  for (int64_t i = 0; i < dot.columns; ++i) sums.push_back(b_.Read(dot.accumulators, b_.Index(i)));
  return sums;
}

Scalar WholeLoopTiles::ReadSum(const WholeLoopTileDot& dot, Scalar point, Scalar i) const {
  auto stored = stored_.find(static_cast<uint32_t>(dot.sums));
  if (stored == stored_.end() || stored->second != &dot) return {};
  return b_.Read(dot.sums, i * b_.Index(pitch_) + point);
}

void WholeLoopTiles::Barrier() const {
  b_.Barrier(shape_.column_warps == 1 ? BarrierScope::kWarp : BarrierScope::kBlock);
}

void WholeLoopFrame::EmitTileDot(const WholeLoopTileDot& dot) {
  KernelBuilder& b = context_.b;
  WholeLoopTiles& tiles = *context_.tiles;
  const WholeLoopGroup& group = context_.group;
  const WholeLoopMatVec& product = dot.product;
  const Instr& vector = *product.dot->operand(product.vector);
  // Computes several elements before any is stored: their chains overlap, although vectors and sums
  // are in the same memory.
  auto store = [&](const std::vector<Scalar>& terms) {
    std::vector<Element> values;
    for (Scalar term : terms)
      values.push_back(
          At(vector, product.CoordinatesOf(b, product.vector, context_.point, term, b.Index(0))));
    for (size_t i = 0; i < terms.size(); ++i)
      tiles.StoreVector(dot, group.point_in_block, terms[i], values[i]);
  };
  tiles.BeginVector(dot);
  int64_t each = CeilDiv(product.terms, group.threads), together = 1;
  if (group.threads == 1 && each <= kMaxWrittenTerms) {
    // Without a loop, elements of the carried values are not chosen by index.
    std::vector<Scalar> terms;
    for (int64_t i = 0; i < each; ++i) terms.push_back(b.Index(i));
    store(terms);
  } else {
    bool divides = product.terms % group.threads == 0;
    while (divides && together < kTermsTogether && each % (2 * together) == 0) together *= 2;
    b.For("i", LoopRole::kSerial, b.Index(each / together), [&](Scalar i) {
      std::vector<Scalar> terms;
      for (int64_t u = 0; u < together; ++u)
        terms.push_back((i * b.Index(together) + b.Index(u)) * b.Index(group.threads) +
                        group.member);
      if (divides) return store(terms);
      b.If(terms[0] < b.Index(product.terms), [&] { store(terms); });
    });
    context_.ClearMemo();
  }
  tiles.PadVector(dot, group.point_in_block, group.member, group.threads);
  std::vector<Scalar> sums;
  if (dot.is_narrow)
    sums = tiles.MultiplyNarrow(dot, group.point_in_block);
  else
    tiles.Multiply(dot, context_.thread);
  // The memo may have values of the loops above.
  context_.ClearMemo();
  emitter_.SetSource(*product.dot, SourceOf([this, &dot, sums](const Coordinates& at, size_t) {
    Coordinates inner = context_.InPoint(*dot.product.axes, at);
    Scalar i = Linearized(context_.b, inner, dot.product.ResultDims());
    Scalar sum;
    if (!dot.is_narrow) sum = context_.tiles->ReadSum(dot, context_.group.point_in_block, i);
    for (size_t k = 0; k < sums.size(); ++k)
      sum = k == 0 ? sums[0] : Choose(i == context_.b.Index(static_cast<int64_t>(k)), sums[k], sum);
    if (!sum.ok()) {
      context_.Fail("a sum is read after it has been overwritten");
      return ZeroOf(*dot.product.dot, 0);
    }
    ElementType type = dot.product.dot->shape().type();
    return ConvertElement(context_.b, AccumulatorElementType(type), type, {sum, {}});
  }));
}

}  // namespace tokamak

// Shape inference of collectives, which is also their verifier. A collective takes n arrays and
// returns n: one as itself, several as a tuple. Sizes depend on G, the number of devices of a
// replica group:
//
//   all-gather       dimension d * G       all-reduce, permute, broadcast   unchanged
//   reduce-scatter   dimension d / G       all-to-all   split dimension / G, concatenated one * G
//
// G is often unknown here: without explicit groups, or with a channel, it depends on the number of
// replicas and partitions of the run. Then the written shape is accepted if it is possible for some
// G, and must be present. An asynchronous start returns (operands, results, contexts ...); done
// returns the results.

#include <algorithm>
#include <unordered_set>

#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {
namespace {

int64_t Product(const Dims& dims) {
  auto product = CheckedElementCount(dims);
  return product.value_or(-1);
}

bool IsIotaSound(const ReplicaGroups& groups) {
  const TileDevices& iota = groups.iota;
  int64_t devices = Product(groups.iota_tile);
  if (devices < 1 || Product(iota.reshape) != devices) return false;
  Dims sorted = iota.permutation;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  return sorted.empty() || sorted.size() == iota.reshape.size();
}

// Devices are numbered from 0 and belong to one group each; -1 pads a short group.
Status CheckGroups(const InferInput& in, const ReplicaGroups& groups) {
  if (!groups.iota_tile.empty() && !IsIotaSound(groups))
    return MakeInferError(in, ErrorCode::kReplicaGroups, "replica groups {}<={} are malformed",
                          ListText(groups.iota_tile), ListText(groups.iota.reshape));
  std::unordered_set<int64_t> seen;
  for (const Dims& group : groups.lists) {
    for (int64_t device : group) {
      if (device >= 0 && seen.insert(device).second) continue;
      if (device == -1) continue;
      return MakeInferError(in, ErrorCode::kReplicaGroups, "replica group {} names device {} {}",
                            ListText(group), device, device < 0 ? "" : "repeat");
    }
  }
  return Ok();
}

// Devices per group; 0 if unknown here. All groups must have the same size.
Result<int64_t> GroupSize(const InferInput& in, const CollectiveAttrs& attrs) {
  const ReplicaGroups& groups = attrs.groups;
  if (!groups.lists.empty()) {
    for (const Dims& group : groups.lists)
      if (group.size() != groups.lists[0].size() || Has(group, -1))
        return MakeInferError(in, ErrorCode::kGroupSizes, "replica groups {} and {} differ in size",
                              ListText(groups.lists[0]), ListText(group));
  }
  // With a channel but without global ids, a group covers all partitions of its replicas.
  if (attrs.channel_id > 0 && !attrs.use_global_device_ids) return int64_t{0};
  if (!groups.lists.empty()) return static_cast<int64_t>(groups.lists[0].size());
  return groups.iota_tile.size() == 2 ? groups.iota_tile[1] : int64_t{0};
}

Status RequireOwnArrays(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  for (size_t i = 0; i < OwnOperands(in); ++i) TOK_RETURN_IF_ERROR(RequireArray(in, i));
  return Ok();
}

// The body reduces two scalars; one body serves all operands.
Status CheckBody(const InferInput& in, size_t count) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  const Computation& body = *in.called[0];
  TOK_RETURN_IF_ERROR(RequireCaptures(in, body, 2));
  const Shape& root = RootShape(body);
  for (size_t i = 0; i < count; ++i) {
    ElementType type = in.operands[i].type();
    bool good = root.IsScalar() && KindOf(root.type()) == KindOf(type);
    for (size_t p : {size_t{0}, size_t{1}})
      good = good && body.parameter(p)->shape().IsScalar() &&
             CanPassAs(type, body.parameter(p)->shape().type());
    if (!good)
      return MakeInferError(in, ErrorCode::kReductionBody,
                            "{} has the parameters {} and {} and returns {}, but operand {} is {}",
                            NameOf(body), ToString(body.parameter(0)->shape()),
                            ToString(body.parameter(1)->shape()), ToString(root), i,
                            ToString(in.operands[i]));
  }
  return Ok();
}

// Each of `count` results has the shape of its operand; the body may widen its type.
Result<Shape> InferLikeOperands(const InferInput& in, size_t count) {
  std::vector<Shape> parts;
  for (size_t i = 0; i < count; ++i) {
    TOK_TRY(const Shape* written, WrittenPart(in, i, count));
    const Shape& x = in.operands[i];
    bool widened = !in.called.empty() && written != nullptr && written->IsArray() &&
                   CanPassAs(x.type(), written->type());
    TOK_TRY(Shape part,
            InferResult(in, written, widened ? written->type() : x.type(), Sizes(x.dims()), &x));
    if (count == 1) return part;
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

Result<size_t> OneDimension(const InferInput& in, const CollectiveAttrs& attrs, const Shape& x) {
  if (attrs.dimensions.size() != 1)
    return MakeInferError(in, ErrorCode::kDimensionCount, "{} dimensions, expected 1",
                          attrs.dimensions.size());
  TOK_RETURN_IF_ERROR(RequireDimension(in, "dimension", attrs.dimensions[0], x.rank()));
  return static_cast<size_t>(attrs.dimensions[0]);
}

// Whether `whole` is `part` times the size of a group (0: any).
bool Divides(int64_t part, int64_t whole, int64_t group) {
  if (part == kDynamic || whole == kDynamic) return true;
  if (group > 0) {
    int64_t product = 0;
    return !__builtin_mul_overflow(part, group, &product) && product == whole;
  }
  return part == 0 ? whole == 0 : whole > 0 && whole % part == 0;
}

// The shape that all-gather gives operand i, compared with `written`.
Result<Shape> Gathered(const InferInput& in, const Shape* written, size_t i, int64_t group) {
  const auto& attrs = in.attrs.As<CollectiveAttrs>();
  const Shape& x = in.operands[i];
  TOK_TRY(size_t along, OneDimension(in, attrs, x));
  Sizes dims(x.dims());
  if (written == nullptr) {
    if (group == 0 || x.dim(along) == kDynamic ||
        !MultiplyAdd(0, x.dim(along), group, &dims[along]))
      return MakeInferError(in, ErrorCode::kShapeMissing,
                            "the shape of the result must be written");
    return InferResult(in, written, x.type(), dims, &x);
  }
  bool ranked = written->IsArray() && written->rank() == x.rank();
  if (ranked && !Divides(x.dim(along), written->dim(along), group))
    return MakeInferError(in, ErrorCode::kGatheredSize,
                          "dimension {} is {} of each of {} devices, {} of all", along,
                          SizeText(x.dim(along)), group == 0 ? "some" : std::to_string(group),
                          SizeText(written->dim(along)));
  if (ranked) dims[along] = written->dim(along);
  return InferResult(in, written, x.type(), dims, &x);
}

}  // namespace

Result<Shape> InferAllGather(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  const auto& attrs = in.attrs.As<CollectiveAttrs>();
  TOK_RETURN_IF_ERROR(CheckGroups(in, attrs.groups));
  TOK_TRY(int64_t group, GroupSize(in, attrs));
  std::vector<Shape> parts;
  for (size_t i = 0; i < in.operands.size(); ++i) {
    TOK_TRY(const Shape* written, WrittenPart(in, i, in.operands.size()));
    TOK_TRY(Shape part, Gathered(in, written, i, group));
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

namespace {

// The written shape of a start is (operands, results, contexts ...). Returns the results.
Result<const Shape*> StartedPart(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  const std::vector<Shape>& parts = written->elements();
  bool good = written->IsTuple() && parts.size() >= 2;
  if (good && in.operands.size() == 1) {
    good = CompatibleWithDynamic(parts[0], in.operands[0]);
  } else if (good) {
    good = parts[0].IsTuple() && parts[0].elements().size() == in.operands.size();
    for (size_t i = 0; good && i < in.operands.size(); ++i)
      good = CompatibleWithDynamic(parts[0].elements()[i], in.operands[i]);
  }
  if (good) return &parts[1];
  return MakeInferError(in, ErrorCode::kAsyncShape,
                        "result is written {}, the operands and the results needed",
                        ToString(*written));
}

}  // namespace

Result<Shape> InferAllGatherStart(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  TOK_TRY(const Shape* results, StartedPart(in));
  TOK_RETURN_IF_ERROR(
      InferAllGather({in.op, in.operands, in.attrs, in.called, in.captures, results}));
  return *in.written;
}

Result<Shape> InferCollectiveDone(const InferInput& in) {
  const Shape& start = in.operands[0];
  if (!start.IsTuple() || start.elements().size() < 2)
    return MakeInferError(in, ErrorCode::kAsyncStart,
                          "operand 0 must be the result of a start, is {}", ToString(start));
  return InferShape(in, start.elements()[1]);
}

Result<Shape> InferAllReduce(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  TOK_RETURN_IF_ERROR(CheckGroups(in, in.attrs.As<CollectiveAttrs>().groups));
  TOK_RETURN_IF_ERROR(CheckBody(in, OwnOperands(in)));
  return InferLikeOperands(in, OwnOperands(in));
}

Result<Shape> InferReduceScatter(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  const auto& attrs = in.attrs.As<CollectiveAttrs>();
  TOK_RETURN_IF_ERROR(CheckGroups(in, attrs.groups));
  TOK_TRY(int64_t group, GroupSize(in, attrs));
  size_t count = OwnOperands(in);
  TOK_RETURN_IF_ERROR(CheckBody(in, count));
  std::vector<Shape> parts;
  for (size_t i = 0; i < count; ++i) {
    const Shape& x = in.operands[i];
    TOK_TRY(size_t along, OneDimension(in, attrs, x));
    TOK_TRY(const Shape* written, WrittenPart(in, i, count));
    if (written == nullptr && (group == 0 || x.dim(along) % group != 0))
      return MakeInferError(in, ErrorCode::kShapeMissing,
                            "the shape of the result must be written");
    bool ranked = written != nullptr && written->IsArray() && written->rank() == x.rank();
    Sizes dims(x.dims());
    if (written == nullptr) dims[along] = x.dim(along) / group;
    if (ranked) dims[along] = written->dim(along);
    if (ranked && !Divides(dims[along], x.dim(along), group))
      return MakeInferError(in, ErrorCode::kScatteredSize,
                            "dimension {} is {}, each of {} devices keeps {}", along,
                            SizeText(x.dim(along)), group == 0 ? "some" : std::to_string(group),
                            SizeText(dims[along]));
    bool widened = ranked && CanPassAs(x.type(), written->type());
    TOK_TRY(Shape part, InferResult(in, written, widened ? written->type() : x.type(), dims, &x));
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

namespace {

// Splits one array along a dimension into one block per device of the group; the received blocks
// are concatenated along another dimension.
Result<Shape> SplitAndJoined(const InferInput& in, const Shape* written, size_t i, int64_t group) {
  const auto& attrs = in.attrs.As<CollectiveAttrs>();
  const Shape& x = in.operands[i];
  TOK_TRY(size_t split, OneDimension(in, attrs, x));
  int64_t count = attrs.split_count > 0 ? attrs.split_count : group;
  bool is_stablehlo = attrs.split_count > 0;
  bool good = count == 0 || x.dim(split) == kDynamic || x.dim(split) % count == 0;
  good = good && (!is_stablehlo || group == 0 || group == count);
  if (!good)
    return MakeInferError(in, ErrorCode::kSplitSize,
                          "dimension {} of {} does not split into {} parts for {} devices", split,
                          ToString(x), count, group);
  Sizes dims(x.dims());
  if (is_stablehlo) {
    TOK_RETURN_IF_ERROR(RequireDimension(in, "concat_dimension", attrs.concat_dimension, x.rank()));
    size_t join = static_cast<size_t>(attrs.concat_dimension);
    if (dims[split] != kDynamic) dims[split] /= count;
    if (dims[join] != kDynamic && !MultiplyAdd(0, dims[join], count, &dims[join]))
      return MakeInferError(in, ErrorCode::kSizeOverflow,
                            "dimension {} of the result is over the limit", join);
  }
  return InferResult(in, written, x.type(), dims, &x);
}

}  // namespace

Result<Shape> InferAllToAll(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  const auto& attrs = in.attrs.As<CollectiveAttrs>();
  TOK_RETURN_IF_ERROR(CheckGroups(in, attrs.groups));
  TOK_TRY(int64_t group, GroupSize(in, attrs));
  if (attrs.dimensions.empty()) {
    // Operand i goes to device i of the group.
    for (const Shape& x : in.operands)
      if (!CompatibleWithDynamic(x, in.operands[0]))
        return MakeInferError(in, ErrorCode::kOperandDimensions, "operand 0 is {}, another is {}",
                              ToString(in.operands[0]), ToString(x));
    if (group > 0 && group != static_cast<int64_t>(in.operands.size()))
      return MakeInferError(in, ErrorCode::kSplitSize, "{} operands for groups of {} devices",
                            in.operands.size(), group);
    if (in.operands.size() == 1 && in.written != nullptr && in.written->IsTuple())
      return InferShape(in, Shape::Tuple({in.operands[0]}));
    return InferLikeOperands(in, in.operands.size());
  }
  std::vector<Shape> parts;
  for (size_t i = 0; i < in.operands.size(); ++i) {
    TOK_TRY(const Shape* written, WrittenPart(in, i, in.operands.size()));
    TOK_TRY(Shape part, SplitAndJoined(in, written, i, group));
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

// input, output, and four vectors: input offsets, send sizes, output offsets, receive sizes.
Result<Shape> InferRaggedAllToAll(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 6, 6));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(CheckGroups(in, in.attrs.As<CollectiveAttrs>().groups));
  TOK_RETURN_IF_ERROR(RequireSameType(in, 0, 1));
  const Shape &x = in.operands[0], &y = in.operands[1];
  bool good = x.rank() >= 1 && x.rank() == y.rank();
  for (size_t d = 1; good && d < x.dims().size(); ++d) good = SizesAgree(x.dim(d), y.dim(d));
  if (!good)
    return MakeInferError(in, ErrorCode::kOperandDimensions, "operand 0 is {}, operand 1 is {}",
                          ToString(x), ToString(y));
  for (size_t i = 2; i < 6; ++i) {
    TOK_RETURN_IF_ERROR(RequireIntegers(in, i, ErrorCode::kShapeOperand));
    Sizes sizes(in.operands[2].dims());
    if (in.operands[i].rank() < 1 || !UnifySizes(sizes, in.operands[i].dims()))
      return MakeInferError(in, ErrorCode::kShapeOperand, "operand {} is {}, operand 2 is {}", i,
                            ToString(in.operands[i]), ToString(in.operands[2]));
  }
  return InferShape(in, y);
}

namespace {

// The number of data operands. A root that is known only at run time is the last operand: a vector
// with an index within the group for each of the other operands.
Result<size_t> DataOperands(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  size_t count = OwnOperands(in);
  if (!in.attrs.As<CollectiveAttrs>().has_dynamic_root) return count;
  TOK_RETURN_IF_ERROR(RequireOperands(in, 2, SIZE_MAX));
  TOK_RETURN_IF_ERROR(RequireSizeVector(in, count - 1, static_cast<int64_t>(count - 1)));
  return count - 1;
}

}  // namespace

Result<Shape> InferCollectiveBroadcast(const InferInput& in) {
  TOK_TRY(size_t count, DataOperands(in));
  TOK_RETURN_IF_ERROR(CheckGroups(in, in.attrs.As<CollectiveAttrs>().groups));
  return InferLikeOperands(in, count);
}

Result<Shape> InferCollectiveReduce(const InferInput& in) {
  TOK_TRY(size_t count, DataOperands(in));
  TOK_RETURN_IF_ERROR(CheckGroups(in, in.attrs.As<CollectiveAttrs>().groups));
  TOK_RETURN_IF_ERROR(CheckBody(in, count));
  return InferLikeOperands(in, count);
}

namespace {

Status CheckPairs(const InferInput& in, const std::vector<Dims>& pairs) {
  std::unordered_set<int64_t> sources, targets;
  for (const Dims& pair : pairs) {
    if (pair.size() == 2 && pair[0] >= 0 && pair[1] >= 0 && sources.insert(pair[0]).second &&
        targets.insert(pair[1]).second)
      continue;
    return MakeInferError(in, ErrorCode::kSourceTargets,
                          "pair {} is malformed, or its source or target is also in another pair",
                          ListText(pair));
  }
  return Ok();
}

}  // namespace

Result<Shape> InferCollectivePermute(const InferInput& in) {
  const auto& attrs = in.attrs.As<PermuteAttrs>();
  TOK_RETURN_IF_ERROR(CheckPairs(in, attrs.source_target_pairs));
  if (!attrs.slice_sizes.empty()) {
    // In place: (input, output, input offsets, output offsets) gives the output.
    TOK_RETURN_IF_ERROR(RequireOperands(in, 4, 4));
    return InferShape(in, in.operands[1]);
  }
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  return InferLikeOperands(in, in.operands.size());
}

Result<Shape> InferCollectivePermuteStart(const InferInput& in) {
  const auto& attrs = in.attrs.As<PermuteAttrs>();
  TOK_RETURN_IF_ERROR(CheckPairs(in, attrs.source_target_pairs));
  if (!attrs.slice_sizes.empty()) {
    TOK_RETURN_IF_ERROR(RequireOperands(in, 4, 4));
    TOK_TRY(const Shape* written, RequireWritten(in));
    const std::vector<Shape>& parts = written->elements();
    if (written->IsTuple() && parts.size() >= 2 && CompatibleWithDynamic(parts[1], in.operands[1]))
      return *written;
    return MakeInferError(in, ErrorCode::kAsyncShape, "result is written {}, the output is {}",
                          ToString(*written), ToString(in.operands[1]));
  }
  TOK_RETURN_IF_ERROR(RequireOwnArrays(in));
  TOK_TRY(const Shape* results, StartedPart(in));
  TOK_RETURN_IF_ERROR(
      InferCollectivePermute({in.op, in.operands, in.attrs, in.called, in.captures, results}));
  return *in.written;
}

}  // namespace tokamak

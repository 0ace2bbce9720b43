#include "ir/infer/families.h"
#include "ir/infer/require.h"

// sdy, check and interpreter dialects.

namespace tokamak {
namespace {

// Whether `part` can be a device's shard of `whole`: every dimension of `whole` is a multiple of
// it.
bool IsPartOf(const Shape& part, const Shape& whole) {
  if (!whole.IsArray() || !part.IsArray()) return CompatibleWithDynamic(part, whole);
  bool good = part.type() == whole.type() && part.rank() == whole.rank();
  for (size_t d = 0; good && d < whole.dims().size(); ++d) {
    int64_t a = part.dim(d), b = whole.dim(d);
    good = SizesAgree(a, b) || (a > 0 && b % a == 0);
  }
  return good;
}

Result<Shape> InferNothing(const InferInput& in) {
  if (in.written == nullptr) return Shape();
  // Ops without a result are read as an empty tuple, or as the value they inspect.
  if ((in.written->IsTuple() && in.written->elements().empty()) || in.written->IsToken() ||
      (!in.operands.empty() && CompatibleWithDynamic(*in.written, in.operands[0])))
    return *in.written;
  return MakeInferError(in, ErrorCode::kResultShape, "result is written {}, there is none",
                        ToString(*in.written));
}

}  // namespace

Result<Shape> InferManualComputation(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  const Computation& body = *in.called[0];
  size_t count = OwnOperands(in);
  TOK_RETURN_IF_ERROR(RequireCaptures(in, body, count));
  for (size_t i = 0; i < count; ++i) {
    if (!IsPartOf(body.parameter(i)->shape(), in.operands[i]))
      return MakeInferError(in, ErrorCode::kManualShapes,
                            "parameter {} of {} is {}, operand {} is {}", i, NameOf(body),
                            ToString(body.parameter(i)->shape()), i, ToString(in.operands[i]));
  }
  TOK_TRY(const Shape* written, RequireWritten(in));
  const Shape& root = RootShape(body);
  bool good = false;
  if (written->IsTuple() && root.IsTuple()) {
    good = written->elements().size() == root.elements().size();
    for (size_t i = 0; good && i < root.elements().size(); ++i)
      good = IsPartOf(root.elements()[i], written->elements()[i]);
  } else {
    good = IsPartOf(root, *written);
  }
  if (good) return *written;
  return MakeInferError(in, ErrorCode::kManualShapes,
                        "the result is written {}, but {} returns {} on each device",
                        ToString(*written), NameOf(body), ToString(root));
}

Result<Shape> InferShardingGroup(const InferInput& in) {
  return InferNothing(in);
}

Result<Shape> InferPrint(const InferInput& in) {
  return InferNothing(in);
}

Result<Shape> InferCheck(const InferInput& in) {
  const auto& attrs = in.attrs.As<CheckAttrs>();
  bool alone = attrs.expected.has_value() || attrs.kind == CheckKind::kSerializedEqual;
  TOK_RETURN_IF_ERROR(RequireOperands(in, alone ? 1 : 2, alone ? 1 : 2));
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  if (attrs.kind == CheckKind::kSerializedEqual) return InferNothing(in);
  const Shape& y = attrs.expected ? attrs.expected->shape() : in.operands[1];
  Sizes dims(x.dims());
  if (x.type() != y.type() || !UnifySizes(dims, y.dims()))
    return MakeInferError(in, ErrorCode::kCheckOperands, "{} is compared with {}", ToString(x),
                          ToString(y));
  return InferNothing(in);
}

Result<Shape> InferCheckEq(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape &x = in.operands[0], &y = in.operands[1];
  Sizes dims(x.dims());
  if (x.type() != y.type() || !UnifySizes(dims, y.dims()))
    return MakeInferError(in, ErrorCode::kCheckOperands, "{} is compared with {}", ToString(x),
                          ToString(y));
  if (in.written != nullptr && in.written->IsArray() && in.written->rank() > 0)
    return InferArray(in, ElementType::kPred, dims);
  return InferArray(in, ElementType::kPred, Sizes());
}

// The operands are the arguments of all programs of the grid, concatenated; so are the results.
Result<Shape> InferRunParallel(const InferInput& in) {
  const auto& attrs = in.attrs.As<RunParallelAttrs>();
  size_t next = 0;
  std::vector<Shape> results;
  if (attrs.programs.empty())
    return MakeInferError(in, ErrorCode::kDeviceGrid, "there are no programs");
  for (const Dims& row : attrs.programs) {
    if (row.size() != attrs.programs[0].size() || row.empty())
      return MakeInferError(in, ErrorCode::kDeviceGrid,
                            "replica 0 has {} partitions, another has {}", attrs.programs[0].size(),
                            row.size());
    for (int64_t program : row) {
      if (program < 0 || program >= static_cast<int64_t>(in.called.size()))
        return MakeInferError(in, ErrorCode::kDeviceGrid, "program {} is none of the {} called",
                              program, in.called.size());
      const Computation& callee = *in.called[static_cast<size_t>(program)];
      for (const Instr* parameter : callee.parameters()) {
        if (next < in.operands.size() && parameter != nullptr &&
            CompatibleWithDynamic(parameter->shape(), in.operands[next++]))
          continue;
        return MakeInferError(in, ErrorCode::kArgumentShape,
                              "a parameter of {} is {}, operand {} is {}", NameOf(callee),
                              parameter == nullptr ? "missing" : ToString(parameter->shape()), next,
                              next < in.operands.size() ? ToString(in.operands[next]) : "missing");
      }
      const Shape& root = RootShape(callee);
      if (!root.IsTuple()) {
        results.push_back(root);
      } else {
        results.insert(results.end(), root.elements().begin(), root.elements().end());
      }
    }
  }
  if (next != in.operands.size())
    return MakeInferError(in, ErrorCode::kArgumentCount,
                          "{} operands, but the programs have {} parameters", in.operands.size(),
                          next);
  return InferShape(in, results.size() == 1 ? results[0] : Shape::Tuple(results));
}

}  // namespace tokamak

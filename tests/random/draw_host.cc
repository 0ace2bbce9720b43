// What is not arithmetic: effects whose order and number show in results, ops of
// several devices on one, dynamic ops whose sizes are constants, quantization.
#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

Instr* Token(Draft& draft) {
  return draft.Put(Op::kAfterAll, {}, {}, {.shape = Shape::Token()});
}

bool DrawInfeed(Draft& draft) {
  return Infeed(draft) != nullptr;
}

// Sent to a channel and taken from it, one or two at a time.
bool DrawSendAndRecv(Draft& draft) {
  Instr* x = draft.Any();
  PermuteAttrs attrs;
  attrs.channel_id = 1, attrs.channel_type = 1;
  Instr* token = Token(draft);
  Instr* sent = draft.Put(Op::kSend, {x, token}, attrs);
  Instr* y = draft.random().Percent(40) ? draft.Like(x->shape()) : nullptr;
  if (y != nullptr) draft.Put(Op::kSend, {y, token}, attrs);
  Shape taken = Shape::Tuple({x->shape(), Shape::Token()});
  Instr* first = draft.Put(Op::kRecv, {sent}, attrs, {.shape = taken});
  draft.Element(first, 0);
  if (y == nullptr) return first != nullptr;
  Instr* second = draft.Put(Op::kRecv, {sent}, attrs, {.shape = taken});
  return draft.Element(second, 0) != nullptr;
}

// Held or not, checks are counted.
bool DrawCheck(Draft& draft) {
  Instr* x = draft.Any();
  Instr* y = draft.random().Percent(50) ? x : draft.Like(x->shape());
  return draft.Put(Op::kCheck, {x, y}, CheckAttrs{}, {.shape = Shape()}) != nullptr;
}

// Collectives of one device.
bool DrawCollective(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  CollectiveAttrs attrs;
  attrs.groups.lists = {{0}};
  attrs.channel_id = 1;
  switch (draft.random().Below(4)) {
    case 0: {
      Op op = x->shape().type() == ElementType::kPred ? Op::kOr : Op::kAdd;
      return draft.Put(Op::kAllReduce, {x}, attrs,
                       {.shape = x->shape(), .called = {Combiner(draft, x->shape().type(), op)}}) !=
             nullptr;
    }
    case 1:
      attrs.dimensions = {draft.random().Below(x->shape().rank())};
      return draft.Put(Op::kAllGather, {x}, attrs, {.shape = x->shape()}) != nullptr;
    case 2: {
      PermuteAttrs pairs;
      pairs.channel_id = 1;
      if (draft.random().Percent(70)) pairs.source_target_pairs = {{0, 0}};
      return draft.Put(Op::kCollectivePermute, {x}, pairs, {.shape = x->shape()}) != nullptr;
    }
    default:
      return draft.Put(draft.random().Percent(50) ? Op::kPartitionId : Op::kReplicaId, {}, {},
                       {.shape = Shape::Scalar(ElementType::kU32)}) != nullptr;
  }
}

Instr* SizeVector(Draft& draft, const Dims& sizes) {
  Shape shape = Shape::Array(ElementType::kS32, {static_cast<int64_t>(sizes.size())});
  return draft.Constant(Value::Array(shape, std::vector<int64_t>(sizes)));
}

bool DrawDynamic(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  const Shape shape = x->shape();
  size_t rank = shape.dims().size();
  switch (draft.random().Below(5)) {
    case 0: {
      Dims dims = shape.dims(), map;
      for (size_t d = 0; d < rank; ++d) map.push_back(static_cast<int64_t>(d));
      dims.push_back(draft.random().Between(1, 3));
      return draft.Put(Op::kDynamicBroadcast, {x, SizeVector(draft, dims)},
                       DynamicBroadcastAttrs{map, {}, {}},
                       {.shape = shape.WithDims(dims)}) != nullptr;
    }
    case 1: {
      Shape iota = Shape::Array(ElementType::kS32, shape.dims());
      return draft.Put(Op::kDynamicIota, {SizeVector(draft, shape.dims())},
                       IotaAttrs{draft.random().Below(shape.rank())}, {.shape = iota}) != nullptr;
    }
    case 2: {
      Dims flat{shape.ElementCount()};
      return draft.Put(Op::kDynamicReshape, {x, SizeVector(draft, flat)}, {},
                       {.shape = shape.WithDims(flat)}) != nullptr;
    }
    case 3: {
      Dims low(rank, draft.random().Between(0, 2)), none(rank, 0), dims = shape.dims();
      for (size_t d = 0; d < rank; ++d) dims[d] += low[d];
      Instr* value = draft.Constant(Shape::Scalar(shape.type()));
      return draft.Put(Op::kDynamicPad,
                       {x, value, SizeVector(draft, low), SizeVector(draft, none),
                        SizeVector(draft, none)},
                       {}, {.shape = shape.WithDims(dims)}) != nullptr;
    }
    default: {
      Dims starts(rank, 0), limits = shape.dims(), strides(rank, 1);
      if (limits[0] > 1) starts[0] = 1;
      Dims dims = limits;
      dims[0] -= starts[0];
      return draft.Put(Op::kRealDynamicSlice,
                       {x, SizeVector(draft, starts), SizeVector(draft, limits),
                        SizeVector(draft, strides)},
                       {}, {.shape = shape.WithDims(dims)}) != nullptr;
    }
  }
}

bool DrawQuantized(Draft& draft) {
  Instr* x = draft.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; });
  if (x == nullptr) return false;
  QuantType quant;
  quant.storage_min = -128, quant.storage_max = 127;
  quant.scales = {draft.random().Pick({0.5, 0.1, 2.0})};
  quant.zero_points = {draft.random().Between(-3, 3)};
  Shape shape = x->shape().WithType(ElementType::kS8).WithQuant(quant);
  Instr* quantized = draft.Put(Op::kUniformQuantize, {x}, {}, {.shape = shape});
  return draft.Put(Op::kUniformDequantize, {quantized}, {}, {.shape = x->shape()}) != nullptr;
}

// Calls that stand for an op, or for nothing at all on one device.
bool DrawCustomCall(Draft& draft) {
  CustomCallAttrs attrs;
  attrs.target = draft.random().Pick({"Sharding", "LayoutConstraint", "mhlo.erf", "mhlo.tan"});
  bool function = attrs.target.starts_with("mhlo");
  Instr* x = function ? draft.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; })
                      : draft.Any();
  if (x == nullptr) return false;
  return draft.Put(Op::kCustomCall, {x}, attrs, {.shape = x->shape()}) != nullptr;
}

bool DrawDependency(Draft& draft) {
  Instr* x = draft.Any();
  return draft.Put(Op::kAddDependency, {x, Token(draft)}, {}, {.shape = x->shape()}) != nullptr;
}

constexpr Drawer kHostDrawers[] = {
    {"infeed", 12, 3, DrawInfeed},        {"send-recv", 3, 7, DrawSendAndRecv},
    {"check", 4, 1, DrawCheck},           {"collective", 4, 4, DrawCollective},
    {"dynamic", 4, 5, DrawDynamic},       {"quantized", 3, 2, DrawQuantized},
    {"dependency", 1, 2, DrawDependency}, {"custom-call", 3, 1, DrawCustomCall},
};

}  // namespace

Instr* Infeed(Draft& draft) {
  Shape shape = Shape::Array(ElementType::kF32, {2});
  Instr* fed =
      draft.Put(Op::kInfeed, {Token(draft)}, {}, {.shape = Shape::Tuple({shape, Shape::Token()})});
  if (draft.random().Percent(75)) draft.Element(fed, 0);
  return fed;
}

std::span<const Drawer> HostDrawers() {
  return kHostDrawers;
}

}  // namespace tokamak::fuzz

// Ops other than arithmetic: effects whose order and number affect results, multi-device ops on one
// device, dynamic ops with constant sizes, quantization.
#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

Instr* Token(ProgramBuilder& builder) {
  return builder.Put(Op::kAfterAll, {}, {}, {.shape = Shape::Token()});
}

bool DrawInfeed(ProgramBuilder& builder) {
  return Infeed(builder) != nullptr;
}

// Sends to a channel and receives from it, one or two at a time.
bool DrawSendAndRecv(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  PermuteAttrs attrs;
  attrs.channel_id = 1, attrs.channel_type = 1;
  Instr* token = Token(builder);
  Instr* sent = builder.Put(Op::kSend, {x, token}, attrs);
  Instr* y = builder.random().Percent(40) ? builder.Like(x->shape()) : nullptr;
  if (y != nullptr) builder.Put(Op::kSend, {y, token}, attrs);
  Shape taken = Shape::Tuple({x->shape(), Shape::Token()});
  Instr* first = builder.Put(Op::kRecv, {sent}, attrs, {.shape = taken});
  builder.Element(first, 0);
  if (y == nullptr) return first != nullptr;
  Instr* second = builder.Put(Op::kRecv, {sent}, attrs, {.shape = taken});
  return builder.Element(second, 0) != nullptr;
}

// Checks are counted whether they pass or fail.
bool DrawCheck(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  Instr* y = builder.random().Percent(50) ? x : builder.Like(x->shape());
  return builder.Put(Op::kCheck, {x, y}, CheckAttrs{}, {.shape = Shape()}) != nullptr;
}

// Collectives of one device.
bool DrawCollective(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  CollectiveAttrs attrs;
  attrs.groups.lists = {{0}};
  attrs.channel_id = 1;
  switch (builder.random().Below(4)) {
    case 0: {
      Op op = x->shape().type() == ElementType::kPred ? Op::kOr : Op::kAdd;
      return builder.Put(Op::kAllReduce, {x}, attrs,
                         {.shape = x->shape(),
                          .called = {Combiner(builder, x->shape().type(), op)}}) != nullptr;
    }
    case 1:
      attrs.dimensions = {builder.random().Below(x->shape().rank())};
      return builder.Put(Op::kAllGather, {x}, attrs, {.shape = x->shape()}) != nullptr;
    case 2: {
      PermuteAttrs pairs;
      pairs.channel_id = 1;
      if (builder.random().Percent(70)) pairs.source_target_pairs = {{0, 0}};
      return builder.Put(Op::kCollectivePermute, {x}, pairs, {.shape = x->shape()}) != nullptr;
    }
    default:
      return builder.Put(builder.random().Percent(50) ? Op::kPartitionId : Op::kReplicaId, {}, {},
                         {.shape = Shape::Scalar(ElementType::kU32)}) != nullptr;
  }
}

Instr* SizeVector(ProgramBuilder& builder, const Dims& sizes) {
  Shape shape = Shape::Array(ElementType::kS32, {static_cast<int64_t>(sizes.size())});
  return builder.Constant(Value::Array(shape, std::vector<int64_t>(sizes)));
}

bool DrawDynamic(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  const Shape shape = x->shape();
  size_t rank = shape.dims().size();
  switch (builder.random().Below(5)) {
    case 0: {
      Dims dims = shape.dims(), map;
      for (size_t d = 0; d < rank; ++d) map.push_back(static_cast<int64_t>(d));
      dims.push_back(builder.random().Between(1, 3));
      return builder.Put(Op::kDynamicBroadcast, {x, SizeVector(builder, dims)},
                         DynamicBroadcastAttrs{map, {}, {}},
                         {.shape = shape.WithDims(dims)}) != nullptr;
    }
    case 1: {
      Shape iota = Shape::Array(ElementType::kS32, shape.dims());
      return builder.Put(Op::kDynamicIota, {SizeVector(builder, shape.dims())},
                         IotaAttrs{builder.random().Below(shape.rank())},
                         {.shape = iota}) != nullptr;
    }
    case 2: {
      Dims flat{shape.ElementCount()};
      return builder.Put(Op::kDynamicReshape, {x, SizeVector(builder, flat)}, {},
                         {.shape = shape.WithDims(flat)}) != nullptr;
    }
    case 3: {
      Dims low(rank, builder.random().Between(0, 2)), none(rank, 0), dims = shape.dims();
      for (size_t d = 0; d < rank; ++d) dims[d] += low[d];
      Instr* value = builder.Constant(Shape::Scalar(shape.type()));
      return builder.Put(Op::kDynamicPad,
                         {x, value, SizeVector(builder, low), SizeVector(builder, none),
                          SizeVector(builder, none)},
                         {}, {.shape = shape.WithDims(dims)}) != nullptr;
    }
    default: {
      Dims starts(rank, 0), limits = shape.dims(), strides(rank, 1);
      if (limits[0] > 1) starts[0] = 1;
      Dims dims = limits;
      dims[0] -= starts[0];
      return builder.Put(Op::kRealDynamicSlice,
                         {x, SizeVector(builder, starts), SizeVector(builder, limits),
                          SizeVector(builder, strides)},
                         {}, {.shape = shape.WithDims(dims)}) != nullptr;
    }
  }
}

bool DrawQuantized(ProgramBuilder& builder) {
  Instr* x = builder.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; });
  if (x == nullptr) return false;
  QuantType quant;
  quant.storage_min = -128, quant.storage_max = 127;
  quant.scales = {builder.random().Pick({0.5, 0.1, 2.0})};
  quant.zero_points = {builder.random().Between(-3, 3)};
  Shape shape = x->shape().WithType(ElementType::kS8).WithQuant(quant);
  Instr* quantized = builder.Put(Op::kUniformQuantize, {x}, {}, {.shape = shape});
  return builder.Put(Op::kUniformDequantize, {quantized}, {}, {.shape = x->shape()}) != nullptr;
}

// Calls that represent an op, or that are the identity on one device.
bool DrawCustomCall(ProgramBuilder& builder) {
  CustomCallAttrs attrs;
  attrs.target = builder.random().Pick({"Sharding", "LayoutConstraint", "mhlo.erf", "mhlo.tan"});
  bool function = attrs.target.starts_with("mhlo");
  Instr* x = function
                 ? builder.AnyThat([](const Shape& s) { return s.type() == ElementType::kF32; })
                 : builder.Any();
  if (x == nullptr) return false;
  return builder.Put(Op::kCustomCall, {x}, attrs, {.shape = x->shape()}) != nullptr;
}

bool DrawDependency(ProgramBuilder& builder) {
  Instr* x = builder.Any();
  return builder.Put(Op::kAddDependency, {x, Token(builder)}, {}, {.shape = x->shape()}) != nullptr;
}

constexpr Drawer kHostDrawers[] = {
    {"infeed", 12, 3, DrawInfeed},        {"send-recv", 3, 7, DrawSendAndRecv},
    {"check", 4, 1, DrawCheck},           {"collective", 4, 4, DrawCollective},
    {"dynamic", 4, 5, DrawDynamic},       {"quantized", 3, 2, DrawQuantized},
    {"dependency", 1, 2, DrawDependency}, {"custom-call", 3, 1, DrawCustomCall},
};

}  // namespace

Instr* Infeed(ProgramBuilder& builder) {
  Shape shape = Shape::Array(ElementType::kF32, {2});
  Instr* fed = builder.Put(Op::kInfeed, {Token(builder)}, {},
                           {.shape = Shape::Tuple({shape, Shape::Token()})});
  if (builder.random().Percent(75)) builder.Element(fed, 0);
  return fed;
}

std::span<const Drawer> HostDrawers() {
  return kHostDrawers;
}

}  // namespace tokamak::fuzz

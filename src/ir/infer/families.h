#pragma once

#include "ir/infer.h"

// One inference function per op, or per family of ops with one rule. The caller has checked the
// number of operands (if the row of ops.def states it) and of called computations, and that no
// operand is unranked.

namespace tokamak {

#define TOK_INFER(name) Result<Shape> Infer##name(const InferInput& in)

// elementwise.cc
TOK_INFER(SameAsOperands);
TOK_INFER(ToPred);
TOK_INFER(ToRealPart);
TOK_INFER(Convert);
TOK_INFER(ReducePrecision);
TOK_INFER(StochasticConvert);
TOK_INFER(Complex);
TOK_INFER(Compare);
TOK_INFER(Select);
TOK_INFER(Clamp);
TOK_INFER(Threefry2x32);
TOK_INFER(Map);

// leaves.cc
TOK_INFER(Parameter);
TOK_INFER(Constant);
TOK_INFER(Iota);
TOK_INFER(DeviceId);

// data_movement.cc
TOK_INFER(SameAsOperand);  // any shape, also a tuple
TOK_INFER(BitcastConvert);
TOK_INFER(Bitcast);
TOK_INFER(Broadcast);
TOK_INFER(Reshape);
TOK_INFER(Transpose);
TOK_INFER(Reverse);
TOK_INFER(Slice);
TOK_INFER(DynamicSlice);
TOK_INFER(DynamicUpdateSlice);
TOK_INFER(Concatenate);
TOK_INFER(Pad);

// gather_scatter.cc
TOK_INFER(Gather);
TOK_INFER(DynamicGather);
TOK_INFER(TorchIndexSelect);
TOK_INFER(Scatter);

// reduce.cc
TOK_INFER(Reduce);
TOK_INFER(ReduceWindow);
TOK_INFER(SelectAndScatter);

// sort.cc
TOK_INFER(Sort);
TOK_INFER(TopK);
TOK_INFER(Scan);

// dot.cc
TOK_INFER(Dot);
TOK_INFER(RaggedDot);
TOK_INFER(ScaledDot);
TOK_INFER(Einsum);
TOK_INFER(UnaryEinsum);

// convolution.cc
TOK_INFER(Convolution);
TOK_INFER(DynamicConv);

// random.cc
TOK_INFER(Rng);
TOK_INFER(RngBitGenerator);
TOK_INFER(RngGetAndUpdateState);

// linear_algebra.cc
TOK_INFER(Fft);
TOK_INFER(Cholesky);
TOK_INFER(TriangularSolve);
TOK_INFER(BatchNormTraining);
TOK_INFER(BatchNormInference);
TOK_INFER(BatchNormGrad);

// quantized.cc
TOK_INFER(UniformQuantize);
TOK_INFER(UniformDequantize);

// dynamic.cc
TOK_INFER(DynamicBroadcast);
TOK_INFER(DynamicIota);
TOK_INFER(DynamicPad);
TOK_INFER(DynamicReshape);
TOK_INFER(RealDynamicSlice);
TOK_INFER(GetDimensionSize);
TOK_INFER(SetDimensionSize);

// calls.cc
TOK_INFER(Tuple);
TOK_INFER(GetTupleElement);
TOK_INFER(Call);  // call, composite, fusion
TOK_INFER(While);
TOK_INFER(Conditional);
TOK_INFER(CustomCall);
TOK_INFER(OptimizationBarrier);
TOK_INFER(AfterAll);
TOK_INFER(AddDependency);

// async.cc
TOK_INFER(AsyncStart);
TOK_INFER(AsyncUpdate);
TOK_INFER(AsyncDone);
TOK_INFER(CopyStart);
TOK_INFER(CopyDone);
TOK_INFER(Infeed);
TOK_INFER(Outfeed);
TOK_INFER(Send);
TOK_INFER(SendDone);
TOK_INFER(Recv);
TOK_INFER(RecvDone);

// collectives.cc
TOK_INFER(AllGather);
TOK_INFER(AllGatherStart);
TOK_INFER(CollectiveDone);  // the done op of a start that returns (operands, results, ...)
TOK_INFER(AllReduce);       // also its start
TOK_INFER(ReduceScatter);
TOK_INFER(AllToAll);
TOK_INFER(RaggedAllToAll);
TOK_INFER(CollectiveBroadcast);
TOK_INFER(CollectiveReduce);
TOK_INFER(CollectivePermute);
TOK_INFER(CollectivePermuteStart);

// checks.cc
TOK_INFER(ManualComputation);
TOK_INFER(ShardingGroup);
TOK_INFER(Check);
TOK_INFER(CheckEq);
TOK_INFER(RunParallel);
TOK_INFER(Print);

#undef TOK_INFER

}  // namespace tokamak

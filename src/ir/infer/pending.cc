#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {

Result<Shape> InferGather(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferDynamicGather(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferTorchIndexSelect(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferScatter(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferReduce(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferReduceWindow(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferSelectAndScatter(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferSort(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferTopK(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferScan(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferDot(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRaggedDot(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferScaledDot(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferEinsum(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferUnaryEinsum(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferConvolution(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferDynamicConv(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRng(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRngBitGenerator(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRngGetAndUpdateState(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferFft(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCholesky(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferTriangularSolve(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferBatchNormTraining(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferBatchNormInference(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferBatchNormGrad(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferUniformQuantize(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferUniformDequantize(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferDynamicBroadcast(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferDynamicIota(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferDynamicPad(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferDynamicReshape(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRealDynamicSlice(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferGetDimensionSize(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferSetDimensionSize(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferAsyncStart(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferAsyncUpdate(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferAsyncDone(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCopyStart(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCopyDone(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferInfeed(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferOutfeed(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferSend(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferSendDone(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRecv(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRecvDone(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferAllGather(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferAllGatherStart(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCollectiveDone(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferAllReduce(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferReduceScatter(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferAllToAll(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRaggedAllToAll(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCollectiveBroadcast(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCollectiveReduce(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCollectivePermute(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCollectivePermuteStart(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferManualComputation(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferShardingGroup(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCheck(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferCheckEq(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferRunParallel(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferPrint(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

}  // namespace tokamak

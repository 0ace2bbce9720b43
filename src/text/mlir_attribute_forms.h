#pragma once

// Functions for the irregular rows of mlir_attributes.def.

#include <optional>

#include "text/mlir_ops.h"

namespace tokamak {

// ---- attributes that have no counterpart among the fields

// A string, or a dictionary if the call is typed.
void ReadBackendConfig(MlirAttrReader& in, CustomCallAttrs& attrs);
std::optional<AttrValue> WriteBackendConfig(Op op, const CustomCallAttrs& attrs);
// A record, or its fields. VHLO has the type "none" if there is no algorithm.
void ReadAlgorithm(MlirAttrReader& in, DotAttrs& attrs);
std::optional<AttrValue> WriteAlgorithm(Op op, const DotAttrs& attrs);
void ReadReplicaGroups(MlirAttrReader& in, CollectiveAttrs& attrs);
std::optional<AttrValue> WriteReplicaGroups(Op op, const CollectiveAttrs& attrs);
// #stablehlo.channel_handle, or VHLO's channel_id and channel_type. Only send and recv have a type
// that carries information.
void ReadChannel(MlirAttrReader& in, CollectiveAttrs& attrs);
std::optional<AttrValue> WriteChannel(Op op, const CollectiveAttrs& attrs);
void ReadChannel(MlirAttrReader& in, PermuteAttrs& attrs);
std::optional<AttrValue> WriteChannel(Op op, const PermuteAttrs& attrs);
// A keyword, or its number.
void ReadDirection(MlirAttrReader& in, ShardingOpAttrs& attrs);
std::optional<AttrValue> WriteDirection(Op op, const ShardingOpAttrs& attrs);

// ---- fields that follow from others, from the operands or from the op's name

void CompleteSlice(MlirAttrReader& in, SliceAttrs& attrs);  // strides of 1
void CompletePad(MlirAttrReader& in, PadAttrs& attrs);      // no interior padding
// A type that only repeats the element type of the operands is dropped.
void DropImpliedType(MlirAttrReader& in, CompareAttrs& attrs);
void BeginWindow(MlirAttrReader& in, WindowAttrs& attrs);
void BeginConvolution(MlirAttrReader& in, ConvolutionAttrs& attrs);
void TakeKernelSizes(MlirAttrReader& in, ConvolutionAttrs& attrs);
void CountFromLast(MlirAttrReader& in, SortAttrs& attrs);  // a dimension below 0
void CountCarries(MlirAttrReader& in, ScanAttrs& attrs);   // the segments of the operands
void KindFromName(MlirAttrReader& in, CheckAttrs& attrs);

}  // namespace tokamak

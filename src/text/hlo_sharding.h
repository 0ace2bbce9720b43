#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/sharding.h"
#include "support/result.h"

namespace tokamak {

class HloCursor;

// Shardings in HLO text. The MLIR attributes mhlo.sharding and sdy's exports hold the same syntax
// as strings:
//   {replicated}  {maximal device=3}  {manual}  {unknown}  {unreduced}
//   {devices=[2,1]0,1}  {devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}
//   {devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}
//   {mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}}
//   {{replicated}, {maximal device=0}}
// each optionally with "shard_as 1", "shard_like 1" and metadata={...}, which is skipped. Extends
// XLA's grammar for sdy: "{'x'}p1" (priority), "mesh=@name" (a row of the mesh table by name),
// "reduction=max".
//
// A mesh that is written out is looked up in `meshes` and added if it is missing.
Result<Sharding> ParseHloSharding(std::string_view text, std::vector<Mesh>& meshes);

// Returns text that ParseHloSharding parses to an equal sharding. `meshes` must contain the meshes
// that are referenced (a missing one is printed by name).
std::string WriteHloSharding(const Sharding& sharding, const std::vector<Mesh>& meshes);

// The components, for the HLO reader and writer.
bool ReadSharding(HloCursor& cursor, std::vector<Mesh>& meshes, Sharding& sharding);
bool ReadTileDevices(HloCursor& cursor, TileDevices& devices);
// Parses mesh['x'=2,'y'=4], device_ids=(1,0) and returns the name of its row.
bool ReadMesh(HloCursor& cursor, std::vector<Mesh>& meshes, std::string& name);
// {'x', 'y':(1)2}
bool ReadAxes(HloCursor& cursor, std::vector<AxisRef>& axes);
bool ReadAxisRef(HloCursor& cursor, AxisRef& axis);  // 'y':(1)2
void AppendAxisRef(std::string& out, const AxisRef& axis);
void AppendSharding(std::string& out, const Sharding& sharding, const std::vector<Mesh>& meshes);
void AppendTileDevices(std::string& out, const TileDevices& devices);
void AppendMesh(std::string& out, const std::string& name, const std::vector<Mesh>& meshes);
void AppendMeshText(std::string& out, const Mesh& mesh);
void AppendAxes(std::string& out, const std::vector<AxisRef>& axes);

}  // namespace tokamak

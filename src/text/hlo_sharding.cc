#include "text/hlo_sharding.h"

#include <algorithm>

#include "text/hlo_cursor.h"

namespace tokamak {
namespace {

// Maximum number of devices in one sharding. Chosen: far above any machine, but small enough that
// products of dimensions do not overflow.
constexpr int64_t kMaxDevices = int64_t{1} << 32;

struct KindWord {
  std::string_view word;
  ShardingKind kind;
};
constexpr KindWord kKindWords[] = {
    {"replicated", ShardingKind::kReplicated}, {"manual", ShardingKind::kManual},
    {"unknown", ShardingKind::kUnknown},       {"unreduced", ShardingKind::kUnreduced},
    {"maximal", ShardingKind::kMaximal},
};

const KindWord* FindWord(std::string_view word) {
  auto it = std::find_if(std::begin(kKindWords), std::end(kKindWords),
                         [&](const KindWord& k) { return k.word == word; });
  return it == std::end(kKindWords) ? nullptr : it;
}

std::string_view WordOf(ShardingKind kind) {
  for (const KindWord& k : kKindWords)
    if (k.kind == kind) return k.word;
  return "replicated";
}

bool BadSharding(HloCursor& cursor, std::string message, const char* where = nullptr) {
  return cursor.Fail(ErrorCode::kHloBadSharding, "sharding: " + std::move(message), where);
}

// A mesh axis: 'x', "x" or x.
bool ReadAxisName(HloCursor& cursor, std::string& name) {
  char quote = cursor.Peek();
  if (quote == '"') return cursor.String(name);
  if (quote != '\'') {
    name = std::string(cursor.Word());
    return !name.empty() || cursor.FailExpected("the name of a mesh axis");
  }
  const char* start = cursor.at();
  std::string_view rest = cursor.rest().substr(1);
  size_t close = rest.find('\'');
  if (close == std::string_view::npos)
    return BadSharding(cursor, "a quote that is never closed", start);
  name = std::string(rest.substr(0, close));
  cursor.Advance(close + 2);
  return true;
}

// {'x', 'y':(1)2, ?}p1
bool ReadDimSharding(HloCursor& cursor, DimSharding& dim) {
  if (!cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    if (cursor.Try('?')) {
      dim.is_closed = false;
    } else {
      AxisRef axis;
      if (!ReadAxisRef(cursor, axis)) return false;
      dim.axes.push_back(std::move(axis));
    }
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  if (cursor.PeekRaw() == 'p' && cursor.PeekRaw(1) >= '0' && cursor.PeekRaw(1) <= '9') {
    cursor.Advance(1);
    return cursor.Int(dim.priority);
  }
  return true;
}

// The numbers 0..n-1 in shape `reshape`, transposed, read in order.
std::optional<Dims> ExpandIota(const Dims& reshape, const Dims& permutation) {
  constexpr int64_t kMostListed = 1 << 20;  // device ids to materialize (chosen: bounds memory)
  const size_t rank = reshape.size();
  std::optional<int64_t> count = CheckedElementCount(reshape);
  if (!count || *count > kMostListed || rank > static_cast<size_t>(kMaxRank)) return std::nullopt;
  Dims strides(rank, 1), order(rank), index(rank, 0);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * reshape[i];
  for (size_t i = 0; i < rank; ++i) order[i] = static_cast<int64_t>(i);
  if (!permutation.empty()) {
    if (!std::is_permutation(order.begin(), order.end(), permutation.begin(), permutation.end()))
      return std::nullopt;
    order = permutation;
  }
  Dims devices(static_cast<size_t>(*count));
  for (int64_t& device : devices) {
    device = 0;
    for (size_t i = 0; i < rank; ++i) device += index[i] * strides[static_cast<size_t>(order[i])];
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < reshape[static_cast<size_t>(order[i])]) break;
      index[i] = 0;
    }
  }
  return devices;
}

bool ReadMeshAxes(HloCursor& cursor, Mesh& mesh) {
  if (!cursor.Expect('[')) return false;
  while (!cursor.Try(']')) {
    MeshAxis axis;
    if (!ReadAxisName(cursor, axis.name) || !cursor.Expect('=') || !cursor.Int(axis.size))
      return false;
    if (axis.size < 1) return BadSharding(cursor, "mesh axis " + axis.name + " has a size below 1");
    mesh.axes.push_back(std::move(axis));
    if (cursor.Peek() != ']' && !cursor.Expect(',')) return false;
  }
  return true;
}

// (1,0,3,2), or ([2,2]T(1,0)): the numbers 0..3 reshaped and transposed.
bool ReadMeshDevices(HloCursor& cursor, Mesh& mesh) {
  if (!cursor.Expect('(')) return false;
  cursor.MoveTo(cursor.at() - 1);
  const char* start = cursor.at();
  cursor.Advance(1);
  if (cursor.Peek() != '[') {
    cursor.MoveTo(start);
    return cursor.Ints(mesh.device_ids, '(', ')');
  }
  Dims reshape, permutation;
  if (!cursor.Ints(reshape, '[', ']')) return false;
  if (cursor.TryWord("T") && !cursor.Ints(permutation, '(', ')')) return false;
  if (!cursor.Expect(')')) return false;
  std::optional<Dims> devices = ExpandIota(reshape, permutation);
  if (!devices) return BadSharding(cursor, "device_ids are not a permutation", start);
  mesh.device_ids = std::move(*devices);
  return true;
}

// The row of `meshes` with these axes and devices; added if missing.
const std::string& Intern(std::vector<Mesh>& meshes, Mesh mesh) {
  auto same = [&](const Mesh& row) {
    return row.axes == mesh.axes && row.device_ids == mesh.device_ids;
  };
  if (auto it = std::find_if(meshes.begin(), meshes.end(), same); it != meshes.end())
    return it->name;
  auto taken = [&](const std::string& name) {
    return std::any_of(meshes.begin(), meshes.end(),
                       [&](const Mesh& row) { return row.name == name; });
  };
  mesh.name = "mesh";
  for (size_t n = meshes.size(); taken(mesh.name); ++n) mesh.name = "mesh_" + std::to_string(n);
  meshes.push_back(std::move(mesh));
  return meshes.back().name;
}

bool ReadNamedAxes(HloCursor& cursor, std::string_view word, Sharding& sharding) {
  if (word == "replicated") return ReadAxes(cursor, sharding.replicated);
  if (word == "unreduced") return ReadAxes(cursor, sharding.unreduced);
  if (word == "manual") return ReadAxes(cursor, sharding.manual);
  if (word == "reduction") {
    sharding.reduction = std::string(cursor.Word());
    return !sharding.reduction.empty() || cursor.FailExpected("a reduction");
  }
  return BadSharding(cursor, "unknown part '" + std::string(word) + "'");
}

// {mesh[...], replicated} and similar: the word applies to every axis.
bool ReadWholeMesh(HloCursor& cursor, std::string_view word, const std::vector<Mesh>& meshes,
                   Sharding& sharding) {
  if (word == "replicated") return true;
  auto row = std::find_if(meshes.begin(), meshes.end(),
                          [&](const Mesh& mesh) { return mesh.name == sharding.mesh; });
  std::vector<AxisRef> all;
  if (row != meshes.end())
    for (const MeshAxis& axis : row->axes) all.push_back({.name = axis.name});
  if (word == "unreduced") {
    sharding.unreduced = std::move(all);
  } else if (word == "manual") {
    sharding.manual = std::move(all);
  } else {
    return BadSharding(cursor, "unknown part '" + std::string(word) + "'");
  }
  return true;
}

// After "{", at "mesh" or "maximal_mesh".
bool ReadMeshSharding(HloCursor& cursor, std::vector<Mesh>& meshes, Sharding& sharding) {
  sharding.kind = ShardingKind::kMesh;
  if (!ReadMesh(cursor, meshes, sharding.mesh)) return false;
  while (!cursor.Try('}')) {
    if (!cursor.Expect(',')) return false;
    if (cursor.Try('[')) {
      while (!cursor.Try(']')) {
        if (!ReadDimSharding(cursor, sharding.dims.emplace_back())) return false;
        if (cursor.Peek() != ']' && !cursor.Expect(',')) return false;
      }
      continue;
    }
    const char* start = cursor.at();
    std::string_view word = cursor.Word();
    bool has_value = cursor.Try('=');
    if (word == "metadata" && has_value) {
      std::string_view skipped;
      if (!cursor.Balanced(skipped)) return false;
    } else if (word.empty()) {
      cursor.MoveTo(start);
      return cursor.FailExpected("a part of a sharding");
    } else if (has_value ? !ReadNamedAxes(cursor, word, sharding)
                         : !ReadWholeMesh(cursor, word, meshes, sharding)) {
      return false;
    }
  }
  return true;
}

bool ReadSubgroups(HloCursor& cursor, Sharding& sharding) {
  if (!cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    const char* start = cursor.at();
    const KindWord* word = FindWord(cursor.Word());
    if (word == nullptr) return BadSharding(cursor, "unknown kind of tile dimension", start);
    sharding.subgroups.push_back(word->kind);
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  return true;
}

// Parses one word of a sharding without a mesh, at the word.
bool ReadPart(HloCursor& cursor, Sharding& sharding) {
  const char* start = cursor.at();
  std::string_view word = cursor.Word();
  if (word == "devices") {
    sharding.kind = ShardingKind::kTiled;
    return cursor.Expect('=') && cursor.Ints(sharding.tile, '[', ']') &&
           ReadTileDevices(cursor, sharding.tile_devices);
  }
  if (word == "device") {
    int64_t device = 0;
    if (!cursor.Expect('=') || !cursor.Int(device)) return false;
    sharding.kind = ShardingKind::kMaximal;
    sharding.tile_devices.list = {device};
    return true;
  }
  if (word == "last_tile_dim_replicate") {
    sharding.replicate_last_tile_dim = true;
    return true;
  }
  if (word == "last_tile_dims") return cursor.Expect('=') && ReadSubgroups(cursor, sharding);
  if (word == "shard_as") return cursor.Int(sharding.shard_as);
  if (word == "shard_like") return cursor.Int(sharding.shard_like);
  if (word == "metadata") {
    std::string_view skipped;
    return cursor.Expect('=') && cursor.Balanced(skipped);
  }
  const KindWord* kind = FindWord(word);
  if (kind == nullptr) {
    return word.empty() ? cursor.FailExpected("a sharding")
                        : BadSharding(cursor, "unknown part '" + std::string(word) + "'", start);
  }
  sharding.kind = kind->kind;
  return true;
}

// The number of tiles must equal the number of devices.
bool CheckTiles(HloCursor& cursor, const Sharding& sharding, const char* start) {
  if (sharding.kind == ShardingKind::kMaximal) {
    return sharding.tile_devices.list.size() == 1 ||
           BadSharding(cursor, "maximal without a device", start);
  }
  if (sharding.kind != ShardingKind::kTiled) return true;
  auto product = [](const Dims& dims) {
    int64_t count = 1;
    for (int64_t d : dims) {
      if (d < 1 || d > kMaxDevices / count) return int64_t{-1};
      count *= d;
    }
    return count;
  };
  const TileDevices& devices = sharding.tile_devices;
  int64_t tiles = product(sharding.tile);
  bool listed = devices.reshape.empty();
  int64_t given = listed ? static_cast<int64_t>(devices.list.size()) : product(devices.reshape);
  if (tiles < 1 || sharding.tile.size() > static_cast<size_t>(kMaxRank))
    return BadSharding(cursor, "tile dimensions must be 1 or more and few", start);
  if (tiles != given) {
    return BadSharding(
        cursor, std::to_string(tiles) + " tiles but " + std::to_string(given) + " devices", start);
  }
  Dims order = devices.permutation;
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i))
      return BadSharding(cursor, "T(...) permutes nothing", start);
  if (!order.empty() && order.size() != devices.reshape.size())
    return BadSharding(cursor, "T(...) and [...] have different lengths", start);
  size_t extra = sharding.subgroups.size() + (sharding.replicate_last_tile_dim ? 1 : 0);
  return extra <= sharding.tile.size() ||
         BadSharding(cursor, "more kinds of tile dimensions than tile dimensions", start);
}

void AppendNumbers(std::string& out, const Dims& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(values[i]);
  }
}

void AppendAxisName(std::string& out, const std::string& name) {
  if (name.find('\'') != std::string::npos) {
    AppendQuoted(out, name);
  } else {
    out += "'" + name + "'";
  }
}

void AppendMeshSharding(std::string& out, const Sharding& sharding,
                        const std::vector<Mesh>& meshes) {
  AppendMesh(out, sharding.mesh, meshes);
  if (!sharding.dims.empty()) {
    out += ", [";
    for (size_t i = 0; i < sharding.dims.size(); ++i) {
      const DimSharding& dim = sharding.dims[i];
      out += i > 0 ? ", {" : "{";
      for (size_t j = 0; j < dim.axes.size(); ++j) {
        if (j > 0) out += ", ";
        AppendAxisRef(out, dim.axes[j]);
      }
      if (!dim.is_closed) out += dim.axes.empty() ? "?" : ", ?";
      out += '}';
      if (dim.priority >= 0) out += "p" + std::to_string(dim.priority);
    }
    out += ']';
  }
  auto axes = [&](std::string_view word, const std::vector<AxisRef>& list) {
    if (list.empty()) return;
    out += ", " + std::string(word) + "=";
    AppendAxes(out, list);
  };
  axes("replicated", sharding.replicated);
  axes("unreduced", sharding.unreduced);
  axes("manual", sharding.manual);
  if (!sharding.reduction.empty()) out += ", reduction=" + sharding.reduction;
  bool says_nothing = sharding.dims.empty() && sharding.replicated.empty() &&
                      sharding.unreduced.empty() && sharding.manual.empty();
  if (says_nothing) out += ", replicated";
}

void AppendTiled(std::string& out, const Sharding& sharding) {
  out += "devices=[";
  AppendNumbers(out, sharding.tile);
  out += ']';
  AppendTileDevices(out, sharding.tile_devices);
  if (sharding.replicate_last_tile_dim) out += " last_tile_dim_replicate";
  if (sharding.subgroups.empty()) return;
  out += " last_tile_dims={";
  for (size_t i = 0; i < sharding.subgroups.size(); ++i) {
    if (i > 0) out += ", ";
    out += WordOf(sharding.subgroups[i]);
  }
  out += '}';
}

}  // namespace

bool ReadAxisRef(HloCursor& cursor, AxisRef& axis) {
  if (!ReadAxisName(cursor, axis.name)) return false;
  if (!cursor.TryText(":(")) return true;
  if (!cursor.Int(axis.pre_size) || !cursor.Expect(')') || !cursor.Int(axis.size)) return false;
  return (axis.pre_size >= 1 && axis.size >= 1) ||
         BadSharding(cursor, "a part of axis " + axis.name + " with a size below 1");
}

void AppendAxisRef(std::string& out, const AxisRef& axis) {
  AppendAxisName(out, axis.name);
  if (axis.pre_size != 0 || axis.size != 0)
    out += ":(" + std::to_string(axis.pre_size) + ")" + std::to_string(axis.size);
}

bool ReadAxes(HloCursor& cursor, std::vector<AxisRef>& axes) {
  if (!cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    if (!ReadAxisRef(cursor, axes.emplace_back())) return false;
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  return true;
}

bool ReadTileDevices(HloCursor& cursor, TileDevices& devices) {
  if (!cursor.TryText("<=")) {
    do {
      int64_t device = 0;
      if (!cursor.Int(device)) return false;
      devices.list.push_back(device);
    } while (cursor.Try(','));
    return true;
  }
  if (!cursor.Ints(devices.reshape, '[', ']')) return false;
  if (devices.reshape.empty()) return BadSharding(cursor, "<=[] has no devices");
  return !cursor.TryWord("T") || cursor.Ints(devices.permutation, '(', ')');
}

bool ReadMesh(HloCursor& cursor, std::vector<Mesh>& meshes, std::string& name) {
  if (cursor.TryWord("maximal_mesh")) {
    Mesh mesh;
    int64_t device = 0;
    if (!cursor.Expect('[') || !cursor.ExpectText("device_id=") || !cursor.Int(device) ||
        !cursor.Expect(']'))
      return false;
    mesh.device_ids = {device};
    name = Intern(meshes, std::move(mesh));
    return true;
  }
  if (!cursor.TryWord("mesh")) return cursor.FailExpected("a mesh");
  if (cursor.TryText("=@")) {
    if (cursor.PeekRaw() == '"') return cursor.String(name);
    name = std::string(cursor.Word());
    return !name.empty() || cursor.FailExpected("the name of a mesh");
  }
  Mesh mesh;
  if (!ReadMeshAxes(cursor, mesh)) return false;
  const char* before = cursor.at();
  if (cursor.Try(',')) {
    bool has_ids = cursor.TryText("device_ids=");
    if (!has_ids) cursor.MoveTo(before);
    if (has_ids && !ReadMeshDevices(cursor, mesh)) return false;
  }
  name = Intern(meshes, std::move(mesh));
  return true;
}

bool ReadSharding(HloCursor& cursor, std::vector<Mesh>& meshes, Sharding& sharding) {
  HloCursor::Depth depth(cursor);
  if (!depth.ok) return false;
  sharding = Sharding{};
  char first = cursor.Peek();
  const char* start = cursor.at();
  if (!cursor.Expect('{')) return false;
  first = cursor.Peek();
  if (first == '{' || first == '}') {
    sharding.kind = ShardingKind::kTuple;
    while (!cursor.Try('}')) {
      if (!ReadSharding(cursor, meshes, sharding.elements.emplace_back())) return false;
      if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
    }
    return true;
  }
  std::string_view word = cursor.PeekWord();
  if (word == "mesh" || word == "maximal_mesh") return ReadMeshSharding(cursor, meshes, sharding);
  while (!cursor.Try('}')) {
    if (!ReadPart(cursor, sharding)) return false;
    (void)cursor.Try(',');
  }
  return CheckTiles(cursor, sharding, start);
}

Result<Sharding> ParseHloSharding(std::string_view text, std::vector<Mesh>& meshes) {
  HloCursor cursor(text);
  Sharding sharding;
  bool done = ReadSharding(cursor, meshes, sharding) &&
              (cursor.AtEnd() || cursor.FailExpected("the end of the sharding"));
  if (!done) return cursor.TakeError({});
  return sharding;
}

void AppendTileDevices(std::string& out, const TileDevices& devices) {
  if (devices.reshape.empty()) {
    AppendNumbers(out, devices.list);
    return;
  }
  out += "<=[";
  AppendNumbers(out, devices.reshape);
  out += ']';
  if (devices.permutation.empty()) return;
  out += "T(";
  AppendNumbers(out, devices.permutation);
  out += ')';
}

void AppendMeshText(std::string& out, const Mesh& mesh) {
  if (mesh.axes.empty() && mesh.device_ids.size() == 1) {
    out += "maximal_mesh[device_id=" + std::to_string(mesh.device_ids[0]) + "]";
    return;
  }
  out += "mesh[";
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    if (i > 0) out += ',';
    AppendAxisName(out, mesh.axes[i].name);
    out += "=" + std::to_string(mesh.axes[i].size);
  }
  out += ']';
  if (mesh.device_ids.empty()) return;
  out += ", device_ids=(";
  AppendNumbers(out, mesh.device_ids);
  out += ')';
}

void AppendMesh(std::string& out, const std::string& name, const std::vector<Mesh>& meshes) {
  auto row = std::find_if(meshes.begin(), meshes.end(),
                          [&](const Mesh& mesh) { return mesh.name == name; });
  // A mesh that is written out denotes the first row equal to it.
  auto first =
      row == meshes.end() ? row : std::find_if(meshes.begin(), meshes.end(), [&](const Mesh& mesh) {
        return mesh.axes == row->axes && mesh.device_ids == row->device_ids;
      });
  if (row == meshes.end() || first != row) {
    out += "mesh=@";
    AppendQuoted(out, name);
  } else {
    AppendMeshText(out, *row);
  }
}

void AppendAxes(std::string& out, const std::vector<AxisRef>& axes) {
  out += '{';
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i > 0) out += ", ";
    AppendAxisRef(out, axes[i]);
  }
  out += '}';
}

void AppendSharding(std::string& out, const Sharding& sharding, const std::vector<Mesh>& meshes) {
  out += '{';
  switch (sharding.kind) {
    case ShardingKind::kTuple:
      for (size_t i = 0; i < sharding.elements.size(); ++i) {
        if (i > 0) out += ", ";
        AppendSharding(out, sharding.elements[i], meshes);
      }
      break;
    case ShardingKind::kMesh:
      AppendMeshSharding(out, sharding, meshes);
      break;
    case ShardingKind::kTiled:
      AppendTiled(out, sharding);
      break;
    case ShardingKind::kMaximal:
      out += "maximal device=";
      AppendNumbers(out, sharding.tile_devices.list);
      break;
    case ShardingKind::kReplicated:
    case ShardingKind::kManual:
    case ShardingKind::kUnknown:
    case ShardingKind::kUnreduced:
      out += WordOf(sharding.kind);
      break;
  }
  if (sharding.shard_as >= 0) out += " shard_as " + std::to_string(sharding.shard_as);
  if (sharding.shard_like >= 0) out += " shard_like " + std::to_string(sharding.shard_like);
  out += '}';
}

std::string WriteHloSharding(const Sharding& sharding, const std::vector<Mesh>& meshes) {
  std::string out;
  AppendSharding(out, sharding, meshes);
  return out;
}

}  // namespace tokamak

// The extensions that the plugin implements. Without Layouts and Shardings JAX would extract the
// same information from OptimizedProgram, which it requests eight times per compilation.

#include "pjrt/extensions.h"

#include <algorithm>
#include <array>
#include <string>

#include "pjrt/buffer.h"
#include "pjrt/error.h"
#include "pjrt/executable.h"

namespace tokamak {

// Every layout is row-major: "{2,1,0}". One object per rank, never freed.
struct PJRT_Layouts_MemoryLayout {
  std::string text;
};

namespace {

PJRT_Layouts_MemoryLayout* LayoutOf(size_t rank) {
  static auto* layouts = [] {
    auto* all = new std::array<PJRT_Layouts_MemoryLayout, kMaxRank + 1>;
    for (size_t n = 0; n < all->size(); ++n) {
      std::string text = "{";
      for (size_t d = n; d-- > 0;) text += std::to_string(d) + (d > 0 ? "," : "");
      (*all)[n].text = text + "}";
    }
    return all;
  }();
  return &(*layouts)[std::min<size_t>(rank, kMaxRank)];
}

PJRT_Error* DestroyLayout(PJRT_Layouts_MemoryLayout_Destroy_Args*) {
  return nullptr;
}

PJRT_Error* SerializeLayout(PJRT_Layouts_MemoryLayout_Serialize_Args* args) {
  args->serialized_bytes = args->layout->text.data();
  args->serialized_bytes_size = args->layout->text.size();
  args->serialized_layout = nullptr;
  args->serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout*) {};
  return nullptr;
}

PJRT_Error* DefaultLayout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args) {
  args->layout = LayoutOf(args->num_dims);
  return nullptr;
}

PJRT_Error* TopologyLayout(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args) {
  args->layout = LayoutOf(args->num_dims);
  return nullptr;
}

PJRT_Error* BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args) {
  args->layout = LayoutOf(args->buffer->dims.span().size());
  return nullptr;
}

// The lists live as long as the program.
PJRT_Error* OutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args) {
  const Program& program = *args->executable->program;
  args->num_outputs = program.result_layouts.size();
  args->layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.result_layouts.data());
  return nullptr;
}

PJRT_Error* ParameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args) {
  const Program& program = *args->executable->program;
  args->num_parameters = program.parameter_layouts.size();
  args->layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.parameter_layouts.data());
  return nullptr;
}

// Null for a program on one device, which has no shardings.
PJRT_Error* ParameterShardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args) {
  const ShardingTexts& texts = args->executable->program->parameter_shardings;
  args->num_parameters = texts.data.size();
  args->shardings = texts.data.empty() ? nullptr : texts.data.data();
  args->sharding_sizes = texts.sizes.data();
  return nullptr;
}

PJRT_Error* OutputShardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args) {
  const ShardingTexts& texts = args->executable->program->result_shardings;
  args->num_outputs = texts.data.size();
  args->shardings = texts.data.empty() ? nullptr : texts.data.data();
  args->sharding_sizes = texts.sizes.data();
  return nullptr;
}

}  // namespace

PJRT_Layouts_MemoryLayout* RowMajorLayout(size_t rank) {
  return LayoutOf(rank);
}

PJRT_Extension_Base* Extensions() {
  static PJRT_Shardings_Extension shardings = {
      {sizeof(PJRT_Shardings_Extension), PJRT_Extension_Type_Shardings, nullptr},
      ParameterShardings,
      OutputShardings};
  static PJRT_Layouts_Extension layouts = {
      {sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, &shardings.base},
      DestroyLayout,
      SerializeLayout,
      DefaultLayout,
      BufferLayout,
      TopologyLayout,
      OutputLayouts,
      ParameterLayouts};
  return &layouts.base;
}

}  // namespace tokamak

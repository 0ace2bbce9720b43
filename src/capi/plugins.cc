// Plugins and policies in C. No exception leaves this file.

#include <mutex>
#include <set>
#include <string>

#include <nlohmann/json.hpp>
#include <tokamak/c_api.h>
#include <tokamak/tokamak_plugin.h>

#include "capi/handles.h"
#include "driver/plugins/callback.h"
#include "driver/plugins/registry.h"
#include "driver/rules/plugin_rewrites.h"
#include "support/interned.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

// Before anything can load a plugin.
[[maybe_unused]] const bool kHasRewrites = (UsePluginRewrites(), true);

template <typename Items>
nlohmann::json NamesOfPlugin(const Items& items, const PluginFile& file) {
  nlohmann::json names = nlohmann::json::array();
  for (const auto& item : items)
    if (item.plugin.get() == &file) names.push_back(item.name);
  return names;
}

nlohmann::json PluginsJson() {
  std::shared_ptr<const ExtensionSet> all = CurrentExtensions();
  nlohmann::json list = nlohmann::json::array();
  for (const auto& file : all->plugins)
    list.push_back({{"name", file->name},
                    {"version", file->version},
                    {"path", file->path},
                    {"passes", NamesOfPlugin(all->passes, *file)},
                    {"rewrites", NamesOfPlugin(all->rewrites, *file)},
                    {"generators", NamesOfPlugin(all->generators, *file)},
                    {"cost_hooks", NamesOfPlugin(all->cost_hooks, *file)},
                    {"fusion_policies", NamesOfPlugin(all->fusion_policies, *file)},
                    {"order_policies", NamesOfPlugin(all->order_policies, *file)}});
  return list;
}

tok_error* TakeId(const Result<uint64_t>& added, uint64_t* id) {
  if (!added.ok()) return InC(added.error());
  *id = added.value();
  return nullptr;
}

}  // namespace
}  // namespace tokamak

tok_error* tok_load_plugin(const char* path) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (path == nullptr) return tokamak::InvalidArgument("load_plugin: the path is null");
    tokamak::Status loaded = tokamak::LoadPlugin(path);
    return loaded.ok() ? nullptr : tokamak::InC(loaded.error());
  });
}

const char* tok_plugins(void) {
  try {
    return tokamak::Interned(tokamak::JsonText(tokamak::PluginsJson())).c_str();
  } catch (const std::bad_alloc&) {
    return "[]";
  }
}

tok_error* tok_add_fusion_policy(const tok_fusion_policy* policy, uint64_t* id) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (policy == nullptr || id == nullptr)
      return tokamak::InvalidArgument("add_fusion_policy: a null pointer");
    return tokamak::TakeId(tokamak::AddFusionPolicy(*policy), id);
  });
}

tok_error* tok_add_order_policy(const tok_order_policy* policy, uint64_t* id) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (policy == nullptr || id == nullptr)
      return tokamak::InvalidArgument("add_order_policy: a null pointer");
    return tokamak::TakeId(tokamak::AddOrderPolicy(*policy), id);
  });
}

void tok_remove_policy(uint64_t id) {
  tokamak::RemovePolicy(id);
}

void tok_policy_fail(const char* message) {
  tokamak::FailCallback(message == nullptr ? "" : message);
}

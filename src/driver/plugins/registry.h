#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tokamak/tokamak_plugin.h>

#include "rewrite/pipeline.h"
#include "support/result.h"

// The compiler plugins and policies of this process. A compilation takes a snapshot
// (CurrentExtensions), so what is added meanwhile concerns later ones.

namespace tokamak {

// A loaded shared library.
struct PluginFile {
  std::string path, name, version;
  uint64_t bytes = 0, hash = 0;  // of the file
};

// What registered items have in common. An item whose call crashed or hung is not called again in
// this process: its library may hold locks.
struct PluginItem {
  std::string name;
  std::shared_ptr<const PluginFile> plugin;  // null: the process itself (the C API, Python)
  std::shared_ptr<std::atomic<bool>> is_abandoned = std::make_shared<std::atomic<bool>>(false);

  // "the pass mine.swish of the plugin mine (./mine.so)".
  std::string Describe(std::string_view what) const;
};

struct PluginPass : PluginItem {
  Pass after{};
  tok_pass entry{};  // its texts are not valid
};
struct PluginRewrite : PluginItem {
  std::string pattern, replacement;
  bool always = false;
  int64_t priority = 0;
  double tolerance = 0;
};
struct PluginGenerator : PluginItem {
  tok_generator entry{};
};
struct PluginCostHook : PluginItem {
  tok_cost_hook entry{};
};
struct FusionPolicyItem : PluginItem {
  uint64_t id = 0;
  tok_fusion_policy entry{};
};
struct OrderPolicyItem : PluginItem {
  uint64_t id = 0;
  tok_order_policy entry{};
};

// Plugins and policies at one moment, in the order of registration; policies: the latest first.
struct ExtensionSet {
  std::vector<std::shared_ptr<const PluginFile>> plugins;
  std::vector<PluginPass> passes;
  std::vector<PluginRewrite> rewrites;
  std::vector<PluginGenerator> generators;
  std::vector<PluginCostHook> cost_hooks;
  std::vector<FusionPolicyItem> fusion_policies;
  std::vector<OrderPolicyItem> order_policies;

  bool empty() const {
    return passes.empty() && generators.empty() && cost_hooks.empty() && fusion_policies.empty() &&
           order_policies.empty();
  }
};

std::shared_ptr<const ExtensionSet> CurrentExtensions();

// Makes a rewrite rule of a plugin a rule of the process; set once, by the layer that has them.
using AddRewriteFn = Status (*)(const PluginRewrite& rewrite);
void SetAddRewrite(AddRewriteFn add);

// What the results of a compilation depend on: the identity of plugins and policies, for keys of
// caches. Empty without any.
std::string ExtensionsKey();

// Loads a plugin, once per file. Returns TK6201 to TK6204, located at the file.
Status LoadPlugin(const std::string& path);
// Loads what TOKAMAK_PLUGINS names ("a.so:b.so"), once per process and value.
Status LoadPluginsOfEnvironment();

// Adds a policy of this process, which is asked before those that exist. Its user data must stay
// valid until it is removed and no compilation is running. Returns TK6203.
Result<uint64_t> AddFusionPolicy(const tok_fusion_policy& policy);
Result<uint64_t> AddOrderPolicy(const tok_order_policy& policy);
// Removes a policy of this process. No effect if there is none with this id.
void RemovePolicy(uint64_t id);

// How failures of plugins are treated, in addition to the options of a compilation.
struct PluginMode {
  bool strict = false;  // a failure is an error
  bool check = false;   // values are compared before and after each pass
};
void SetPluginMode(PluginMode mode);
PluginMode CurrentPluginMode();

// Whether a name is not empty and has only letters, digits, '.', '-' and '_', as the names of
// plugins, of their items and of rules do.
bool IsItemName(std::string_view name);

}  // namespace tokamak

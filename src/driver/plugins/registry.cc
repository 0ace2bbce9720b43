// Loading of plugins and the process-wide lists. A registered struct may be shorter than ours, when
// the plugin was built against an older header: only what it has is copied, the rest stays zero.

#include "driver/plugins/registry.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "driver/plugins/callback.h"
#include "driver/plugins/host_table.h"
#include "support/hash.h"
#include "support/near_names.h"
#include "support/version.h"
#include "text/load.h"

namespace tokamak {
namespace {

// Kept until the process ends: plugins are not unloaded, and threads that were left may refer to
// them.
struct Registry {
  std::mutex mutex;
  std::shared_ptr<const ExtensionSet> all = std::make_shared<const ExtensionSet>();
  uint64_t next_id = 1;
  PluginMode mode;
  AddRewriteFn add_rewrite = nullptr;
  std::string read_environment;  // the value of TOKAMAK_PLUGINS that was loaded

  static Registry& OfProcess() {
    static auto* registry = new Registry;
    return *registry;
  }
};

bool IsName(const char* text) {
  return text != nullptr && IsItemName(text);
}

// The members that the caller's struct has; the rest is zero. False if it has not even the first
// `least` bytes.
template <typename T>
bool CopySized(const T* given, size_t least, T& out) {
  out = T{};
  if (given == nullptr || given->struct_size < least) return false;
  std::memcpy(static_cast<void*>(&out), given, std::min(given->struct_size, sizeof(T)));
  out.struct_size = sizeof(T);
  return true;
}

// What a plugin registers while its init function runs.
struct Registration {
  ExtensionSet made = {};
  std::shared_ptr<PluginFile> file;
  // Names that are taken, by kind: "pass", "policy" ...
  std::set<std::pair<std::string, std::string>> taken = {};
};

Error Malformed(const std::string& what) {
  return MakeError(ErrorCode::kPluginRegistration, what);
}

int FailText(const std::string& message) {
  FailCallback(message);
  return -1;
}

Registration* RegistrationOf(tok_plugin* plugin) {
  return plugin == nullptr ? nullptr : static_cast<Registration*>(plugin->host_data);
}

// Checks a name, and fills in what all items have. Returns 0, or -1 after a failure.
int SetItem(tok_plugin* plugin, const char* kind, const char* name, PluginItem& item) {
  Registration* registration = RegistrationOf(plugin);
  if (registration == nullptr) return FailText("register: the plugin is null");
  if (!IsName(name))
    return FailText(fmt::format(
        "add_{}: the name '{}' is empty or has other characters than letters, digits, '.', '-', "
        "'_'",
        kind, name == nullptr ? "" : name));
  if (!registration->taken.insert({kind, name}).second)
    return FailText(fmt::format("add_{}: the name {} is registered twice", kind, name));
  item.name = name;
  item.plugin = registration->file;
  return 0;
}

// The pass that a plugin's pass follows.
int SetPlace(const char* kind, const char* after, Pass& place) {
  place = Pass::kDce;
  if (after == nullptr) return 0;
  std::optional<Pass> found = PassFromName(after);
  if (found) {
    place = *found;
    return 0;
  }
  std::vector<std::string_view> names;
  for (const PassInfo& info : kPasses) names.push_back(info.name);
  return FailText(fmt::format("add_{}: there is no pass '{}' to follow{}", kind, ShownWord(after),
                              DidYouMean(after, names)));
}

// Copies a registered struct, which must at least reach to its function, and fills in the item.
// Returns 0, or -1 after a failure.
template <typename Item, typename Entry, typename Function>
int ReadItem(tok_plugin* plugin, const char* kind, const Entry* given, Function Entry::*function,
             Item& item) {
  const auto* begin = reinterpret_cast<const char*>(&item.entry);
  const auto* end = reinterpret_cast<const char*>(&(item.entry.*function) + 1);
  if (!CopySized(given, static_cast<size_t>(end - begin), item.entry) ||
      item.entry.*function == nullptr)
    return FailText(
        fmt::format("add_{}: the struct is null or too short, or has no function", kind));
  return SetItem(plugin, kind, given->name, item);
}

template <typename Item, typename Entry, typename Function>
int AddItem(tok_plugin* plugin, const char* kind, const Entry* given, Function Entry::*function,
            std::vector<Item> ExtensionSet::*list) {
  Item item;
  if (ReadItem(plugin, kind, given, function, item) != 0) return -1;
  (RegistrationOf(plugin)->made.*list).push_back(std::move(item));
  return 0;
}

int AddPass(tok_plugin* plugin, const tok_pass* given) {
  PluginPass pass;
  if (ReadItem(plugin, "pass", given, &tok_pass::run, pass) != 0) return -1;
  if (SetPlace("pass", given->after, pass.after) != 0) return -1;
  if (pass.entry.targets > (TOK_CPU | TOK_GPU))
    return FailText("add_pass: targets is neither TOK_ANY_TARGET nor TOK_CPU, TOK_GPU or both");
  RegistrationOf(plugin)->made.passes.push_back(std::move(pass));
  return 0;
}

int AddRewrite(tok_plugin* plugin, const tok_rewrite* given) {
  tok_rewrite entry;
  if (!CopySized(given, offsetof(tok_rewrite, replacement) + sizeof(given->replacement), entry) ||
      entry.pattern == nullptr || entry.replacement == nullptr)
    return FailText("add_rewrite: the struct is null or too short, or lacks a program");
  PluginRewrite rewrite;
  if (SetItem(plugin, "rewrite", entry.name, rewrite) != 0) return -1;
  rewrite.pattern = entry.pattern;
  rewrite.replacement = entry.replacement;
  rewrite.always = entry.always != 0;
  rewrite.priority = entry.priority;
  rewrite.tolerance = entry.tolerance;
  RegistrationOf(plugin)->made.rewrites.push_back(std::move(rewrite));
  return 0;
}

int AddGenerator(tok_plugin* plugin, const tok_generator* given) {
  return AddItem(plugin, "generator", given, &tok_generator::build, &ExtensionSet::generators);
}

int AddCostHook(tok_plugin* plugin, const tok_cost_hook* given) {
  return AddItem(plugin, "cost_hook", given, &tok_cost_hook::predict, &ExtensionSet::cost_hooks);
}

int AddFusionPolicyOf(tok_plugin* plugin, const tok_fusion_policy* given) {
  return AddItem(plugin, "fusion_policy", given, &tok_fusion_policy::decide,
                 &ExtensionSet::fusion_policies);
}

int AddOrderPolicyOf(tok_plugin* plugin, const tok_order_policy* given) {
  return AddItem(plugin, "order_policy", given, &tok_order_policy::priority,
                 &ExtensionSet::order_policies);
}

const tok_plugin_host& HostTable() {
  static const tok_plugin_host table = [] {
    tok_plugin_host host{};
    host.struct_size = sizeof host;
    host.abi = TOK_PLUGIN_ABI;
    host.version = kVersion.data();
    host.add_pass = AddPass;
    host.add_rewrite = AddRewrite;
    host.add_generator = AddGenerator;
    host.add_cost_hook = AddCostHook;
    host.add_fusion_policy = AddFusionPolicyOf;
    host.add_order_policy = AddOrderPolicyOf;
    FillHostTable(host);
    return host;
  }();
  return table;
}

// The call of tok_plugin_init. It owns all that the plugin may reach later.
class InitCall final : public PluginCallback {
 public:
  using InitFn = int (*)(const tok_plugin_host*, tok_plugin*);
  InitCall(InitFn init, Registration registration)
      : registration(std::move(registration)), init_(init) {
    plugin.struct_size = sizeof plugin;
    plugin.host_data = &this->registration;
  }
  void Call() override { code = init_(&HostTable(), &plugin); }

  tok_plugin plugin{};
  Registration registration;
  int code = 0;

 private:
  InitFn init_;
};

Error At(const std::string& path, ErrorCode code, std::string message) {
  return MakeError(code, std::move(message), {.file = path});
}

template <typename Items>
void TakeNames(const Items& items, const char* kind, Registration& registration) {
  for (const auto& item : items) registration.taken.insert({kind, item.name});
}

template <typename Items>
void Append(Items& to, const Items& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Registration RegistrationFor(std::shared_ptr<PluginFile> file, const ExtensionSet& all) {
  Registration registration{.file = std::move(file)};
  TakeNames(all.passes, "pass", registration);
  TakeNames(all.rewrites, "rewrite", registration);
  TakeNames(all.generators, "generator", registration);
  TakeNames(all.cost_hooks, "cost_hook", registration);
  TakeNames(all.fusion_policies, "fusion_policy", registration);
  TakeNames(all.order_policies, "order_policy", registration);
  return registration;
}

// Checks what the init function has stated.
Status CheckInit(const std::string& path, const InitCall& call, const std::string& why,
                 const ExtensionSet& all) {
  if (why.empty() && call.plugin.abi != TOK_PLUGIN_ABI)
    return At(path, ErrorCode::kPluginAbi,
              fmt::format("plugin: it was built for version {} of the interface, this Tokamak has "
                          "version {}",
                          call.plugin.abi, TOK_PLUGIN_ABI));
  if (!why.empty()) {
    bool is_malformed = why.starts_with("add_");
    return At(path, is_malformed ? ErrorCode::kPluginRegistration : ErrorCode::kPluginInit,
              "plugin: tok_plugin_init fails: " + why);
  }
  if (call.code != 0)
    return At(path, ErrorCode::kPluginInit,
              fmt::format("plugin: tok_plugin_init returned {}", call.code));
  if (!IsName(call.plugin.name))
    return At(path, ErrorCode::kPluginRegistration, "plugin: it states no valid name");
  for (const auto& other : all.plugins)
    if (other->name == call.plugin.name)
      return At(path, ErrorCode::kPluginRegistration,
                fmt::format("plugin: the name {} is that of {}", other->name, other->path));
  return Ok();
}

Status Load(const std::string& path, Registry& registry) {
  std::error_code error;
  std::string real = std::filesystem::weakly_canonical(path, error).string();
  if (error) real = path;
  for (const auto& other : registry.all->plugins)
    if (other->path == real) return Ok();
  Result<Bytes> bytes = ReadFileBytes(real);
  if (!bytes.ok()) return At(path, ErrorCode::kPluginFile, "plugin: " + bytes.error().message);
  auto file = std::make_shared<PluginFile>();
  file->path = real;
  file->bytes = bytes.value().size();
  Hasher hasher;
  hasher.Add(bytes.value().text());
  file->hash = hasher.digest();
  void* library = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return At(path, ErrorCode::kPluginFile,
              std::string("plugin: ") + (why == nullptr ? "it cannot be opened" : why));
  }
  auto init = reinterpret_cast<InitCall::InitFn>(dlsym(library, "tok_plugin_init"));
  if (init == nullptr)
    return At(path, ErrorCode::kPluginFile,
              "plugin: the library does not export tok_plugin_init (in C++: extern \"C\", which "
              "tokamak_plugin.h declares)");
  auto call = std::make_shared<InitCall>(init, RegistrationFor(file, *registry.all));
  CallOutcome outcome = Invoke(call);
  if (outcome.is_abandoned)
    return At(path, ErrorCode::kPluginInit, "plugin: tok_plugin_init fails: " + outcome.why);
  TOK_RETURN_IF_ERROR(CheckInit(path, *call, outcome.why, *registry.all));
  file->name = call->plugin.name;
  file->version = call->plugin.version == nullptr ? "" : call->plugin.version;
  const ExtensionSet& made = call->registration.made;
  for (const PluginRewrite& rewrite : made.rewrites) {
    if (registry.add_rewrite == nullptr)
      return At(path, ErrorCode::kPluginRegistration,
                rewrite.Describe("rule") + ": this program has no rewrite rules");
    if (Status added = registry.add_rewrite(rewrite); !added.ok()) {
      added.error().message = rewrite.Describe("rule") + ": " + added.error().message;
      return added.error();
    }
  }
  auto all = std::make_shared<ExtensionSet>(*registry.all);
  all->plugins.push_back(file);
  Append(all->passes, made.passes);
  Append(all->rewrites, made.rewrites);
  Append(all->generators, made.generators);
  Append(all->cost_hooks, made.cost_hooks);
  all->fusion_policies.insert(all->fusion_policies.begin(), made.fusion_policies.begin(),
                              made.fusion_policies.end());
  all->order_policies.insert(all->order_policies.begin(), made.order_policies.begin(),
                             made.order_policies.end());
  registry.all = std::move(all);
  return Ok();
}

template <typename Item, typename Entry>
Result<uint64_t> AddPolicy(const Entry& given, std::vector<Item> ExtensionSet::*list) {
  Item item;
  if (!IsName(given.name))
    return Malformed(
        "policy: its name is empty, or has other characters than letters, digits, "
        "'.', '-', '_'");
  if (!CopySized(&given, sizeof(Entry) - sizeof(void*), item.entry))
    return Malformed("policy: the struct is too short");
  item.name = given.name;
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  item.id = registry.next_id++;
  auto all = std::make_shared<ExtensionSet>(*registry.all);
  uint64_t id = item.id;
  ((*all).*list).insert(((*all).*list).begin(), std::move(item));
  registry.all = std::move(all);
  return id;
}

}  // namespace

std::string PluginItem::Describe(std::string_view what) const {
  if (plugin == nullptr) return fmt::format("the {} {}", what, name);
  return fmt::format("the {} {} of the plugin {} ({})", what, name, plugin->name, plugin->path);
}

std::shared_ptr<const ExtensionSet> CurrentExtensions() {
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  return registry.all;
}

std::string ExtensionsKey() {
  std::shared_ptr<const ExtensionSet> all = CurrentExtensions();
  std::string key;
  for (const auto& plugin : all->plugins)
    key += fmt::format("plugin {} {} {} {} {:x};", plugin->path, plugin->name, plugin->version,
                       plugin->bytes, plugin->hash);
  for (const FusionPolicyItem& policy : all->fusion_policies)
    if (policy.id != 0) key += fmt::format("fusion policy {} {};", policy.name, policy.id);
  for (const OrderPolicyItem& policy : all->order_policies)
    if (policy.id != 0) key += fmt::format("order policy {} {};", policy.name, policy.id);
  PluginMode mode = CurrentPluginMode();
  if (!key.empty()) key += fmt::format("strict {} check {}", mode.strict, mode.check);
  return key;
}

Status LoadPlugin(const std::string& path) {
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  return Load(path, registry);
}

Status LoadPluginsOfEnvironment() {
  const char* value = std::getenv("TOKAMAK_PLUGINS");
  std::string_view rest = value == nullptr ? "" : value;
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  if (registry.read_environment == rest) return Ok();
  std::string whole(rest);
  while (!rest.empty()) {
    std::string_view path = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), path.size() + 1));
    if (path.empty()) continue;
    Status loaded = Load(std::string(path), registry);
    if (loaded.ok()) continue;
    Error error = std::move(loaded.error());
    error.notes.push_back("TOKAMAK_PLUGINS names it");
    return error;
  }
  registry.read_environment = std::move(whole);
  return Ok();
}

Result<uint64_t> AddFusionPolicy(const tok_fusion_policy& policy) {
  if (policy.decide == nullptr) return Malformed("policy: it has no function");
  return AddPolicy(policy, &ExtensionSet::fusion_policies);
}

Result<uint64_t> AddOrderPolicy(const tok_order_policy& policy) {
  if (policy.priority == nullptr) return Malformed("policy: it has no function");
  return AddPolicy(policy, &ExtensionSet::order_policies);
}

void RemovePolicy(uint64_t id) {
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto all = std::make_shared<ExtensionSet>(*registry.all);
  auto is_it = [id](const auto& policy) { return id != 0 && policy.id == id; };
  std::erase_if(all->fusion_policies, is_it);
  std::erase_if(all->order_policies, is_it);
  registry.all = std::move(all);
}

void SetAddRewrite(AddRewriteFn add) {
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.add_rewrite = add;
}

void SetPluginMode(PluginMode mode) {
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.mode = mode;
}

PluginMode CurrentPluginMode() {
  Registry& registry = Registry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  return registry.mode;
}

bool IsItemName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace tokamak

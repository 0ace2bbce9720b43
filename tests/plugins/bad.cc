// A plugin that misbehaves as BAD_PLUGIN says; tests/plugins_test.py has the list.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <tokamak/tokamak_plugin.h>

namespace {

const tok_plugin_host* tok;

bool Is(const char* mode) {
  const char* wanted = getenv("BAD_PLUGIN");
  return wanted != nullptr && strcmp(wanted, mode) == 0;
}

void Misbehave() {
  if (Is("crash")) *static_cast<volatile int*>(nullptr) = 1;
  if (Is("abort")) abort();
  if (Is("throw")) throw std::runtime_error("bad luck");
  if (Is("throw-int")) throw 7;
  for (volatile int i = 0; Is("hang"); i = i + 1) {
  }
}

tok_instr* FirstOp(tok_graph* graph) {
  return tok->root(tok->entry(graph));
}

int Run(tok_graph* graph, void*) {
  Misbehave();
  tok_instr* root = FirstOp(graph);
  if (Is("fail")) return tok->fail("it is Tuesday");
  if (Is("negative")) return -3;
  if (Is("wrong-shape"))
    return tok->replace(root, tok->build(root, "f32[] constant(1)", nullptr, 0));
  if (Is("bad-text")) return tok->build(root, "@ frobnicate($0)", &root, 1) == nullptr ? -1 : 1;
  if (Is("bad-operand")) return tok->build(root, "@ negate($1)", &root, 1) == nullptr ? -1 : 1;
  if (Is("set-text"))
    return tok->set_text(graph, "HloModule x\nENTRY y {\n ROOT z = f32[3] parameter(0)\n}\n");
  if (Is("wrong-values") || Is("half-done")) {
    tok_instr* changed = tok->build(root, "@ negate($0)", &root, 1);
    if (changed == nullptr || tok->replace(root, changed) != 0) return -1;
    if (Is("half-done")) throw std::runtime_error("in the middle");
    return 1;
  }
  if (Is("cycle")) {
    // Its operand is computed from it.
    tok_instr* operand = tok->operand(root, 0);
    return tok->replace(operand, tok->build(root, "@ negate($0)", &root, 1));
  }
  return 0;
}

double Predict(const tok_kernel_facts* kernel, void*) {
  if (Is("cost-throws")) throw std::runtime_error("no number");
  if (Is("cost-infinite")) return 1e300;
  return kernel->predicted_us < 0 ? 0 : -1;
}

const char* Generate(const tok_region*, void*) {
  if (Is("generator-crashes")) raise(SIGSEGV);
  if (Is("generator-nonsense")) return "kernel x {\n  index 32\n  what is this\n}\n";
  if (Is("generator-arguments"))
    return "kernel x {\n  index 32\n  argument a: f32[1] write align 4\n  grid g < 1 {\n    store "
           "a[0] = f32(0)\n  }\n}\n";
  return nullptr;
}

int Decide(const tok_move*, double* weight, void*) {
  if (Is("policy-throws")) throw std::runtime_error("no opinion");
  if (Is("policy-answer")) return 17;
  *weight = -1;
  return Is("policy-weight") ? TOK_WEIGHT : TOK_NO_OPINION;
}

}  // namespace

extern "C" int tok_plugin_init(const tok_plugin_host* host, tok_plugin* plugin) {
  tok = host;
  if (Is("old")) {
    plugin->abi = 99;
    return 0;
  }
  TOK_PLUGIN(host, plugin, Is("no-name") ? "" : "bad", "0.1");
  if (Is("init-crash")) *static_cast<volatile int*>(nullptr) = 1;
  if (Is("init-throw")) throw std::runtime_error("not today");
  if (Is("init-fail")) return host->fail("no licence");
  if (Is("init-code")) return 5;
  tok_pass pass = {sizeof pass,
                   Is("name") ? "two words" : "bad.pass",
                   Is("place") ? "simplfy" : nullptr,
                   TOK_ANY_TARGET,
                   0,
                   Is("no-function") ? nullptr : Run,
                   nullptr,
                   300};
  if (Is("short")) pass.struct_size = 8;
  // A struct of the first version of the header, without the time limit; what follows it is not
  // read.
  if (Is("smaller"))
    pass.struct_size = offsetof(tok_pass, user), pass.user = reinterpret_cast<void*>(1),
    pass.limit_ms = 1;
  if (host->add_pass(plugin, &pass) != 0) return -1;
  if (Is("twice") && host->add_pass(plugin, &pass) != 0) return -1;
  tok_cost_hook hook = {sizeof hook, "bad.cost", Predict, nullptr};
  if (strncmp(getenv("BAD_PLUGIN") == nullptr ? "" : getenv("BAD_PLUGIN"), "cost-", 5) == 0 &&
      host->add_cost_hook(plugin, &hook) != 0)
    return -1;
  tok_generator generator = {sizeof generator, "bad.generator", TOK_ANY_TARGET, Generate, nullptr};
  if (strncmp(getenv("BAD_PLUGIN") == nullptr ? "" : getenv("BAD_PLUGIN"), "generator-", 10) == 0 &&
      host->add_generator(plugin, &generator) != 0)
    return -1;
  tok_fusion_policy policy = {sizeof policy, "bad.policy", Decide, nullptr};
  if (strncmp(getenv("BAD_PLUGIN") == nullptr ? "" : getenv("BAD_PLUGIN"), "policy-", 7) == 0)
    return host->add_fusion_policy(plugin, &policy);
  return 0;
}

// A compiler plugin: a pass that replaces divisions by a constant, and a cost hook.
#include <cstdio>
#include <cstring>

#include <tokamak/tokamak_plugin.h>

static const tok_plugin_host* tok;
static int run(tok_graph* graph, void*) {
  int changes = 0;
  for (size_t c = 0; c < tok->computation_count(graph); ++c) {
    tok_computation* computation = tok->computation(graph, c);
    for (size_t i = 0; i < tok->instr_count(computation); ++i) {
      tok_instr* divide = tok->instr(computation, i);
      tok_instr* dividend = tok->operand(divide, 0);
      double divisor = 0;
      if (strcmp(tok->op(divide), "divide") != 0 || tok->type(divide)[0] != 'f') continue;
      if (!tok->number(tok->operand(divide, 1), &divisor) || divisor == 0) continue;
      char hlo[200];
      auto form = "c = %s[] constant(%.17g)\nb = @ broadcast(c)\n@ multiply($0, b)";
      snprintf(hlo, sizeof hlo, form, tok->type(divide), 1 / divisor);
      tok_instr* product = tok->build(divide, hlo, &dividend, 1);
      if (product == nullptr || tok->replace(divide, product) != 0) return -1;
      tok->note(product, "reciprocal.divide", "a multiplication takes less time");
      ++changes;
    }
  }
  return changes;
}

// Reductions of this machine take a tenth longer than the model says.
static double predict(const tok_kernel_facts* kernel, void*) {
  return strstr(kernel->ops, "reduce") != nullptr ? 1.1 * kernel->predicted_us : -1;
}

extern "C" int tok_plugin_init(const tok_plugin_host* host, tok_plugin* plugin) {
  TOK_PLUGIN(tok = host, plugin, "reciprocal", "1.0");
  tok_pass pass = {sizeof pass, "reciprocal.pass", nullptr, TOK_ANY_TARGET, 1, run, nullptr, 0};
  tok_cost_hook hook = {sizeof hook, "reciprocal.cost", predict, nullptr};
  return host->add_pass(plugin, &pass) != 0 ? -1 : host->add_cost_hook(plugin, &hook);
}

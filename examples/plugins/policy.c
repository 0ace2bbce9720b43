/* A compiler plugin in C: a fusion policy, and an order of steps that frees memory early. */
#include <string.h>
#include <tokamak/tokamak_plugin.h>

/* Keeps random bits in a kernel of their own, and prefers kernels that store less. */
static int decide(const tok_move* move, double* weight, void* user) {
  (void)user;
  if (strstr(move->producer_ops, "threefry") != NULL) return TOK_VETO;
  if (strstr(move->scopes, "composite:my.norm") != NULL) return TOK_ACCEPT;
  if (move->saved_bytes <= 1e6) return TOK_NO_OPINION;
  *weight = 1.05;
  return TOK_WEIGHT;
}

/* First the steps that release more memory than they need. */
static double priority(const tok_ready_step* step, void* user) {
  (void)user;
  return step->released_bytes - step->result_bytes;
}

int tok_plugin_init(const tok_plugin_host* host, tok_plugin* plugin) {
  TOK_PLUGIN(host, plugin, "policy", "1.0");
  tok_fusion_policy fusion = {sizeof fusion, "policy.bytes", decide, NULL};
  tok_order_policy order = {sizeof order, "policy.memory", priority, NULL};
  if (host->add_fusion_policy(plugin, &fusion) != 0) return -1;
  return host->add_order_policy(plugin, &order);
}

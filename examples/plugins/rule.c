/* A compiler plugin in C: a rewrite rule. log(exp(x) + exp(y)) overflows for large x; the replacement
 * does not, and has one exponential less. */
#include <tokamak/tokamak_plugin.h>

static const char pattern[] =
    "HloModule pattern\n"
    "ENTRY pattern {\n"
    "  x = f32[8] parameter(0)\n"
    "  y = f32[8] parameter(1)\n"
    "  of_x = f32[8] exponential(x)\n"
    "  of_y = f32[8] exponential(y)\n"
    "  sum = f32[8] add(of_x, of_y)\n"
    "  ROOT r = f32[8] log(sum)\n"
    "}\n";

static const char replacement[] =
    "HloModule replacement\n"
    "ENTRY replacement {\n"
    "  x = f32[8] parameter(0)\n"
    "  y = f32[8] parameter(1)\n"
    "  larger = f32[8] maximum(x, y)\n"
    "  difference = f32[8] subtract(x, y)\n"
    "  distance = f32[8] abs(difference)\n"
    "  nearness = f32[8] negate(distance)\n"
    "  small = f32[8] exponential(nearness)\n"
    "  correction = f32[8] log-plus-one(small)\n"
    "  ROOT r = f32[8] add(larger, correction)\n"
    "}\n";

int tok_plugin_init(const tok_plugin_host* host, tok_plugin* plugin) {
  TOK_PLUGIN(host, plugin, "rule", "1.0");
  tok_rewrite rule = {sizeof rule, "rule.logaddexp", pattern, replacement, 1, 0, 1e-5};
  return host->add_rewrite(plugin, &rule);
}

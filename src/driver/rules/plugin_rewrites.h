#pragma once

namespace tokamak {

// Lets plugins add rewrite rules (tok_plugin_host::add_rewrite): they become rules of the process.
void UsePluginRewrites();

}  // namespace tokamak

#include <stdio.h>
#include <string.h>

#include <tokamak/c_api.h>

static const char kProgram[] =
    "HloModule m\nENTRY main {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n";

/* Whether a call failed with this error, which is freed. */
static int Failed(tok_error* error, const char* code) {
  int as_expected = error != NULL && strcmp(tok_error_code(error), code) == 0;
  tok_error_free(error);
  return as_expected;
}

/* Reads a graph, replaces y by a copy of itself, plans it; null pointers are errors. */
static int Graphs(const tok_module* module) {
  tok_graph* graph = NULL;
  tok_plan* plan = NULL;
  const tok_instruction* instr = NULL;
  const tok_computation* entry = NULL;
  const int64_t* made = NULL;
  size_t num_made = 0;
  const char* text = "";
  int64_t x, y;
  if (tok_graph_of(module, &graph) != NULL) return 0;
  x = tok_graph_find(graph, "x");
  y = tok_graph_find(graph, "y");
  int64_t operands[1] = {x};
  tok_fragment fragment = {sizeof fragment, module, operands, 1, -1};
  int fine = tok_graph_instruction(graph, y, &instr) == NULL && strcmp(instr->op, "add") == 0 &&
             instr->num_operands == 2 && instr->operands[0] == x && instr->rank == 1 &&
             tok_graph_computation(graph, tok_graph_entry(graph), &entry) == NULL &&
             entry->num_parameters == 1 && entry->root == y;
  fine = fine && tok_graph_add(graph, &fragment, &made, &num_made) == NULL && num_made == 1;
  int64_t copy = fine ? made[0] : -1;
  fine = fine && tok_graph_replace(graph, y, &copy, 1) == NULL &&
         tok_graph_text(graph, "hlo", &text) == NULL && strstr(text, "add(x, x)") != NULL;
  fine = fine && tok_graph_plan(graph, NULL, 0, &plan) == NULL && tok_plan_num_steps(plan) == 1 &&
         tok_plan_step(plan, 0)->num_instructions >= 1 && tok_plan_step(plan, 1) == NULL;
  fine = fine && Failed(tok_graph_of(NULL, &graph), "TK6117") &&
         Failed(tok_graph_replace(NULL, 0, &x, 1), "TK6117") &&
         Failed(tok_graph_replace(graph, x, NULL, 0), "TK6117") &&
         Failed(tok_graph_instruction(graph, 99, &instr), "TK6117") &&
         Failed(tok_graph_computation(graph, 99, &entry), "TK6117") &&
         Failed(tok_graph_text(graph, "text", &text), "TK6117") &&
         Failed(tok_graph_outline(graph, NULL, 0, "f", &x), "TK6117") &&
         Failed(tok_plan_why(plan, 9, NULL, NULL), "TK6117") &&
         Failed(tok_plan_json(NULL, &text), "TK6117");
  tok_plan_free(plan);
  tok_graph_free(graph);
  tok_plan_free(NULL);
  tok_graph_free(NULL);
  return fine;
}

int main(void) {
  tok_module* module = NULL;
  tok_executable* executable = NULL;
  float x[2] = {1, 2}, y[2] = {0, 0};
  int64_t dims[1] = {2};
  tok_array in = {x, sizeof x, "f32", 1, dims}, out = {y, sizeof y, "f32", 1, dims};
  tok_error* error = tok_module_read(kProgram, strlen(kProgram), "m.hlo", &module);
  if (error == NULL) error = tok_compile(module, NULL, 0, &executable);
  if (error == NULL) error = tok_executable_run(executable, &in, 1, &out, 1);
  if (error != NULL) fputs(tok_error_text(error), stderr);
  int graphs = error == NULL && Graphs(module);
  if (!graphs) fputs("a graph is not as expected\n", stderr);
  tok_executable_free(executable);
  tok_module_free(module);
  tok_error_free(error);
  return graphs && error == NULL && y[0] == 2 && y[1] == 4 ? 0 : 1;
}

#include <stdio.h>
#include <string.h>

#include <tokamak/c_api.h>

static const char kProgram[] =
    "HloModule m\nENTRY main {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n";

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
  tok_executable_free(executable);
  tok_module_free(module);
  tok_error_free(error);
  return error == NULL && y[0] == 2 && y[1] == 4 ? 0 : 1;
}

/* The C API of libtokamak.so, for the Python package (through ctypes) and for embedders. C++
 * programs include <tokamak/tokamak.h>, which is built on it.
 *
 * Every function is thread-safe. Strings are UTF-8 and null-terminated. No function throws or ends
 * the process. Structs start with their size, so that later versions can add fields: do not access
 * fields beyond struct_size.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOK_API __attribute__((visibility("default")))

/* "0.1.0". */
TOK_API const char* tok_version(void);
/* {"version": "0.1.0", "build": "...", "backends": ["interp"], "lapack": true}. Strings
 * that these functions return stay valid until the process ends. */
TOK_API const char* tok_build_info(void);
/* The devices of a new client: {"devices": [{"kind": "interp", "name": "..."}], "reason":
 * "why there are none"}. Uses the current values of TOKAMAK_DEVICE and TOKAMAK_NUM_DEVICES. */
TOK_API const char* tok_devices(void);
/* The options of jax.jit(f, compiler_options={...}):
 * [{"name": "tokamak_strict", "type": "bool", "default": "false", "meaning": "..."}]. */
TOK_API const char* tok_options(void);

/* ---- Arrays and errors ---------------------------------------------------- */

/* An array: dense, row-major, aligned to its element size. Elements narrower than 8 bits occupy a
 * byte each (signed ones sign-extended). */
typedef struct tok_array {
  void* data; /* inputs: read-only, valid during the call; outputs: to be filled */
  size_t bytes;
  const char* type; /* "f32", "bf16", "s64", "u8", "pred", "c64", "f8e4m3fn" ... (HLO names) */
  int64_t rank;
  const int64_t* dims;
} tok_array;

/* An error. Functions that can fail return NULL or an error, which the caller frees. */
typedef struct tok_error tok_error;
TOK_API const char* tok_error_code(const tok_error* error);    /* "TK5009": docs/errors */
TOK_API const char* tok_error_message(const tok_error* error); /* one line */
/* Text for people: with the location in the program, the source line, and notes. */
TOK_API const char* tok_error_text(const tok_error* error);
TOK_API int64_t tok_error_line(const tok_error* error); /* in the program's text, from 1; or 0 */
TOK_API void tok_error_free(tok_error* error);          /* NULL is allowed, as in all of them */

/* ---- Programs -------------------------------------------------------------- */

typedef struct tok_module tok_module;
/* Reads a program: StableHLO text, its bytecode, or HLO text; the format is detected from the
 * bytes. `program` is its index, from 0, in a file with several (separated by "// -----"). */
TOK_API tok_error* tok_module_read_file(const char* path, size_t program, tok_module** module);
/* Reads a program from memory, which is copied; `name` replaces the file name in errors. */
TOK_API tok_error* tok_module_read(const void* data, size_t size, const char* name,
                                   tok_module** module);
/* HLO text, valid as long as the module. */
TOK_API const char* tok_module_text(tok_module* module);
/* The compile report of `tokamak explain`. Options in addition to those of tok_compile:
 * {"json", "true"}, {"decisions", "true"}, {"lints", "true"}, {"dot", "true"}, {"kernel", "add_3"},
 * {"measure", "true"}, {"compare", "false"}, {"html", "true"}, {"trace", "true"},
 * {"target", "host" | "h200" | "host,h200"}. The text is valid until the next call with this
 * module. */
struct tok_option;
TOK_API tok_error* tok_module_explain(tok_module* module, const struct tok_option* options,
                                      size_t num_options, const char** text);
/* A side of a comparison: a program and the options of its compilation, those of
 * tok_module_explain and {"name", "before"}, the name of the side in the text. */
typedef struct tok_diff_side {
  tok_module* module;
  const struct tok_option* options;
  size_t num_options;
} tok_diff_side;
/* Compares the steps of two compilations: of two programs, or of one program with two sets of
 * options (then both sides may name one module). The options {"json", "true"} and {"html", "true"}
 * of the first side count. The text is valid until the next call with the module of `a`. */
TOK_API tok_error* tok_module_explain_diff(const tok_diff_side* a, const tok_diff_side* b,
                                           const char** text);
TOK_API void tok_module_free(tok_module* module);

/* ---- Rewrite rules -----------------------------------------------------------
 *
 * A rule replaces computations in programs that are compiled after its registration:
 * docs/extending.md. Pattern and replacement are programs with the same parameters, which are the
 * rule's variables.
 */

/* A pattern with its replacement at fixed shapes, as StableHLO (text or bytecode) or HLO text. */
typedef struct tok_rule_example {
  const void* pattern;
  size_t pattern_size;
  const void* replacement;
  size_t replacement_size;
} tok_rule_example;

/* One call of a function of a rule. */
typedef struct tok_rule_call tok_rule_call;
/* Whether the rule may replace an instance. `match` is a JSON object:
 *   {"rule": "my_gelu", "computation": "main", "results": [VALUE], "variables": [VALUE]}
 * with VALUE {"name": "x", "type": "f32", "shape": [4, 8], "op": "add", "label": "add.1",
 * "users": 2, "sources": ["train.py:12"]}. Returns 1 (yes), 0 (no), or -1 after
 * tok_rule_call_fail. */
typedef int (*tok_rule_when_fn)(tok_rule_call* call, const char* match, void* user);
/* Gives the rule for other shapes through tok_rule_call_set. `variables` is a JSON list:
 * [{"type": "f32", "shape": [4, 8]}]. Returns 1 (given), 0 (none for these shapes), or -1 after
 * tok_rule_call_fail. */
typedef int (*tok_rule_trace_fn)(tok_rule_call* call, const char* variables, void* user);
/* Receives what went wrong with the rule while a program was compiled without it. */
typedef void (*tok_rule_warn_fn)(const char* code, const char* text, void* user);

typedef struct tok_rule {
  size_t struct_size;
  const char* name;   /* letters, digits, '_', '-' and '.'; decisions are named user.NAME */
  const char* source; /* file and line for messages, "train.py:12"; may be NULL */
  int64_t priority;   /* rules with a greater one are tried first */
  int always;         /* 0: replace only what is predicted to become faster */
  /* The allowed difference |pattern - replacement| / (1 + |pattern|) of reals; < 0: a few units in
   * the last place. Integers are compared exactly. */
  double tolerance;
  int nonfinite;    /* whether the rule also holds for infinities and NaN */
  double low, high; /* range of real inputs for which the rule holds; -INFINITY, INFINITY: all */
  const tok_rule_example* examples; /* at least one; shapes should differ */
  size_t num_examples;
  tok_rule_when_fn when;   /* may be NULL */
  tok_rule_trace_fn trace; /* may be NULL: extents of the examples are then symbols */
  tok_rule_warn_fn warn;   /* may be NULL */
  void* user;
} tok_rule;

/* Called by the functions of a rule, with their `call`. Texts are copied. */
TOK_API void tok_rule_call_fail(tok_rule_call* call, const char* message);
TOK_API void tok_rule_call_set(tok_rule_call* call, const tok_rule_example* example);

/* A registered rule. */
typedef struct tok_rule_handle tok_rule_handle;
/* Verifies a rule, compares pattern and replacement on drawn inputs (TK3007 to TK3013), and applies
 * it to the programs that are compiled from now on. */
TOK_API tok_error* tok_rule_register(const tok_rule* rule, tok_rule_handle** handle);
/* Ends that; the handle stays valid for tok_rules_enter. */
TOK_API void tok_rule_remove(tok_rule_handle* handle);
/* Applies a removed rule again. */
TOK_API void tok_rule_restore(tok_rule_handle* handle);
/* Removes the rule and frees the handle. */
TOK_API void tok_rule_unregister(tok_rule_handle* handle);
/* Until tok_rules_leave, compilations of this thread use these rules and no others. Scopes may be
 * nested. */
TOK_API void tok_rules_enter(tok_rule_handle* const* handles, size_t num_handles);
TOK_API void tok_rules_leave(void);

/* ---- Compiled programs ------------------------------------------------------- */

/* An option by name (tok_options lists them) with its value as text: {"tokamak_backend", "cpu"},
 * {"tokamak_strict", "true"}. */
typedef struct tok_option {
  const char* name;
  const char* value;
} tok_option;

/* A compiled program. Threads may run it concurrently. */
typedef struct tok_executable tok_executable;
/* Does not modify the module. Uses the environment variables of docs/jax.md; options override
 * them. */
TOK_API tok_error* tok_compile(const tok_module* module, const tok_option* options,
                               size_t num_options, tok_executable** executable);
TOK_API void tok_executable_free(tok_executable* executable);

TOK_API const char* tok_executable_name(const tok_executable* executable);
TOK_API size_t tok_executable_num_parameters(const tok_executable* executable);
TOK_API size_t tok_executable_num_results(const tok_executable* executable);
/* The types of parameters and results; `data` is NULL. Valid as long as the executable. Return
 * NULL if i is out of range. */
TOK_API const tok_array* tok_executable_parameter(const tok_executable* executable, size_t i);
TOK_API const tok_array* tok_executable_result(const tok_executable* executable, size_t i);
/* {"kernels": 3, "host_steps": ["sort: has no kernel"], "temporary_bytes": 64}. */
TOK_API const char* tok_executable_info(const tok_executable* executable);

/* Runs the program and waits. Types, dimensions and sizes must match the program's; if a type is
 * NULL, neither it nor the dimensions are compared. Results must not overlap other arrays. */
TOK_API tok_error* tok_executable_run(const tok_executable* executable, const tok_array* inputs,
                                      size_t num_inputs, const tok_array* results,
                                      size_t num_results);

/* ---- Host functions --------------------------------------------------------
 *
 * A program calls a host function through a custom call to the target that it is registered as:
 *
 *   stablehlo.custom_call @tokamak_py_callback(%x) {mhlo.backend_config = {id = 7 : i64}}
 *
 * Programs that contain such a call run on a worker thread, never on the thread that launches them.
 * A function may be called by several threads concurrently, and may itself use the plugin, but must
 * not wait for a program that waits for it.
 */

typedef struct tok_host_call {
  size_t struct_size;
  const char* target;
  /* The call's attributes as a JSON object: integers, booleans, floats, strings, lists of these.
   * "{}" if it has none. */
  const char* attributes;
  /* The opaque backend_config of older calls; may contain null bytes. */
  const char* opaque;
  size_t opaque_size;
  size_t num_inputs;
  const tok_array* inputs; /* without tokens */
  size_t num_outputs;
  const tok_array* outputs; /* without tokens; zeroed before the call */
  int64_t device;           /* calling device of the program: replica * partitions + partition */
} tok_host_call;

/* Returns 0 if the outputs are filled. Otherwise the execution fails with the message passed to
 * tok_host_call_fail: the outputs of the program are poisoned, the client remains usable. */
typedef int (*tok_host_fn)(const tok_host_call* call, void* user);

/* Registers or (with fn = NULL) unregisters a function. Programs look it up at every call. Returns
 * 0, or 1 if target is null or empty. Calls in progress continue to use a function that is
 * unregistered or replaced. */
TOK_API int tok_register_host_call(const char* target, tok_host_fn fn, void* user);

/* Registers a handler of XLA's typed custom calls, version 0 (jax.ffi.register_ffi_target with
 * platform "tokamak"). Only the execute stage is called. Returns NULL, or the reason for
 * the rejection. */
TOK_API const char* tok_register_ffi_target(const char* target, void* handler);

/* Sets the error message of a call; to be used inside the function, with its `call`. The text is
 * copied. */
TOK_API void tok_host_call_fail(const tok_host_call* call, const char* message);

/* Sets a callback for programs that call `target`: (the call's attribute `id`, +1) when one is
 * compiled, (id, -1) when it is destroyed, after its last run. No lock is held during the callback.
 * Returns 0, or 1 if target is null or empty; fn = NULL removes the callback. */
typedef void (*tok_hold_fn)(int64_t id, int change, void* user);
TOK_API int tok_set_host_hold(const char* target, tok_hold_fn fn, void* user);

/* Sets the source of LAPACK's routines: fn returns the address of a routine such as "dgetrf"
 * (Fortran calling convention, 32-bit integers), or NULL. It is called when a program first needs
 * them, on that thread. Without fn, or if it lacks a routine, the system's library is opened
 * (liblapack.so.3, libopenblas.so.0). The addresses are cached. */
typedef void* (*tok_lapack_fn)(const char* name);
TOK_API void tok_set_lapack(tok_lapack_fn fn);

/* Waits until no function passed to this API is running, and prevents further calls: custom calls
 * to the host then fail with TK6103. For the shutdown of the host, such as Python's atexit. The
 * caller must not hold a lock that a running function needs. */
TOK_API void tok_stop_host_calls(void);

/* ---- Work in flight --------------------------------------------------------*/

/* Waits until no program is queued or running, or `milliseconds` have passed (< 0: no limit).
 * Returns 1 if all work is done, 0 otherwise. Call it before the shutdown of an interpreter that
 * host functions need (ctypes releases Python's GIL during the call). */
TOK_API int tok_wait_idle(int64_t milliseconds);

/* ---- Reports -----------------------------------------------------------------*/

/* Called with one JSON object per text, for what tokamak.debug() prints:
 *   {"event": "compile", "name": "jit_f", "cache": "none" | "memory" | "disk", "read_us": 1.5,
 *    "verify_us": 0.5, "prepare_us": 3.0, "instructions": 12, "parameters": 1, "results": 1}
 *   {"event": "first_run", "name": "jit_f", "run_us": 9.5}
 * Called from the threads that compile and run, without a lock held. fn = NULL removes it. */
typedef void (*tok_report_fn)(const char* json, void* user);
TOK_API void tok_set_report(tok_report_fn fn, void* user);

/* The lints of the programs that were compiled since the last call, at most 256, as a JSON list:
 *   [{"name": "jit_f", "call_us": 12.5, "lints": [{"rule": "lint.unrolled-loop", ...}]}]
 * They are kept from the first call on, as far as TOKAMAK_LINT asks for them. The text is valid
 * until the thread's next call. */
TOK_API const char* tok_take_lints(void);
/* ---- Plugins and policies ------------------------------------------------------
 *
 * docs/plugins.md. They concern all programs that are compiled after the call. */

/* Loads a compiler plugin (tokamak_plugin.h), as TOKAMAK_PLUGINS does. A plugin stays loaded;
 * loading it again has no effect. */
TOK_API tok_error* tok_load_plugin(const char* path);
/* [{"name": "mine", "version": "1.0", "path": "/home/me/mine.so", "passes": ["mine.pass"],
 *   "generators": [], "cost_hooks": [], "fusion_policies": [], "order_policies": []}] */
TOK_API const char* tok_plugins(void);

/* Adds a policy of the process itself, which is asked before all others. Its function runs on the
 * thread that compiles, perhaps on several concurrently, until the policy is removed and these
 * compilations have ended; it must not throw. *id is for tok_remove_policy. */
struct tok_fusion_policy;
struct tok_order_policy;
TOK_API tok_error* tok_add_fusion_policy(const struct tok_fusion_policy* policy, uint64_t* id);
TOK_API tok_error* tok_add_order_policy(const struct tok_order_policy* policy, uint64_t* id);
TOK_API void tok_remove_policy(uint64_t id);
/* States why the policy that this thread runs fails. The program is compiled without it. */
TOK_API void tok_policy_fail(const char* message);

#ifdef __cplusplus
}
#endif

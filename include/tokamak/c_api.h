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
/* Until tok_rules_leave, compilations of the process use these rules and no others. Scopes may be
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

/* ---- Graphs: programs to look at and to edit ----------------------------------
 *
 * A graph is a program whose instructions have numbers. Edits keep the numbers of
 * instructions that stay; a removed number is not used again. Names of instructions are unique.
 *
 * An edit verifies the whole program. If it fails, the graph stays as it was, and the error
 * (TK6117, or that of the verifier) has the position of an instruction in the program's text. A
 * graph, and a plan, may be used by one thread at a time. Texts, lists and structs that their
 * functions return are valid until the next edit of the graph or the next call of the same
 * function.
 */

typedef struct tok_graph tok_graph;
/* A graph of a copy of the module. */
TOK_API tok_error* tok_graph_of(const tok_module* module, tok_graph** graph);
/* The copy has the same numbers. */
TOK_API tok_error* tok_graph_copy(const tok_graph* graph, tok_graph** copy);
TOK_API void tok_graph_free(tok_graph* graph);
/* A copy of the program, for tok_compile. */
TOK_API tok_error* tok_graph_module(const tok_graph* graph, tok_module** module);
/* The program as text. `format`: "mlir" (StableHLO) or "hlo". */
TOK_API tok_error* tok_graph_text(tok_graph* graph, const char* format, const char** text);
/* All instructions without attributes (docs/graph_api.md). */
TOK_API tok_error* tok_graph_json(tok_graph* graph, const char** json);

/* Computations have indices, which edits may change. */
TOK_API size_t tok_graph_num_computations(const tok_graph* graph);
/* The entry computation; SIZE_MAX if the program has none. */
TOK_API size_t tok_graph_entry(const tok_graph* graph);
typedef struct tok_computation {
  size_t struct_size;
  const char* name;
  int64_t root;
  const int64_t* instructions; /* in program order */
  size_t num_instructions;
  const int64_t* parameters;
  size_t num_parameters;
} tok_computation;
TOK_API tok_error* tok_graph_computation(tok_graph* graph, size_t index,
                                         const tok_computation** computation);

typedef struct tok_instruction {
  size_t struct_size;
  int64_t number;
  const char* name;
  const char* op;    /* as in HLO: "dot" */
  const char* shape; /* "f32[2,3]"; a tuple: "(f32[2], s32[])" */
  const char* type;  /* of an array: "f32"; otherwise "" */
  const int64_t* dims;
  size_t rank;
  size_t computation;
  const int64_t* operands; /* numbers */
  size_t num_operands;
  const int64_t* users; /* numbers, each once, in ascending order */
  size_t num_users;
  const size_t* called; /* computations */
  size_t num_called;
  const char* scope; /* "jit(f)/layer/tanh", or "" */
  const char* line;  /* "train.py:12 (loss)", the first of several; or "" */
} tok_instruction;
TOK_API tok_error* tok_graph_instruction(tok_graph* graph, int64_t number,
                                         const tok_instruction** instruction);
/* The attributes as a JSON object; those of an op have their names in HLO text. */
TOK_API tok_error* tok_graph_attributes(tok_graph* graph, int64_t number, const char** json);
/* The instruction of this name; -1 if there is none. */
TOK_API int64_t tok_graph_find(const tok_graph* graph, const char* name);
/* A shortest path of dependences, both ends included; empty if there is none. It enters called
 * computations at their parameters and leaves them at their root. */
TOK_API tok_error* tok_graph_path(tok_graph* graph, int64_t from, int64_t to,
                                  const int64_t** numbers, size_t* count);

/* An instance of a pattern, by numbers. */
typedef struct tok_match {
  size_t struct_size;
  const int64_t* results; /* one per result of the pattern */
  size_t num_results;
  const int64_t* variables; /* what stands for the parameters of the pattern */
  size_t num_variables;
  const int64_t* inner; /* the other instructions of the instance; others may use them, too */
  size_t num_inner;
} tok_match;
/* Finds what computes the same as the entry of another program, by the same ops, up to the order of
 * operands of commutative ops and broadcasts of numbers. With any_shape, dimensions may differ. */
TOK_API tok_error* tok_graph_match(tok_graph* graph, const tok_module* pattern, int any_shape,
                                   const tok_match** matches, size_t* count);

/* A program to be inserted: its entry computation, applied to instructions. */
typedef struct tok_fragment {
  size_t struct_size;
  const tok_module* module;
  const int64_t* operands; /* one instruction per parameter, all of one computation */
  size_t num_operands;
  int64_t beside; /* without operands: an instruction of the computation; -1: the entry */
} tok_fragment;
/* Adds the instructions of a fragment, which nothing uses yet. `results`: the values of its root,
 * one per element of a tuple. */
TOK_API tok_error* tok_graph_add(tok_graph* graph, const tok_fragment* fragment,
                                 const int64_t** results, size_t* num_results);
/* Replaces every use of `from` by `to` and removes `from` with what only it used. The shapes must
 * be equal. Several values stand for the elements of a tuple. */
TOK_API tok_error* tok_graph_replace(tok_graph* graph, int64_t from, const int64_t* to,
                                     size_t num_to);
/* Makes users of `from` use `to` instead: these ones; or, if `users` is null, all, also the result
 * of the computation, except those that `to` depends on. */
TOK_API tok_error* tok_graph_replace_uses(tok_graph* graph, int64_t from, int64_t to,
                                          const int64_t* users, size_t num_users);
TOK_API tok_error* tok_graph_set_operand(tok_graph* graph, int64_t user, size_t index,
                                         int64_t operand);
/* Removes an instruction that nothing uses. */
TOK_API tok_error* tok_graph_remove(tok_graph* graph, int64_t number);
/* Moves instructions of one computation into a new one and replaces them by a call of it. No
 * instruction outside may lie between two of them. */
TOK_API tok_error* tok_graph_outline(tok_graph* graph, const int64_t* numbers, size_t count,
                                     const char* name, int64_t* call);
/* Replaces a call by the instructions of its computation. */
TOK_API tok_error* tok_graph_inline(tok_graph* graph, int64_t call);
/* Constrains the fusion of instructions: "never_fuse", "fuse" or "require_fused". Instructions with
 * the same label form one constraint (docs/explain.md). */
TOK_API tok_error* tok_graph_pin(tok_graph* graph, const int64_t* numbers, size_t count,
                                 const char* kind, const char* label);

/* How a graph is compiled, with the options of tok_module_explain. It does not change with the
 * graph. Steps are numbered from 0 in the order of "kernels" in the compile report. */
typedef struct tok_plan tok_plan;
TOK_API tok_error* tok_graph_plan(const tok_graph* graph, const tok_option* options,
                                  size_t num_options, tok_plan** plan);
TOK_API void tok_plan_free(tok_plan* plan);

/* A kernel, a library call, a host step or a copy. */
typedef struct tok_step {
  size_t struct_size;
  const char* name;
  const char* generator; /* "loop", "rows" ... for kernels; "horizontal", "persistent", "library",
                            "host", "copy" */
  const char* schedule;  /* or "" */
  int64_t reads_bytes, writes_bytes;
  int64_t calls;                    /* runs per call of the program; -1: data-dependent */
  double predicted_us, measured_us; /* of one run; NaN: unknown */
  const int64_t* instructions;      /* of the graph, computed by the step */
  size_t num_instructions;
} tok_step;
TOK_API size_t tok_plan_num_steps(const tok_plan* plan);
/* NULL if there is no such step. */
TOK_API const tok_step* tok_plan_step(const tok_plan* plan, size_t step);
/* The steps that compute an instruction of the graph. Returns their number. */
TOK_API size_t tok_plan_steps_of(const tok_plan* plan, int64_t number, const size_t** steps);
/* Predicted microseconds of a run of the program. */
TOK_API double tok_plan_predicted_us(const tok_plan* plan);
/* Why instructions share the step, and what keeps its neighbours apart. `text` or `json` may be
 * null. */
TOK_API tok_error* tok_plan_why(tok_plan* plan, size_t step, const char** text, const char** json);
/* Why no step computes both of two instructions, the first of which the second depends on: "" and
 * "null" if one does, or if no step computes one of them. */
TOK_API tok_error* tok_plan_boundary(tok_plan* plan, int64_t producer, int64_t consumer,
                                     const char** text, const char** json);
/* The compile report with the program after the passes, and all decisions, as JSON. */
TOK_API tok_error* tok_plan_json(tok_plan* plan, const char** json);
TOK_API tok_error* tok_plan_decisions(tok_plan* plan, const char** json);
/* Another view of the plan: the options of tok_module_explain that do not change it. */
TOK_API tok_error* tok_plan_explain(tok_plan* plan, const tok_option* options, size_t num_options,
                                    const char** text);
/* Steps that only one of two plans has. */
TOK_API tok_error* tok_plan_diff(tok_plan* plan, const tok_plan* other, const char** text,
                                 const char** json);
/* Generates the code of the plan's kernels. The target must be the processor of this process. */
TOK_API tok_error* tok_plan_compile(const tok_plan* plan, tok_executable** executable);

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

/* The C API of libtokamak.so, for the Python package (by ctypes) and for embedders. C++ programs
 * include <tokamak/tokamak.h>, which stands on it.
 *
 * Every function may be called from any thread. Texts are UTF-8 and end in 0. Nothing is thrown;
 * nothing ends the process. Structs begin with their size, so that later versions may add fields:
 * look at no field that lies behind it.
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
/* {"version": "0.1.0", "build": "...", "backends": ["interp"], "lapack": true}. Like all texts that
 * are returned here it stays where it is for ever. */
TOK_API const char* tok_build_info(void);
/* The devices that a client would have: {"devices": [{"kind": "interp", "name": "..."}], "reason":
 * "why there are none"}. Honours TOKAMAK_DEVICE and TOKAMAK_NUM_DEVICES as they are now. */
TOK_API const char* tok_devices(void);
/* The options of jax.jit(f, compiler_options={...}):
 * [{"name": "tokamak_strict", "type": "bool", "default": "false", "meaning": "..."}]. */
TOK_API const char* tok_options(void);

/* ---- Arrays and errors ---------------------------------------------------- */

/* An array: dense, row-major, elements of fewer than 8 bits taking a byte each (signed ones
 * sign-extended), aligned as its elements are. */
typedef struct tok_array {
  void* data; /* inputs: only to be read, and only during the call; outputs: to be filled */
  size_t bytes;
  const char* type; /* "f32", "bf16", "s64", "u8", "pred", "c64", "f8e4m3fn" ... as HLO has them */
  int64_t rank;
  const int64_t* dims;
} tok_array;

/* What went wrong. Functions that can fail return NULL, or one of these, which the caller frees. */
typedef struct tok_error tok_error;
TOK_API const char* tok_error_code(const tok_error* error);    /* "TK5009": docs/errors */
TOK_API const char* tok_error_message(const tok_error* error); /* one line */
/* As a person reads it: with the place in the program, the line there, and notes. */
TOK_API const char* tok_error_text(const tok_error* error);
TOK_API int64_t tok_error_line(const tok_error* error); /* in the program's text, from 1; 0: none */
TOK_API void tok_error_free(tok_error* error);          /* NULL is fine, as for all that free */

/* ---- Programs -------------------------------------------------------------- */

typedef struct tok_module tok_module;
/* Reads a program: StableHLO text, its bytecode, or HLO text, which one is seen from the bytes.
 * `program` is its number, from 0, in a file that holds several (with "// -----" between them). */
TOK_API tok_error* tok_module_read_file(const char* path, size_t program, tok_module** module);
/* The same from memory, which is copied; `name` stands for the file in errors. */
TOK_API tok_error* tok_module_read(const void* data, size_t size, const char* name,
                                   tok_module** module);
/* HLO text. It stays as long as the module. */
TOK_API const char* tok_module_text(tok_module* module);
/* What becomes of it, as `tokamak explain` tells it. Besides the options of tok_compile:
 * {"json", "true"}, {"decisions", "true"}, {"lints", "true"}, {"dot", "true"}, {"kernel", "add_3"},
 * {"measure", "true"}, {"compare", "false"}, {"target", "host" | "h200" | "host,h200"}. The text
 * stays until the next call with this module. */
struct tok_option;
TOK_API tok_error* tok_module_explain(tok_module* module, const struct tok_option* options,
                                      size_t num_options, const char** text);
TOK_API void tok_module_free(tok_module* module);

/* ---- Compiled programs ------------------------------------------------------- */

/* An option by its name (tok_options lists them) and its value as text: {"tokamak_backend", "cpu"},
 * {"tokamak_strict", "true"}. */
typedef struct tok_option {
  const char* name;
  const char* value;
} tok_option;

/* Ready to run, by any number of threads at a time. */
typedef struct tok_executable tok_executable;
/* The module is left as it is. The environment counts as in docs/jax.md; options count more. */
TOK_API tok_error* tok_compile(const tok_module* module, const tok_option* options,
                               size_t num_options, tok_executable** executable);
TOK_API void tok_executable_free(tok_executable* executable);

TOK_API const char* tok_executable_name(const tok_executable* executable);
TOK_API size_t tok_executable_num_parameters(const tok_executable* executable);
TOK_API size_t tok_executable_num_results(const tok_executable* executable);
/* What it takes and gives: `data` is NULL. Stay as long as the executable. NULL beyond the last. */
TOK_API const tok_array* tok_executable_parameter(const tok_executable* executable, size_t i);
TOK_API const tok_array* tok_executable_result(const tok_executable* executable, size_t i);
/* {"kernels": 3, "host_steps": ["sort: has no kernel"], "temporary_bytes": 64}. */
TOK_API const char* tok_executable_info(const tok_executable* executable);

/* Runs it and waits. Types, dimensions and sizes must be those that the program has; a null type
 * is not compared, nor are the dimensions then. Results overlap nothing else. */
TOK_API tok_error* tok_executable_run(const tok_executable* executable, const tok_array* inputs,
                                      size_t num_inputs, const tok_array* results,
                                      size_t num_results);

/* ---- Functions of the host ------------------------------------------------
 *
 * A program reaches a function of the host by a custom call whose target it is registered under:
 *
 *   stablehlo.custom_call @tokamak_py_callback(%x) {mhlo.backend_config = {id = 7 : i64}}
 *
 * Programs that contain such a call run on a worker thread, never on the thread that launches them.
 * A function may be called by several threads at a time, and may itself use the plugin, as long as
 * it does not wait for a program that waits for it.
 */

typedef struct tok_host_call {
  size_t struct_size;
  const char* target;
  /* The call's attributes as a JSON object: integers, booleans, floats, strings, lists of these.
   * "{}" when it has none. */
  const char* attributes;
  /* The opaque backend_config of older calls; may hold zeros. */
  const char* opaque;
  size_t opaque_size;
  size_t num_inputs;
  const tok_array* inputs; /* tokens left out */
  size_t num_outputs;
  const tok_array* outputs; /* tokens left out; filled with zeros before the call */
  int64_t device;           /* which device of the program asks: replica * partitions + partition */
} tok_host_call;

/* 0: the outputs are filled. Else the execution fails with the message given by
 * tok_host_call_fail; the outputs of the program are poisoned, the client goes on. */
typedef int (*tok_host_fn)(const tok_host_call* call, void* user);

/* Registers or (with fn = NULL) takes away a function. Programs look it up at every call. Returns
 * 0, or 1 when target is null or empty. After it was taken away, or replaced, calls that are
 * running still use it. */
TOK_API int tok_register_host_call(const char* target, tok_host_fn fn, void* user);

/* Registers a handler of XLA's typed custom calls, version 0 (jax.ffi.register_ffi_target with
 * platform "tokamak"). Only the execute stage is called. Returns NULL, or why it is not taken: a
 * text that stays. */
TOK_API const char* tok_register_ffi_target(const char* target, void* handler);

/* Says why a call failed; for use inside of the function, with its `call`. The text is copied. */
TOK_API void tok_host_call_fail(const tok_host_call* call, const char* message);

/* Told of the programs that call `target`: (the call's attribute `id`, +1) when one was compiled,
 * (id, -1) when it is gone, after its last run. Not while a lock is held. Returns 0, or 1 when
 * target is null or empty; fn = NULL ends it. */
typedef void (*tok_hold_fn)(int64_t id, int change, void* user);
TOK_API int tok_set_host_hold(const char* target, tok_hold_fn fn, void* user);

/* Where LAPACK's routines are to be had: fn gives the address of one such as "dgetrf" (arguments as
 * in Fortran, 32-bit integers), or NULL. It is called when a program first needs them, by the
 * thread that does. Without it, or when it lacks one, the machine's library is opened
 * (liblapack.so.3, libopenblas.so.0). What was found stays. */
typedef void* (*tok_lapack_fn)(const char* name);
TOK_API void tok_set_lapack(tok_lapack_fn fn);

/* When it returns, no function given to this API is running and none will be called: custom calls
 * to the host fail with TK6103. For the end of the host, such as Python's atexit; waits for those
 * that run now, so the caller may not hold a lock that they need. */
TOK_API void tok_stop_host_calls(void);

/* ---- Work in flight --------------------------------------------------------*/

/* Waits until no program is queued or running, or `milliseconds` have passed (< 0: any time). 1
 * when all is done, 0 when not. To be called before an interpreter that host functions need goes
 * away (ctypes lets go of Python's lock during the call). */
TOK_API int tok_wait_idle(int64_t milliseconds);

/* ---- Reports -----------------------------------------------------------------*/

/* Called with one JSON object per text, for what tokamak.debug() prints:
 *   {"event": "compile", "name": "jit_f", "cache": "none" | "memory" | "disk", "read_us": 1.5,
 *    "verify_us": 0.5, "prepare_us": 3.0, "instructions": 12, "parameters": 1, "results": 1}
 *   {"event": "first_run", "name": "jit_f", "run_us": 9.5}
 * Called from the threads that compile and run; not while a lock is held. fn = NULL ends it. */
typedef void (*tok_report_fn)(const char* json, void* user);
TOK_API void tok_set_report(tok_report_fn fn, void* user);

#ifdef __cplusplus
}
#endif

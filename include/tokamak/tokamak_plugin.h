/* Compiler plugins: shared libraries with passes, rewrite rules, kernel generators, a cost hook,
 * and policies for fusion and for the order of steps. docs/plugins.md is the manual.
 *
 * A plugin exports one function, tok_plugin_init. It links against nothing of Tokamak: everything
 * goes through the table that it receives. In C or C++:
 *
 *   #include <tokamak/tokamak_plugin.h>
 *   static const tok_plugin_host* tok;
 *   static int run(tok_graph* graph, void* user) { ... return number_of_changes; }
 *   int tok_plugin_init(const tok_plugin_host* host, tok_plugin* plugin) {
 *     tok = host;
 *     TOK_PLUGIN(host, plugin, "mine", "1.0");
 *     tok_pass pass = {sizeof pass, "mine.pass", NULL, TOK_ANY_TARGET, 0, run, NULL, 0};
 *     return host->add_pass(plugin, &pass);
 *   }
 *
 *   c++ -shared -fPIC -I$PREFIX/include mine.cc -o mine.so
 *   tokamak run model.mlir --seed 1 --plugin ./mine.so
 *
 * Compatible growth: later versions only append members to the structs. Each starts with its size.
 * The host reads no member beyond the size that a plugin states; a plugin that uses a member that
 * was added later first compares host->struct_size (TOK_HAS). TOK_PLUGIN_ABI changes only with a
 * change that is not compatible, and then the plugin is rejected.
 *
 * Callbacks run on a thread of their own, one at a time per compilation. Texts and objects that the
 * host returns are valid until the callback returns, unless stated otherwise. A callback that
 * crashes, throws, fails or exceeds its time limit is left out of the compilation, which goes on
 * with the program as it was before. With --strict-plugins it is an error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOK_PLUGIN_ABI 1

/* Kinds of targets, as bits. */
#define TOK_ANY_TARGET 0u
#define TOK_CPU 1u
#define TOK_GPU 2u

/* The program during a pass. Its computations and instructions are as in HLO. */
typedef struct tok_graph tok_graph;
typedef struct tok_computation tok_computation;
typedef struct tok_instr tok_instr;

/* ---- what a plugin registers -------------------------------------------------------------- */

/* A pass. `run` returns the number of its changes, or -1 after host->fail. */
typedef struct tok_pass {
  size_t struct_size;
  const char* name;  /* letters, digits, '.', '-', '_'; unique among all plugins */
  const char* after; /* the pass of `tokamak opt --list` that it follows; NULL: dce, before the
                        program is simplified. In a repeated group, it follows the group. */
  uint32_t targets;  /* TOK_CPU | TOK_GPU; TOK_ANY_TARGET */
  int32_t may_round; /* not 0: values may change by rounding. It does not run with --strict, and
                        --check-plugins compares with the tolerance of `run --expect`. */
  int (*run)(tok_graph* graph, void* user);
  void* user;
  uint32_t limit_ms; /* time limit of a run in milliseconds of processor time; 0: 10 s */
} tok_pass;

/* A rewrite rule: two programs with the same parameters and results, as text in any format that
 * Tokamak reads. Occurrences of the body of `pattern` are replaced by that of `replacement`, as for
 * rules in Python (docs/extending.md). Both are compared on drawn inputs when it is added. */
typedef struct tok_rewrite {
  size_t struct_size;
  const char* name;
  const char* pattern;
  const char* replacement;
  int32_t always;   /* 0: only where the cost model predicts that it takes less time */
  int32_t priority; /* rules with a greater one are tried first */
  double tolerance; /* of reals: |pattern - replacement| <= tolerance * (1 + |pattern|); 0: a few
                       units in the last place */
} tok_rewrite;

/* A region that the planner considers as one kernel. Texts may be NULL if unknown. */
typedef struct tok_region {
  size_t struct_size;
  const char* ops;       /* of its instructions, separated by commas: "multiply,reduce" */
  const char* hlo;       /* the region as a program: parameters are the arrays that it reads */
  const char* arguments; /* the arguments of the kernel in kernel IR, one per line, as the kernel
                            must declare them: "argument x: f32[4096] read align 64" */
  const char* kernel;    /* the kernel that Tokamak would build, as kernel IR; NULL: none */
  double kernel_us;      /* its predicted cost; 0 if there is none */
  const char* schedule;  /* its schedule: "loop threads=256 ..."; NULL: none */
  uint32_t target;       /* TOK_CPU or TOK_GPU */
  int32_t cores;         /* cores of a CPU, SMs of a GPU */
  int32_t vector_bits;   /* width of a vector register of a CPU */
} tok_region;

/* A generator: returns kernel IR for a region (docs/kernel_ir.md), or NULL to decline. The text
 * must stay valid until the next call. The kernel is parsed and verified, and chosen if its
 * predicted cost is lower than that of Tokamak's own kernel. */
typedef struct tok_generator {
  size_t struct_size;
  const char* name;
  uint32_t targets;
  const char* (*build)(const tok_region* region, void* user);
  void* user;
} tok_generator;

/* A kernel and what is known of it, for the cost hook. */
typedef struct tok_kernel_facts {
  size_t struct_size;
  const char* name;      /* of the kernel; "probe" for one that is only considered */
  const char* generator; /* "loop", "rows", "contract" ... */
  const char* ops;       /* of its instructions, separated by commas: "multiply,reduce" */
  uint32_t target;
  double predicted_us; /* by Tokamak's model, with the launch */
  double launch_us, memory_us, compute_us;
  double read_bytes, written_bytes; /* of arrays, each element once */
  double tasks;                     /* thread blocks of a GPU, jobs of a CPU */
  double threads;                   /* per thread block; 1 on a CPU */
  double registers;                 /* live registers per thread; vector registers on a CPU */
  double shared_bytes;              /* per thread block */
  double multiply_adds;             /* of products, on any pipe */
} tok_kernel_facts;

/* Predicts the microseconds of a kernel, to correct or replace the model. A negative number or NaN
 * keeps the model's. Equal kernels must get equal costs. */
typedef struct tok_cost_hook {
  size_t struct_size;
  const char* name;
  double (*predict)(const tok_kernel_facts* kernel, void* user);
  void* user;
} tok_cost_hook;

/* A move of the fusion planner: it puts other instructions into one kernel. Costs are the
 * planner's estimates for the kernels that the move replaces and for those that replace them. */
typedef struct tok_move {
  size_t struct_size;
  const char* rule;       /* "fusion.vertical", "fusion.merge" ...: docs/fusion.md */
  const char* subject;    /* the name of the value that the move is about */
  const char* other;      /* the name of a second value, usually the result of the consumer */
  const char* subject_op; /* "exponential" */
  const char* other_op;
  const char* shape; /* of the subject: "f32[64,1024]" */
  const char*
      producer_ops; /* ops of the kernel that computes the subject: "multiply,exponential" */
  const char* consumer_ops; /* ops of the other kernels that the move replaces */
  const char* names;        /* names of all instructions of these kernels, separated by commas */
  const char* sources;      /* their source lines: "train.py:12,train.py:14" */
  const char* scopes;       /* their scopes, separated by commas: "jit(f)/norm/mul". The ops of a
                               composite have "composite:NAME" in it. */
  double before_us, after_us;
  double saved_bytes; /* memory traffic that the move saves; negative: adds */
  int32_t kernels_before, kernels_after;
  double registers;     /* of the largest kernel after it, live registers per thread; 0: unknown */
  int32_t instructions; /* of the largest kernel after it */
} tok_move;

/* Answers of a fusion policy. */
#define TOK_NO_OPINION 0
#define TOK_ACCEPT 1 /* make the move whatever it costs, if it is legal */
#define TOK_VETO 2   /* never make it */
#define TOK_WEIGHT 3 /* *weight times as attractive: the cost after the move is divided by it */
#define TOK_POLICY_FAILED (-1)

/* Accepts, vetoes or weighs moves. The first policy with an opinion decides. Fusion constraints of
 * the user (tokamak.fuse, never_fuse, require_fused) precede all policies. */
typedef struct tok_fusion_policy {
  size_t struct_size;
  const char* name;
  int (*decide)(const tok_move* move, double* weight, void* user);
  void* user;
} tok_fusion_policy;

/* A step that could run next. */
typedef struct tok_ready_step {
  size_t struct_size;
  const char* name;    /* of the kernel or instruction */
  const char* ops;     /* "multiply,reduce"; the op of a step that is no kernel */
  const char* kind;    /* "kernel", "library", "loop", "conditional", "host" or "alias" */
  const char* sources; /* source lines */
  const char* scopes;
  double result_bytes;   /* memory that its results need */
  double released_bytes; /* arrays that only it still has to read */
  int32_t position;      /* in the order without a policy */
  int32_t ready;         /* number of steps that could run next */
} tok_ready_step;

/* Orders steps: of those that could run next, the one with the highest priority is first, and among
 * equal ones the one that would be first without the policy. NaN: no opinion, which is 0. A program
 * has one stream of steps; placing steps on several streams is not supported. */
typedef struct tok_order_policy {
  size_t struct_size;
  const char* name;
  double (*priority)(const tok_ready_step* step, void* user);
  void* user;
} tok_order_policy;

/* ---- the plugin, filled by tok_plugin_init -------------------------------------------------- */

typedef struct tok_plugin {
  size_t struct_size; /* set by the host */
  uint32_t abi;       /* TOK_PLUGIN_ABI */
  const char* name;   /* letters, digits, '.', '-', '_'; unique in a process */
  const char* version;
  void* host_data; /* of the host */
} tok_plugin;

/* ---- the host: functions that a plugin may call --------------------------------------------- */

typedef struct tok_plugin_host {
  size_t struct_size;
  uint32_t abi;
  const char* version; /* of Tokamak: "0.1.0" */

  /* Registration, in tok_plugin_init only. Return 0, or -1 with an error that the host reports. The
   * structs and their texts are copied. */
  int (*add_pass)(tok_plugin* plugin, const tok_pass* pass);
  int (*add_rewrite)(tok_plugin* plugin, const tok_rewrite* rule);
  int (*add_generator)(tok_plugin* plugin, const tok_generator* generator);
  int (*add_cost_hook)(tok_plugin* plugin, const tok_cost_hook* hook);
  int (*add_fusion_policy)(tok_plugin* plugin, const tok_fusion_policy* policy);
  int (*add_order_policy)(tok_plugin* plugin, const tok_order_policy* policy);

  /* States why the running callback, or tok_plugin_init, fails. Returns -1, to be returned. */
  int (*fail)(const char* message);

  /* The program. Index out of range: NULL. */
  tok_computation* (*entry)(tok_graph* graph);
  size_t (*computation_count)(tok_graph* graph);
  tok_computation* (*computation)(tok_graph* graph, size_t i);
  const char* (*computation_name)(tok_computation* computation);
  /* Instructions in topological order, when the pass began or after the last `refresh`. */
  size_t (*instr_count)(tok_computation* computation);
  tok_instr* (*instr)(tok_computation* computation, size_t i);
  tok_instr* (*root)(tok_computation* computation);

  /* An instruction. */
  const char* (*op)(const tok_instr* instr); /* "add", "dot", "composite" ... */
  const char* (*name)(const tok_instr* instr);
  const char* (*shape)(const tok_instr* instr); /* "f32[4,8]", "(f32[4], s32[])" */
  const char* (*type)(const tok_instr* instr);  /* "f32"; "" for a tuple */
  size_t (*rank)(const tok_instr* instr);
  const int64_t* (*dims)(const tok_instr* instr);
  size_t (*operand_count)(const tok_instr* instr);
  tok_instr* (*operand)(const tok_instr* instr, size_t i);
  size_t (*user_count)(const tok_instr* instr); /* one per use */
  tok_instr* (*user)(const tok_instr* instr, size_t i);
  tok_computation* (*called)(const tok_instr* instr, size_t i);
  tok_computation* (*parent)(const tok_instr* instr);
  /* The value of an attribute as HLO writes it: attribute(i, "dimensions") is "{0,1}". NULL: none.
   * "name" of a composite is its name; "direction" of a compare is "LT". */
  const char* (*attribute)(const tok_instr* instr, const char* key);
  /* 1 if every element is the same constant, which is stored in *number (broadcasts, reshapes and
   * conversions of a constant included). */
  int (*number)(const tok_instr* instr, double* number);
  const char* (*source)(const tok_instr* instr); /* "train.py:12"; "" if unknown */
  const char* (*scope)(const tok_instr* instr);  /* "jit(f)/norm/mul"; "" if unknown */

  /* Adds instructions beside `like`, whose origins they get, and returns the last one, or NULL
   * after host->fail. `hlo` is one instruction per line, as in HLO text: "s = @0 add($0, $1)". $0,
   * $1 ... are the operands, @0, @1 ... their shapes, @ the shape of `like`. The last line may
   * leave out its name. Or a program ("HloModule ..." or StableHLO), whose parameters are the
   * operands. */
  tok_instr* (*build)(tok_instr* like, const char* hlo, tok_instr* const* operands, size_t count);
  /* Replaces all uses of `from`, also as the root, by `to`, which must have the same shape. Returns
   * 0, or -1 after host->fail. Instructions without uses are removed after the pass. */
  int (*replace)(tok_instr* from, tok_instr* to);
  /* Records a change in the decisions of `tokamak explain`: `rule` is "mine.swish". */
  void (*note)(const tok_instr* instr, const char* rule, const char* because);
  /* Lists the instructions of a computation again. */
  void (*refresh)(tok_computation* computation);

  /* The whole program as text: "hlo" or "stablehlo". Replaces the program by one in either format;
   * all instructions and computations become invalid. Returns 0, or -1 after host->fail. */
  const char* (*text)(tok_graph* graph, const char* format);
  int (*set_text)(tok_graph* graph, const char* text);
} tok_plugin_host;

/* Whether the host has this function, for those that were added after version 1 of the header. */
#define TOK_HAS(host, member) \
  ((host)->struct_size >= offsetof(tok_plugin_host, member) + sizeof((host)->member))

/* The first statement of tok_plugin_init: states what the plugin is, and leaves if the host has
 * another interface. */
#define TOK_PLUGIN(host, plugin, its_name, its_version) \
  do {                                                  \
    (plugin)->abi = TOK_PLUGIN_ABI;                     \
    if ((host)->abi != TOK_PLUGIN_ABI) return -1;       \
    (plugin)->name = (its_name);                        \
    (plugin)->version = (its_version);                  \
  } while (0)

/* Called once, when the plugin is loaded. Returns 0, or -1 after host->fail. */
__attribute__((visibility("default"))) int tok_plugin_init(const tok_plugin_host* host,
                                                           tok_plugin* plugin);

#ifdef __cplusplus
}
#endif

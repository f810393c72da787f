/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRADEWIND_H
#define TRADEWIND_H

/*
 * The engine of tradewind for a program that has its own training loop: the program's thread is the compute
 * thread of one peer. C11; used through ctypes by the Python package.
 * Life of a peer: tw_open, tw_start, then again and again tw_next and tw_done, tw_close.
 *   tw_next returns TW_GRADIENT    the program computes the gradient of order.samples samples and hands it in
 *                                  with tw_done (or gives the order back with tw_drop)
 *   tw_next returns TW_FINISHED    the run is over, or this peer has left
 *
 * Threads. The engine's sockets and timers run on a thread of the library. Everything that reads or writes
 * the model runs inside tw_next and tw_done, on the thread that calls them, and so do all callbacks. This has
 * to be one thread, from tw_start on; tw_leave, _end_run, _heed, _signal, _busy, _view and _events: any.
 *
 * Units. Vectors are float32. Counts are values or samples, never bytes. Times are milliseconds.
 * Errors. A negative status; tw_last_error() has a sentence for people. Nothing throws or exits. UTF-8.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_API __attribute__((visibility("default")))

/* Changes whenever this file or tradewind_data.h changes in a way that a caller notices. */
#define TW_ABI 16

enum tw_status {
  TW_OK = 0,
  TW_GRADIENT = 1,   /* tw_next: an order is due */
  TW_TIMEOUT = 2,    /* tw_next: the limit passed first */
  TW_FINISHED = 3,   /* tw_next: the run is over, or this peer has left */
  TW_STALE = 4,      /* tw_done: the order was given to others meanwhile; nothing was added */
  TW_FAILED = -1,    /* the peer cannot go on */
  TW_MISUSE = -2,    /* an argument, or the order of calls, is wrong; nothing has changed */
  TW_CALLBACK = -3,  /* a callback returned other than 0; the peer cannot go on */
  TW_CONDEMNED = -4, /* tw_start: this machine has a notice, so the peer did not join */
};

/* The calling thread's last error, until its next call (never null). TW_ABI of the library; its version. */
TW_API const char* tw_last_error(void);
TW_API uint32_t tw_abi(void);
TW_API const char* tw_version(void);
typedef struct tw_peer tw_peer;

/* ---- the model */
/* A setting of the run file ("training.rounds", or "rounds") or of the peer ("listen"), as text; "join" may
 * be repeated; "run_file" is the file. What is not given comes from the environment of `tw run`:
 * TRADEWIND_WAIT_FOR, ...; TRADEWIND_SET (KEY=VALUE;...), TRADEWIND_RUN. */
typedef struct {
  const char* key;
  const char* value;
} tw_setting;

/* All settings as these, the environment and the run file make them: a JSON list of objects of texts: key,
 * value, default, expected (what may stand there), meaning, variable. Null: one is wrong. Any thread. */
TW_API char* tw_settings(const tw_setting* given, size_t count);

enum tw_kind {
  TW_SGD = 0,
  TW_ADAM = 1,
  TW_ADAMW = 2,
  TW_LAMB = 3,
  TW_AVERAGE = 4, /* parameters += mean */
  TW_CALLER = 5,  /* the program's own optimizer, through tw_calls.update; all groups or none */
  TW_UPDATES = 6, /* the first group, or none: one tensor, a value for each tensor of the other groups but
                     TW_AVERAGE. It counts their updates, from the initial value on. Its gradient: 1 for a
                     tensor that has one, else 0. One without any in a whole round is left alone. */
  TW_MOVING = 7,  /* running statistics: a pass adds momentum x (its own - value). Gradient: what a pass adds;
                     in TW_UPDATES, which these groups need, passes / samples. A round adds mean x
                     min(63/64, 1 - (1 - momentum)^passes) / momentum, or the mean for one pass. */
};

enum tw_flag { TW_NESTEROV = 1 };

/* Parameters that one rule updates: the next `tensors` of the model; none are allowed, too. */
typedef struct {
  uint64_t tensors;
  double learning_rate, weight_decay;
  double momentum;              /* sgd; moving averages: 0 to 1, 0: the mean over all passes of the run */
  double beta1, beta2, epsilon; /* adam, adamw, lamb */
  uint32_t kind, flags;         /* tw_kind, tw_flag */
} tw_group;

/* The model is one flat vector: all tensors one after the other, in the order of the groups. */
typedef struct {
  const tw_group* groups;
  size_t group_count;
  const uint64_t* tensor_sizes; /* values, 2^48 together; as many as all groups have tensors */
  size_t tensor_count;
  const uint64_t* state_sizes; /* values of each further vector: state of the program's own (tw_vector) */
  size_t state_count;
  double clip_norm;   /* L2 norm to which the mean gradient is clipped; 0: not */
  const char* layout; /* any text; peers with another one are refused. docs/cpp.md: lines that name tensors */
} tw_model;

/* What the values from `first` on take in an update: whole tensors that have a gradient (docs/cpp.md). */
typedef struct {
  uint64_t first, count;
  uint32_t kind, flags;
  float learning_rate, weight_decay, momentum, shrink;
  float beta1, one_minus_beta1, beta2, one_minus_beta2, correction1, root_correction2, epsilon;
} tw_step;

/* Called only inside tw_next, on its thread; warn also inside tw_start and tw_close. Those with a result
 * return 0, or another value to end the peer: tw_next then returns TW_CALLBACK. Null: no callback. */
typedef struct {
  void* user;
  /* Before the update of this round (counted from 1): may change rates and other settings in `groups`; one
   * that tw_open would refuse ends the peer, without the update. wanted: the tw_gradient.settings of one peer
   * of the round, the same text on all peers; empty: as in the round before. */
  int (*settings)(void* user, uint64_t round, const char* wanted, tw_group* groups, size_t count);

  /* The update where the program has the parameters, on a device for example: by a rule of its own
   * (TW_CALLER) or with the engine's bits (docs/cpp.md). mean: per sample, clipped, of all `count` values, in
   * the same memory each time. tw_vector has the result when `save` returns. Null: the engine updates. */
  int (*update)(void* user, uint64_t round, const float* mean, uint64_t count, const tw_step* steps,
                size_t n);

  /* Parameters and state are those after this round: restored is 0 after an update, 1 when they came from
   * other peers or a checkpoint, and at the beginning. */
  int (*load)(void* user, uint64_t round, int restored);

  /* Parameters and state are about to be read: time to write to vectors. all 0: the parameters alone. */
  int (*save)(void* user, uint32_t all);

  /* One sentence for the user, once: what was promised does not work (a checkpoint, notices, the budget), or
   * works again. The same texts are events of the phase "warn" (tw_events). Null: they go to stderr. */
  void (*warn)(void* user, const char* text);

  /* Adds to `sum`, of the round's tw_fragment, what was computed since the last call, and begins at zero: so
   * gradients can stay on a device. Modes local and streaming need it: samples x (own parameters when the
   * change began - now); groups are the outer step. Called before `load` and in tw_busy. Null: as tw_done. */
  int (*contribution)(void* user, uint64_t round, float* sum, uint64_t count);
} tw_calls;

enum tw_dtype { TW_FLOAT32 = 0, TW_FLOAT16 = 1, TW_BFLOAT16 = 2 };

/* Values in host memory, one after the other. */
typedef struct {
  const void* data;         /* null: zeros */
  uint64_t count;           /* values */
  uint32_t dtype, reserved; /* tw_dtype; 0 */
} tw_tensor;

/* Checks all settings, and opens nothing. Everything given is copied. TW_MISUSE names the setting. */
TW_API int tw_open(const tw_setting* settings, size_t count, const tw_model* model, const tw_calls* calls,
                   tw_peer** peer);

/* Listens, and joins or starts the run. initial: as many tensors as the model has, float32 or not, finite:
 * the initial parameters if this peer founds the run. The thread that calls this is the compute thread. */
TW_API int tw_start(tw_peer* peer, const tw_tensor* initial, size_t count);

/* ---- work */
typedef struct {
  uint64_t round;   /* of the order, counted from 1 */
  uint64_t samples; /* most samples that may be handed in for it */
  uint64_t first;   /* number of the first one in the run; they need not be consecutive (tw_samples) */
} tw_order;

/* Does the engine's jobs until the gradient of an order is due (again the same one, until tw_done or
 * tw_drop), the run is over, or limit_ms have passed. order: only written with TW_GRADIENT. */
TW_API int tw_next(tw_peer* peer, uint32_t limit_ms, tw_order* order);

typedef struct {
  uint64_t size;  /* samples, 1 to 2^62 */
  uint64_t block; /* this many consecutive ones stay together, 1 to size; 1: none do */
  uint64_t begun; /* samples that a run had which this one goes on from, 0 to 2^62: the order goes on, too */
} tw_dataset;

/* Indices of the order's first `count` samples, each once an epoch over all peers. One data set a run. */
TW_API int tw_samples(tw_peer* peer, const tw_dataset* data, int64_t* indices, size_t count);
/* Indices of samples leased to this peer beside those of the order in hand, mostly in the order in which they
 * will come: time to load them. *count: room, then the number written. They may still move to others. */
TW_API int tw_ahead(tw_peer* peer, const tw_dataset* data, int64_t* indices, size_t* count);
/* The part of the vector that this round averages: all but with training.fragments. */
TW_API int tw_fragment(tw_peer* peer, uint64_t round, uint64_t* first, uint64_t* count);

typedef struct {
  const tw_tensor* gradients; /* as many as the model has tensors; null with tw_calls.contribution */
  size_t gradient_count;
  double weight;        /* each gradient is multiplied by it: `samples` for a mean, 1 for a sum */
  uint64_t samples;     /* of the order that they are of: 1 to order.samples; the rest stays with this peer */
  uint64_t had;         /* samples that the program had at once: the next orders have as many, if possible */
  double loss_sum;      /* over these samples, for logs; NaN: not known */
  const char* settings; /* wanted for the update (tw_calls.settings), 4000 bytes at most; null: as before */
} tw_gradient;

/* Adds the gradient to the sum of the order's round. It has no effect if that round was decided meanwhile:
 * its samples are then in no sum, and are leased again. TW_MISUSE, too: a value or weight is not finite. */
TW_API int tw_done(tw_peer* peer, const tw_gradient* gradient);
TW_API int tw_drop(tw_peer* peer);                   /* Gives the order back: another peer may get it. */
TW_API int tw_waited(tw_peer* peer, double seconds); /* For logs: for data, since tw_done; adds up. */

/* For logs: what was measured after this round, 0 to the last. name: 64 bytes, no line end; value: finite. */
TW_API int tw_evaluated(tw_peer* peer, uint64_t round, const char* name, double value);
/* In `load`: the state is of a run that goes on from so many rounds, not those of the setting "begun". */
TW_API int tw_begun(tw_peer* peer, uint64_t rounds);
/* The program is busy (an evaluation): no orders, others do its part. Null: it is back. On the thread of
 * tw_next it calls `save`: peers that join meanwhile get the state as it is now. */
TW_API int tw_busy(tw_peer* peer, const char* why);
/* Waits until all live peers of the run have called it as often, limit_ms at most; TW_TIMEOUT: call it again.
 * A peer that leaves or dies is not waited for. tw_view has in "waiting" who is. Meanwhile this peer has no
 * orders (one in hand is given back), and its parameters follow the run. TW_FINISHED: as tw_next. */
TW_API int tw_barrier(tw_peer* peer, uint32_t limit_ms);

/* ---- memory */
typedef struct tw_memory tw_memory;
/* A vector of the peer: 0 the parameters, in pages of their own as the mean is; then the engine's optimizer
 * buffers, group after group (sgd: velocity; adam, adamw, lamb: both moments); then those of state_sizes. It
 * never moves, and lives until tw_release and tw_close were both called. *count: values. Null: none such. */
TW_API tw_memory* tw_vector(tw_peer* peer, uint32_t which, float** data, uint64_t* count);
TW_API void tw_release(tw_memory* memory);

/* ---- views; the caller frees texts with tw_free */
/* One JSON object: round, samples, peers, leader, waiting, finished, ended (in words), ending (empty,
 * complete, notice, interrupted, left, lost, failed), failure, address, watch (of the page), member, unsaved
 * (why a due checkpoint is missing), differs (whose parameters do at the end), loss (of the newest batch). */
TW_API char* tw_view(tw_peer* peer);
/* One JSON object a line: the events since the last call (docs/events.md), the oldest dropped beyond 4096. */
TW_API char* tw_events(tw_peer* peer);
TW_API void tw_free(char* text);

/* ---- the end */
/* Leaves after the round, with its work; at_once 1: now; 2: as tw_close; 3: tw_close comes, first as 0: the
 * last peer of a run saves a checkpoint then. tw_next then returns TW_FINISHED. */
TW_API int tw_leave(tw_peer* peer, int at_once);
/* The run ends for all its peers, with the round under way or the next one: go on until TW_FINISHED. */
TW_API int tw_end_run(tw_peer* peer);
/* A signal arrived at the program. SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are notices: the peer leaves within
 * the setting "grace"; SIGTERM a second after the first one, and SIGINT twice, end it at once. tw_heed, best
 * before tw_start: the peer learns of it by itself, also in a long call of the program, and the present
 * handler is called then (its tw_signal has no effect). A later one replaces both. Ignored SIGHUP stays. */
TW_API int tw_signal(tw_peer* peer, int signal);
TW_API int tw_heed(tw_peer* peer, int signal);
/* Leaves the others (3 s at most, and while a checkpoint is saved or copied, which a notice ends) and frees
 * the peer. Null: no effect. */
TW_API void tw_close(tw_peer* peer);
/* In a fork's child: closes the sockets without telling the others. With open peers all calls fail then. */
TW_API void tw_after_fork(void);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A small training program: one peer that fits a line through fixed points, y = w x + 0.5 with w_i = i / 8.
 *
 *   toy [--batch N] [--work-ms MS] [--burn-ms MS] [--data-ms MS] [--values N] [KEY=VALUE ...]
 *
 * KEY=VALUE are settings of the engine (tw_setting); the rest of them come from TRADEWIND_*. Samples are
 * those of tw_samples, so any number of peers computes what one computes. The vector has --values values: w,
 * the constant, and pads, whose gradient is 1 at each point. A pad so tells the number of rounds, and the
 * program fails when it does not: some mean lacked samples or had them twice. --work-ms sleeps for each
 * gradient, --burn-ms computes, --data-ms waits for data and says so. The last line on stdout has w and the
 * constant. Exit code: 0 complete, 75 after a notice, 130 after SIGINT, 1 failed, 2 wrong usage or nothing is
 * left.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tradewind.h"

enum { kInputs = 8, kPoints = 4096, kMostSettings = 64 };

/* Of a mean, relative: weights such as 1/15360 round. A contribution that is missing costs a thousand times
 * as much. */
static const float kRounding = 2e-6F;

/* A power of two, so that the sum of all steps of a pad is nearly exact. */
static const float kRate = 0.125F;

enum { kFailed = 1, kWrongOrLost = 2, kGoesOn = 75, kInterrupted = 130 };

struct options {
  uint64_t batch, work_ms, burn_ms, data_ms, values;
  tw_setting settings[kMostSettings];
  size_t count;
};

static int complain(const char* what) {
  fprintf(stderr, "toy: %s\n", what);
  return kWrongOrLost;
}

/* A number from -1 to 1 for each input of each point: the same on every machine. */
static float input_of(uint64_t point, int i) {
  uint64_t mixed = (point * kInputs + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u;
  return (float)(mixed >> 40) / (float)(1 << 23) - 1;
}

/* Adds the gradient of (w x + b - y)^2 / 2 at one point; returns the loss. */
static double add_gradient(const float* w, uint64_t point, float* gradient) {
  float error = w[kInputs] - 0.5F;
  for (int i = 0; i < kInputs; ++i) error += (w[i] - (float)i / 8) * input_of(point, i);
  for (int i = 0; i < kInputs; ++i) gradient[i] += error * input_of(point, i);
  gradient[kInputs] += error;
  return error * error / 2;
}

static int read_words(int count, char** words, struct options* o) {
  for (int i = 1; i < count; ++i) {
    uint64_t* const number = !strcmp(words[i], "--batch")     ? &o->batch
                             : !strcmp(words[i], "--work-ms") ? &o->work_ms
                             : !strcmp(words[i], "--burn-ms") ? &o->burn_ms
                             : !strcmp(words[i], "--data-ms") ? &o->data_ms
                             : !strcmp(words[i], "--values")  ? &o->values
                                                              : NULL;
    char* const equals = strchr(words[i], '=');
    if (number != NULL && i + 1 < count) {
      *number = strtoull(words[++i], NULL, 10);
    } else if (equals != NULL && o->count < kMostSettings) {
      *equals = '\0';
      /* A later word takes the place of an earlier one; addresses to join add up. */
      size_t at = strcmp(words[i], "join") == 0 ? o->count : 0;
      while (at < o->count && strcmp(o->settings[at].key, words[i]) != 0) ++at;
      o->settings[at] = (tw_setting){words[i], equals + 1};
      if (at == o->count) ++o->count;
    } else {
      return complain(words[i]);
    }
  }
  if (o->batch == 0 || o->values < kInputs + 1) return complain("--batch from 1, --values from 9");
  return 0;
}

static int check_pads(const float* w, uint64_t values, uint64_t rounds) {
  const float expected = -kRate * (float)rounds;
  for (uint64_t i = kInputs + 1; i < values; ++i) {
    if (fabsf(w[i] - expected) <= kRounding * (1 - expected)) continue;
    fprintf(stderr, "toy: value %llu is %.9g after round %llu, expected %.9g\n", (unsigned long long)i, w[i],
            (unsigned long long)rounds, expected);
    return TW_FAILED;
  }
  return TW_OK;
}

/* Updates in the parameters at which the gradients of this round are taken. */
static uint64_t updates_before(const struct options* o, uint64_t round) {
  for (size_t i = 0; i < o->count; ++i) {
    const int is_late =
        strcmp(o->settings[i].key, "training.mode") == 0 && strcmp(o->settings[i].value, "delayed") == 0;
    if (is_late) return round < 2 ? 0 : round - 2;
  }
  return round - 1;
}

static void pause_for(uint64_t ms) {
  const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  if (ms > 0) nanosleep(&pause, NULL);
}

/* Computes until the thread has used so much CPU time. */
static void burn(uint64_t ms) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  const uint64_t end = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec + ms * 1000000u;
  while (ms > 0 && (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec < end)
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
}

/* One order: the gradients of as many of its samples as a batch has, and their loss. */
static int work(tw_peer* peer, const struct options* o, const tw_order* order, const float* w,
                float* gradient, int64_t* samples) {
  const uint64_t count = order->samples < o->batch ? order->samples : o->batch;
  double loss = 0;
  if (check_pads(w, o->values, updates_before(o, order->round)) != TW_OK) return TW_FAILED;
  const tw_dataset data = {kPoints, 1, 0};
  if (tw_samples(peer, &data, samples, count) != TW_OK) return TW_FAILED;
  for (uint64_t i = 0; i < o->values; ++i) gradient[i] = i <= kInputs ? 0 : (float)count;
  for (uint64_t i = 0; i < count; ++i) loss += add_gradient(w, (uint64_t)samples[i], gradient);
  pause_for(o->data_ms);
  if (tw_waited(peer, (double)o->data_ms / 1000) != TW_OK) return TW_FAILED;
  pause_for(o->work_ms);
  burn(o->burn_ms);
  const tw_tensor tensors[2] = {{gradient, kInputs + 1, TW_FLOAT32, 0},
                                {gradient + kInputs + 1, o->values - kInputs - 1, TW_FLOAT32, 0}};
  const tw_gradient handed = {tensors, 2, 1, count, o->batch, loss, NULL};
  return tw_done(peer, &handed);
}

static void print_line(const float* w) {
  printf("w");
  for (int i = 0; i <= kInputs; ++i) printf(" %.9g", w[i]);
  printf("\n");
}

static int train(tw_peer* peer, const struct options* o) {
  const tw_tensor initial[2] = {{NULL, kInputs + 1, TW_FLOAT32, 0},
                                {NULL, o->values - kInputs - 1, TW_FLOAT32, 0}};
  for (const int* number = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, 0}; *number != 0;
       ++number)
    tw_heed(peer, *number);
  int status = tw_start(peer, initial, 2);
  if (status != TW_OK) return status;
  float *parameters = NULL, *const gradient = calloc(o->values, sizeof(float));
  int64_t* const samples = calloc(o->batch, sizeof(int64_t));
  uint64_t values = 0;
  tw_memory* const memory = tw_vector(peer, 0, &parameters, &values);
  tw_order order;
  while ((status = tw_next(peer, 20, &order)) >= TW_OK && status != TW_FINISHED) {
    if (status == TW_GRADIENT) status = work(peer, o, &order, parameters, gradient, samples);
    if (status < TW_OK) break;
  }
  if (status == TW_FINISHED) print_line(parameters);
  tw_release(memory);
  free(gradient);
  free(samples);
  return status;
}

static int exit_code_of(tw_peer* peer, int status) {
  if (status != TW_FINISHED) complain(tw_last_error());
  if (status == TW_CONDEMNED) return kGoesOn;
  if (status == TW_MISUSE) return kWrongOrLost;
  char* const view = tw_view(peer); /* null: it did not start */
  if (view == NULL) return kFailed;
  const int code = strstr(view, "\"ending\":\"notice\"")             ? kGoesOn
                   : strstr(view, "\"ending\":\"left\"")             ? kGoesOn
                   : strstr(view, "\"ending\":\"interrupted\"")      ? kInterrupted
                   : strstr(view, "\"ending\":\"lost\"")             ? kWrongOrLost
                   : strstr(view, "\"ending\":\"complete\"") == NULL ? kFailed
                   : strstr(view, "\"differs\":\"\"") == NULL        ? kWrongOrLost
                   : strstr(view, "\"unsaved\":\"\"") == NULL        ? kFailed
                                                                     : 0;
  tw_free(view);
  return code;
}

int main(int count, char** words) {
  struct options o = {.batch = 32, .values = 1024};
  if (read_words(count, words, &o) != 0) return kWrongOrLost;
  const tw_group group = {.tensors = 2, .learning_rate = kRate, .kind = TW_SGD};
  const uint64_t sizes[2] = {kInputs + 1, o.values - kInputs - 1};
  const tw_model model = {
      .groups = &group, .group_count = 1, .tensor_sizes = sizes, .tensor_count = 2, .layout = "toy"};
  tw_peer* peer = NULL;
  if (tw_open(o.settings, o.count, &model, NULL, &peer) != TW_OK) return complain(tw_last_error());
  const int code = exit_code_of(peer, train(peer, &o));
  tw_close(peer);
  return code;
}

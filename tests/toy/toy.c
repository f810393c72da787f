/* SPDX-License-Identifier: Apache-2.0
 *
 * A small training program: one peer that fits a line through fixed points, y = w x + 0.5 with w_i = i / 8.
 *
 *   toy [--batch N] [--work-ms MS] [--values N] [KEY=VALUE ...]
 *
 * KEY=VALUE are settings of the engine (tw_setting); the rest of them come from TRADEWIND_*. Samples are
 * those of tw_samples, so any number of peers computes what one computes. --values pads the vector, --work-ms
 * sleeps for each gradient. The last line on stdout has w and the constant.
 * Exit code: 0 complete, 75 after a notice, 130 after SIGINT, 1 failed, 2 wrong usage or nothing is left.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tradewind.h"

enum { kInputs = 8, kPoints = 4096, kMostSettings = 64, kGoesOn = 75 };

struct options {
  uint64_t batch, work_ms, values;
  tw_setting settings[kMostSettings];
  size_t count;
};

static volatile sig_atomic_t arrived[65];

static void on_signal(int number) { ++arrived[number]; }

static int complain(const char* what) {
  fprintf(stderr, "toy: %s\n", what);
  return 2;
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
                             : !strcmp(words[i], "--values")  ? &o->values
                                                              : NULL;
    char* const equals = strchr(words[i], '=');
    if (number != NULL && i + 1 < count) {
      *number = strtoull(words[++i], NULL, 10);
    } else if (equals != NULL && o->count < kMostSettings) {
      *equals = '\0';
      o->settings[o->count++] = (tw_setting){words[i], equals + 1};
    } else {
      return complain(words[i]);
    }
  }
  if (o->batch == 0 || o->values < kInputs + 1) return complain("--batch from 1, --values from 9");
  return 0;
}

static void pass_signals_on(tw_peer* peer) {
  for (int number = 1; number < 65; ++number)
    for (; arrived[number] > 0; --arrived[number]) tw_signal(peer, number);
}

/* One order: the gradients of as many of its samples as a batch has, and their loss. */
static int work(tw_peer* peer, const struct options* o, const tw_order* order, const float* w,
                float* gradient, int64_t* samples) {
  const uint64_t count = order->samples < o->batch ? order->samples : o->batch;
  const struct timespec pause = {(time_t)(o->work_ms / 1000), (long)(o->work_ms % 1000) * 1000000};
  double loss = 0;
  if (tw_samples(peer, kPoints, 1, samples, count) != TW_OK) return TW_FAILED;
  memset(gradient, 0, o->values * sizeof(float));
  for (uint64_t i = 0; i < count; ++i) loss += add_gradient(w, (uint64_t)samples[i], gradient);
  if (o->work_ms > 0) nanosleep(&pause, NULL);
  const tw_tensor tensors[2] = {{gradient, kInputs + 1, TW_FLOAT32, 0},
                                {gradient + kInputs + 1, o->values - kInputs - 1, TW_FLOAT32, 0}};
  const tw_gradient handed = {tensors, 2, 1, count, o->batch, loss, NULL};
  return tw_done(peer, &handed);
}

static int exit_code_of(tw_peer* peer) {
  char* const view = tw_view(peer);
  const int code = strstr(view, "\"ending\":\"notice\"")        ? kGoesOn
                   : strstr(view, "\"ending\":\"interrupted\"") ? 130
                   : strstr(view, "\"ending\":\"lost\"")        ? 2
                   : strstr(view, "\"ending\":\"failed\"")      ? 1
                   : strstr(view, "\"unsaved\":\"\"") == NULL   ? 1
                                                                : 0;
  tw_free(view);
  return code;
}

static int train(tw_peer* peer, const struct options* o) {
  float *parameters = NULL, *const gradient = calloc(o->values, sizeof(float));
  int64_t* const samples = calloc(o->batch, sizeof(int64_t));
  const tw_tensor initial[2] = {{NULL, kInputs + 1, TW_FLOAT32, 0},
                                {NULL, o->values - kInputs - 1, TW_FLOAT32, 0}};
  int status = tw_start(peer, initial, 2);
  if (status == TW_CONDEMNED) return kGoesOn;
  if (status != TW_OK) return status;
  uint64_t values = 0;
  tw_memory* const memory = tw_vector(peer, 0, &parameters, &values);
  tw_order order;
  while ((status = tw_next(peer, 20, &order)) >= TW_OK && status != TW_FINISHED) {
    pass_signals_on(peer);
    if (status == TW_GRADIENT) status = work(peer, o, &order, parameters, gradient, samples);
    if (status < TW_OK) break;
  }
  printf("w");
  for (int i = 0; i <= kInputs; ++i) printf(" %.9g", parameters[i]);
  printf("\n");
  tw_release(memory);
  free(gradient);
  free(samples);
  return status == TW_FINISHED ? exit_code_of(peer) : status;
}

int main(int count, char** words) {
  struct options o = {.batch = 32, .values = kInputs + 1};
  if (read_words(count, words, &o) != 0) return 2;
  const tw_group group = {.tensors = 2, .learning_rate = 0.1, .kind = TW_SGD};
  const uint64_t sizes[2] = {kInputs + 1, o.values - kInputs - 1};
  const tw_model model = {
      .groups = &group, .group_count = 1, .tensor_sizes = sizes, .tensor_count = 2, .layout = "toy"};
  tw_peer* peer = NULL;
  for (const int* number = (const int[]){SIGINT, SIGTERM, SIGUSR1, SIGUSR2, 0}; *number != 0; ++number)
    signal(*number, on_signal);
  if (tw_open(o.settings, o.count, &model, NULL, &peer) != TW_OK) return complain(tw_last_error());
  const int code = train(peer, &o);
  if (code < 0) complain(tw_last_error());
  tw_close(peer);
  return code < 0 ? 1 : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cacher on a store whose replies the test writes (scripted_store.h) and on a clock that the test
 * moves (hand_clock.h). So a test can check each step of the cacher, and when it happens.
 *
 * There is one cacher for the program. The functions assert instead of handling errors; the
 * tear-down also asserts that the test has freed all memory. Only tests that link failing_memory.c
 * can use it. Thread: the test's.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hand_clock.h"
#include "scripted_store.h"
#include "server/cacher/cacher.h"
#include "server/resources/custom/custom_table.h"

struct scripted_cacher {
        struct hf_host host;
        struct scripted_store store;
        struct hfd_custom_table *table; /* without kinds */
        struct hfd_cacher *cacher;
        /* Calls of the callbacks of the configuration. */
        atomic_uint n_replaced, n_copies, n_observed;
        atomic_uint observed;             /* the observers of the last call */
        atomic_bool replaced_before_stop; /* on_history_replaced came before the watch was ended */
        void (*when_replaced)(void);      /* called by on_history_replaced; NULL = not */
};
extern struct scripted_cacher scripted;

/* The observers of two resources; all others have none. */
#define SCRIPTED_CONFIGMAPS 1u
#define SCRIPTED_SECRETS    2u

/* cmocka's set-up and tear-down. The cacher is not started. */
int scripted_cacher_set_up(void **state);
/* Replies to the requests that still wait, and frees the cacher. */
int scripted_cacher_tear_down(void **state);
#define SCRIPTED_TEST(name)                                                                        \
        cmocka_unit_test_setup_teardown(name, scripted_cacher_set_up, scripted_cacher_tear_down)

/* Starts the cacher, fills it at revision 10 with the ConfigMaps ns/a of revision 5 and ns/b of
 * revision 7, and waits for the watch. */
void scripted_cacher_fill(void);
/* Replies to the read of the epoch. value NULL = there is none. */
void scripted_cacher_reply_epoch(const char *value, uint64_t revision);
/* Replies to the only page of a list with the objects of scripted_cacher_fill. */
void scripted_cacher_reply_list(uint64_t revision);
/* Waits until the cacher follows the store's watch number n. */
void scripted_cacher_await_watch(unsigned n);
/* Waits until the watch has failed and the cacher waits before it tries again. */
void scripted_cacher_await_backoff(void);
/* Moves the clock, and waits until the timer has seen the time. */
void scripted_cacher_move(hf_nsec by);

/* The key of the ConfigMap ns/NAME, in one of four static buffers. */
const char *scripted_cacher_key(const char *name);
/* A ConfigMap with this name. */
#define SCRIPTED_OBJECT(name)                                                                      \
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name "\"}}"
/* The revision at which readers see the ConfigMap; 0 = they do not see it. */
uint64_t scripted_cacher_seen(const char *path);

/* How many lines of the log contain the text. */
size_t scripted_cacher_n_logged(const char *text);
/* The value of a metric, by its name and labels as in the exposition. */
double scripted_cacher_metric(const char *name);

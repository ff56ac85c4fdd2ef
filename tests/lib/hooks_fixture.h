/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hooks that note their starts and stops in a diary: "a+ b+ b- a- ". The clock is the system's, and
 * calls a function of the test before each wait. Asserts instead of handling errors. Thread: any
 * for the diary, the test's for everything else.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/hooks.h>

/*
 * on_wait is called before each wait, with the mutex locked. If it returns true, the wait ends at
 * once, as if by a spurious wake-up. With it a test can continue exactly when a thread has nothing
 * to do any more, or hold the thread there. NULL = none.
 */
void hooks_fixture_set_on_wait(bool (*on_wait)(pthread_mutex_t *mutex));

void hooks_fixture_note(const char *name, const char *what);
const char *hooks_fixture_diary(void); /* while no hook runs */
void hooks_fixture_assert_before(const char *first, const char *then);

/* These note "+" and "-". ctx is the hook's name; hooks_fixture_new sets it if it is NULL. */
int hooks_fixture_start(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status);
int hooks_fixture_stop(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status);

/* Empties the diary. The caller frees the hooks. */
struct hf_hooks *hooks_fixture_new(struct hf_hook *list, size_t n);
#define HOOKS_FIXTURE_NEW(list) hooks_fixture_new(list, sizeof list / sizeof *list)
/* The same; each hook also depends on the one before it. A hook without a start or a stop function
 * gets the one above. */
struct hf_hooks *hooks_fixture_new_chain(struct hf_hook *list, size_t n);
#define HOOKS_FIXTURE_NEW_CHAIN(list) hooks_fixture_new_chain(list, sizeof list / sizeof *list)

/* The main function of a thread that starts the hooks. */
void *hooks_fixture_start_main(void *hooks);

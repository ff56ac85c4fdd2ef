/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hooks that note their starts and stops in a diary: "a+ b+ b- a- ". The clock is the system's; a
 * test may look at each wait. Asserts instead of handling errors. Thread: any for the diary, that
 * of the test for the rest.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/hooks.h>

/*
 * on_wait is called before each wait, with the mutex locked; true ends the wait at once, as a
 * spurious wake-up. It lets a test continue exactly when a thread has nothing to do any more, or
 * hold a thread there. NULL = none.
 */
void hooks_fixture_set_on_wait(bool (*on_wait)(pthread_mutex_t *mutex));

void hooks_fixture_note(const char *name, const char *what);
const char *hooks_fixture_diary(void); /* while no hook runs */
void hooks_fixture_assert_before(const char *first, const char *then);

/* These note "+" and "-". ctx is the name, as in each hook whose ctx is NULL. */
int hooks_fixture_start(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status);
int hooks_fixture_stop(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status);

/* Empties the diary. The caller frees the hooks. */
struct hf_hooks *hooks_fixture_new(struct hf_hook *list, size_t n);
#define HOOKS_FIXTURE_NEW(list) hooks_fixture_new(list, sizeof list / sizeof *list)
/* The same, and each hook is after the one before it. One without functions gets those above. */
struct hf_hooks *hooks_fixture_new_chain(struct hf_hook *list, size_t n);
#define HOOKS_FIXTURE_NEW_CHAIN(list) hooks_fixture_new_chain(list, sizeof list / sizeof *list)

/* The main function of a thread that starts the hooks. */
void *hooks_fixture_start_main(void *hooks);

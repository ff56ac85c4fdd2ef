/* SPDX-License-Identifier: Apache-2.0 */
/* See hooks_fixture.h. */
#undef NDEBUG
#include "hooks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool (*_Atomic told_of_waits)(pthread_mutex_t *mutex);
static hf_nsec read_boot(void *ctx) { return hf_clock_system()->boot(NULL); }
static hf_nsec read_monotonic(void *ctx) { return hf_clock_system()->monotonic(NULL); }
static hf_nsec read_real(void *ctx) { return hf_clock_system()->real(NULL); }
static int wait_and_tell(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                         hf_nsec deadline) {
        bool (*told)(pthread_mutex_t * mutex) = atomic_load(&told_of_waits);
        if (told && told(mutex))
                return 0;
        return hf_clock_system()->wait(NULL, cond, mutex, deadline);
}
static const struct hf_clock clock_that_tells = {.size = sizeof clock_that_tells,
                                                 .boot = read_boot,
                                                 .monotonic = read_monotonic,
                                                 .real = read_real,
                                                 .wait = wait_and_tell};
static const struct hf_host host = {.size = sizeof host, .clock = &clock_that_tells};

void hooks_fixture_set_on_wait(bool (*on_wait)(pthread_mutex_t *mutex)) {
        atomic_store(&told_of_waits, on_wait);
}

/* Hooks append to it from their own threads. */
static struct {
        pthread_mutex_t mu;
        char text[512];
} diary = {.mu = PTHREAD_MUTEX_INITIALIZER};

void hooks_fixture_note(const char *name, const char *what) {
        pthread_mutex_lock(&diary.mu);
        strcat(diary.text, name);
        strcat(diary.text, what);
        strcat(diary.text, " ");
        pthread_mutex_unlock(&diary.mu);
}

const char *hooks_fixture_diary(void) { return diary.text; }

void hooks_fixture_assert_before(const char *first, const char *then) {
        const char *a = strstr(diary.text, first), *b = strstr(diary.text, then);
        if (!a || !b || a > b)
                fail_msg("\"%s\": %s is not before %s", diary.text, first, then);
}

int hooks_fixture_start(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        hooks_fixture_note(ctx, "+");
        return 0;
}
int hooks_fixture_stop(struct hf_hook_context *context, void *ctx,
                       struct hf_status *reterr_status) {
        hooks_fixture_note(ctx, "-");
        return 0;
}

struct hf_hooks *hooks_fixture_new(struct hf_hook *list, size_t n) {
        struct hf_hooks *hooks = NULL;
        struct hf_status status;
        diary.text[0] = '\0';
        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        for (size_t i = 0; i < n; i++) {
                if (!list[i].ctx)
                        list[i].ctx = (void *)list[i].name;
                assert_int_equal(hf_hooks_add(hooks, &list[i], HF_HOOKS_HERE, &status), 0);
        }
        return hooks;
}

struct hf_hooks *hooks_fixture_new_chain(struct hf_hook *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (!list[i].start)
                        list[i].start = hooks_fixture_start;
                if (!list[i].stop)
                        list[i].stop = hooks_fixture_stop;
                if (i > 0) {
                        list[i].after = &list[i - 1].name;
                        list[i].n_after = 1;
                }
        }
        return hooks_fixture_new(list, n);
}

void *hooks_fixture_start_main(void *hooks) {
        (void)hf_hooks_start(hooks, NULL);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include "gc_fixture.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/context/reconcile_loop.h"

static const struct hf_host host = {.size = sizeof host};
static char custom_informer;
struct hfd_kind gc_configmaps = {.row = {{"", "v1", "configmaps"}, "ConfigMap", true}},
                gc_custom = {.row = {{"example.com", "v1", "as"}, "A", true},
                             .id = 1,
                             .is_custom = true,
                             .informer = (struct hf_informer *)&custom_informer,
                             .refs = 1};
struct hfd_kind_set *gc_set;

struct hf__json *gc_parsed(const char *text) {
        struct hf__json *json = NULL;

        assert(hf__json_parse(text, strlen(text), &json, NULL) == 0);
        return json;
}

void gc_make_set(void) {
        struct hfd_kind *all[] = {&gc_configmaps, &gc_custom};

        assert(hfd_kind_set_new(hf_clock_system(), all, 2, &gc_set) == 0);
}

void gc_free_set(void) {
        hfd_kind_set_unref(gc_set);
        gc_set = NULL;
}

/* ---- replaced functions ---- */

const struct hf_host *__wrap_hf_term_host(struct hf_term *term);
const struct hf_host *__wrap_hf_term_host(struct hf_term *term) { return &host; }

bool __wrap_hfd_kinds_is_complete(struct hfd_kinds *kinds, const struct hfd_kind_set *set);
bool __wrap_hfd_kinds_is_complete(struct hfd_kinds *kinds, const struct hfd_kind_set *set) {
        return true;
}

int __wrap_hf_informer_wait_all(struct hf_informer *const *informers, size_t n,
                                const char *revision, struct hf_cancel *token);
int __wrap_hf_informer_wait_all(struct hf_informer *const *informers, size_t n,
                                const char *revision, struct hf_cancel *token) {
        return 0;
}

int __wrap_hfd_kinds_run(struct hfd_kinds *kinds, struct hf_term *term, hfd_kinds_run_fn run,
                         void *ctx);
int __wrap_hfd_kinds_run(struct hfd_kinds *kinds, struct hf_term *term, hfd_kinds_run_fn run,
                         void *ctx) {
        return run(ctx, term, gc_set, NULL);
}

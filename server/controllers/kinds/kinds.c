/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in kinds, the current set of kinds, and the loops that controllers run with one set.
 *
 * Invariant: custom_kinds.c is started before the informers of the built-in kinds and freed before
 * them, because it follows one of these, the informer of definitions (custom_kinds.h).
 */
#include "server/controllers/kinds/kinds.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "server/controllers/kinds/custom_kinds.h"

/* ---- life cycle ---- */

/* Makes the set of the built-in kinds, and the struct that follows custom kinds. */
static int make_sets(struct hfd_kinds *kinds, const struct hfd_kinds_config *config) {
        struct hfd_kind *all[HFD_KINDS_MAX];
        const struct hfd_kind *definitions = NULL;

        for (size_t i = 0; i < kinds->n; i++) {
                all[i] = &kinds->kinds[i];
                if (hfd_kind_is_definitions(&all[i]->row.resource))
                        definitions = all[i];
        }
        int r = hfd_kind_set_new(hf_host_clock(config->sources.host), all, kinds->n,
                                 &kinds->built_in);
        return r == 0 && config->custom && definitions
                       ? hfd_custom_kinds_new(&config->sources, kinds->built_in, definitions,
                                              &kinds->custom)
                       : r;
}

int hfd_kinds_init(struct hfd_kinds *kinds, const struct hfd_kinds_config *config) {
        int r = config->n_rows <= HFD_KINDS_MAX ? 0 : HF_E_TOO_LARGE;

        *kinds = (struct hfd_kinds){0};
        for (size_t i = 0; r == 0 && i < config->n_rows; i++) {
                kinds->kinds[i].row = config->rows[i];
                kinds->kinds[i].id = i;
                r = hfd_kind_new_informer(&config->sources, &config->rows[i],
                                          &kinds->kinds[i].informer);
                kinds->n += r == 0;
        }
        if (r == 0)
                r = make_sets(kinds, config);
        if (r != 0)
                hfd_kinds_done(kinds);
        return r;
}

int hfd_kinds_start(struct hfd_kinds *kinds) {
        int r = kinds->custom ? hfd_custom_kinds_start(kinds->custom) : 0;

        for (size_t i = 0; r == 0 && i < kinds->n; i++)
                r = hf_informer_start(kinds->kinds[i].informer);
        return r;
}

void hfd_kinds_done(struct hfd_kinds *kinds) {
        hfd_custom_kinds_free(kinds->custom);
        /* A set that is still in use would refer to freed informers. */
        assert(!kinds->built_in || atomic_load(&kinds->built_in->refs) == 1);
        hfd_kind_set_unref(kinds->built_in);
        for (size_t i = 0; i < kinds->n; i++)
                hf_informer_free(kinds->kinds[i].informer);
        *kinds = (struct hfd_kinds){0};
}

const struct hfd_kind *hfd_kinds_find(const struct hfd_kinds *kinds, const char *group,
                                      const char *plural) {
        for (size_t i = 0; i < kinds->n; i++)
                if (strcmp(kinds->kinds[i].row.resource.plural, plural) == 0 &&
                    strcmp(kinds->kinds[i].row.resource.group, group) == 0)
                        return &kinds->kinds[i];
        return NULL;
}

/* ---- sets ---- */

struct hfd_kind_set *hfd_kinds_get(struct hfd_kinds *kinds) {
        return kinds->custom ? hfd_custom_kinds_get(kinds->custom)
                             : hfd_kind_set_ref(kinds->built_in);
}

bool hfd_kinds_is_complete(struct hfd_kinds *kinds, const struct hfd_kind_set *set) {
        return !kinds->custom || hfd_custom_kinds_is_complete(kinds->custom, set);
}

static void on_replaced(void *token) { hf_cancel_fire(token, HF_CANCEL_STOPPING); }

/* Runs the loop with one set. If the set has been replaced already, the waker is called while it is
 * added. */
static int run_with_set(struct hfd_kind_set *set, struct hf_term *term, hfd_kinds_run_fn run,
                        void *ctx) {
        struct hf_cancel_waker waker;
        struct hf_cancel *until;
        int r = hf_cancel_new(hf_term_drain(term), hf_host_clock(hf_term_host(term)), &until);

        if (r != 0)
                return r;
        hf_cancel_add_waker(set->replaced, &waker, on_replaced, until);
        r = run(ctx, term, set, until);
        hf_cancel_remove_waker(&waker);
        hf_cancel_unref(until);
        return r;
}

int hfd_kinds_run(struct hfd_kinds *kinds, struct hf_term *term, hfd_kinds_run_fn run, void *ctx) {
        int r = 0;

        while (r == 0 && !hf_cancel_fired(hf_term_drain(term))) {
                struct hfd_kind_set *set = hfd_kinds_get(kinds);
                r = run_with_set(set, term, run, ctx);
                hfd_kind_set_unref(set);
        }
        return r;
}

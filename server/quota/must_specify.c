/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the containers that do not say how much processor time or memory they need. They could use
 * any amount, and the quota would limit nothing. A pod that has resources of its own need not say
 * more.
 *
 * Invariant: only names in `places` are collected, so every collected name has its place when it is
 * printed.
 */
#include "server/quota/must_specify.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/quota/usage.h"

/* For each name of processor time or memory in a quota, the place where a container must say how
 * much it needs: the member `key` of resources.requests or resources.limits. */
static const struct place {
        const char *name, *which, *key;
} places[HFD_MUST_SPECIFY_MAX] = {
        {"cpu", "requests", "cpu"},
        {"limits.cpu", "limits", "cpu"},
        {"limits.memory", "limits", "memory"},
        {"memory", "requests", "memory"},
        {"requests.cpu", "requests", "cpu"},
        {"requests.memory", "requests", "memory"},
};

static const struct place *place_of(const char *name) {
        for (size_t i = 0; i < HFD_MUST_SPECIFY_MAX; i++)
                if (strcmp(places[i].name, name) == 0)
                        return &places[i];
        return NULL;
}

static bool specifies_place(const struct hf__json *container, const struct place *place) {
        return hf__json_get(hf__json_get(hf__json_get(container, "resources"), place->which),
                            place->key);
}

/* Finds the containers that do not say how much they need. Stores their names in `names`, unless
 * `names` is NULL. Returns their number. */
static size_t find_silent(const struct hf__json *pod, const struct place *place,
                          const char **names) {
        static const char *const lists[] = {"spec.containers", "spec.initContainers"};
        size_t n = 0;

        for (size_t i = 0; i < 2; i++)
                for (const struct hf__json *m = hf__json_first(hf__json_path(pod, lists[i])); m;
                     m = hf__json_next(m)) {
                        if (specifies_place(m, place))
                                continue;
                        const char *name = hf__json_string(m, "name");
                        if (names)
                                names[n] = name ? name : "";
                        n++;
                }
        return n;
}

void hfd_must_specify_check(struct hfd_must_specify *missing, const char *name) {
        const struct place *place = place_of(name);

        if (!place || missing->n == HFD_MUST_SPECIFY_MAX ||
            hfd_pod_has_own_resources(hf__json_get(missing->pod, "spec")) ||
            find_silent(missing->pod, place, NULL) == 0)
                return;
        assert(missing->n < HFD_MUST_SPECIFY_MAX);
        missing->names[missing->n++] = name;
        missing->any = true;
}

static void print_resource(const struct hf__json *pod, const char *name, struct hf__strbuf *out) {
        const struct place *place = place_of(name);
        size_t n = find_silent(pod, place, NULL);
        const char **names = calloc(n, sizeof *names), *comma = "";

        hf__strbuf_printf(out, "%s for: ", name);
        if (!names)
                return; /* out of memory: the refusal names no containers */
        (void)find_silent(pod, place, names);
        qsort(names, n, sizeof *names, hf__text_compare);
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && strcmp(names[i - 1], names[i]) == 0)
                        continue;
                hf__strbuf_printf(out, "%s%s", comma, names[i]);
                comma = ",";
        }
        free(names);
}

void hfd_must_specify_print(const struct hfd_must_specify *missing, struct hf__strbuf *out) {
        for (size_t i = 0; i < missing->n; i++) {
                hf__strbuf_puts(out, i == 0 ? "must specify " : "; ");
                print_resource(missing->pod, missing->names[i], out);
        }
}

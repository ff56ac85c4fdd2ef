/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of a LimitRange. Those of its elements of the type Container go into each container
 * that does not name the resource.
 *
 * Invariant: an amount that a container names is never changed. The work is the product of two
 * sizes that clients choose, so callers ask hfd_limit_range_is_too_much first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/quota/limit_range.h"

static bool is_of_containers(const struct hf__json *item) {
        return hf__json_has_text(item, "type", "Container");
}

static size_t count_containers(const struct hf__json *pod) {
        return hf__json_count(hf__json_path(pod, "spec.containers")) +
               hf__json_count(hf__json_path(pod, "spec.initContainers"));
}

bool hfd_limit_range_is_too_much(const struct hf__json *range, const struct hf__json *pod) {
        static const char *const maps[] = {"default", "defaultRequest", "min", "max",
                                           "maxLimitRequestRatio"};
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(range, "spec.limits")); m;
             m = hf__json_next(m))
                for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
                        n += hf__json_count(hf__json_get(m, maps[i]));
        return n > 0 && count_containers(pod) > HFD_LIMIT_RANGE_PAIRS_MAX / n;
}

/* ---- one map of a container ---- */

/* The names that were set. */
struct names {
        const char **of; /* owned; borrows the names from the LimitRange */
        size_t n;
};

/* Adds the defaults that `to` does not have, and collects their names in `set`. 0 or -ENOMEM. */
static int add_missing(struct hf__json *to, const struct hf__json *defaults, struct names *set) {
        struct hf__json_index had;
        int r = hf__json_index_init(&had, to, NULL);

        for (const struct hf__json *m = hf__json_first(defaults); m && r == 0;
             m = hf__json_next(m)) {
                if (hf__json_index_find(&had, hf__json_key(m)))
                        continue;
                r = hf__json_add(to, hf__json_key(m), hf__json_dup(m));
                set->of[set->n++] = hf__json_key(m);
        }
        hf__json_index_done(&had);
        return r;
}

static void note_default(const struct names *set, const char *what, const char *kind,
                         const struct hf__json *container, struct hf__strbuf *notes) {
        const char *name = hf__json_string(container, "name");

        if (set->n == 0)
                return;
        qsort(set->of, set->n, sizeof *set->of, hf__text_compare);
        hf__strbuf_puts(notes, notes->n > 0 ? "; " : "LimitRanger plugin set: ");
        for (size_t i = 0; i < set->n; i++)
                hf__strbuf_printf(notes, "%s%s", i > 0 ? ", " : "", set->of[i]);
        hf__strbuf_printf(notes, " %s for %s %s", what, kind, name ? name : "");
}

/* Adds the defaults to one map of a container, and appends a note about them. which: the path of
 * the map, "resources.limits" or "resources.requests". In the note, `what` is the word for the map,
 * and `kind` the word for the container. 0 or -ENOMEM. */
static int default_map(struct hf__json *container, const struct hf__json *defaults,
                       const char *which, const char *what, const char *kind,
                       struct hf__strbuf *notes) {
        size_t n = hf__json_count(defaults);
        struct names set = {0};
        int r = 0;

        if (n == 0)
                return 0;
        set.of = calloc(n, sizeof *set.of);
        if (!set.of)
                return -ENOMEM;
        if (!hf__json_is_object(hf__json_path(container, which)))
                r = hf__json_set(container, which, hf__json_object());
        if (r == 0)
                r = add_missing(hf__json_path(container, which), defaults, &set);
        if (r == 0)
                note_default(&set, what, kind, container, notes);
        free(set.of);
        return r;
}

/* ---- a pod ---- */

static int default_containers(const struct hf__json *item, struct hf__json *pod, const char *list,
                              const char *kind, struct hf__strbuf *notes) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_path(pod, list)); m && r == 0;
             m = hf__json_next(m)) {
                r = default_map(m, hf__json_get(item, "defaultRequest"), "resources.requests",
                                "request", kind, notes);
                if (r == 0)
                        r = default_map(m, hf__json_get(item, "default"), "resources.limits",
                                        "limit", kind, notes);
        }
        return r;
}

static int annotate_pod(struct hf__json *pod, const char *text) {
        struct hf__json *annotations = hf__json_path(pod, "metadata.annotations");
        int r = 0;

        if (!hf__json_is_object(annotations)) {
                r = hf__json_set(pod, "metadata.annotations", hf__json_object());
                annotations = hf__json_path(pod, "metadata.annotations");
        }
        return r == 0 ? hf__json_put_string(annotations, "kubernetes.io/limit-ranger", text) : r;
}

int hfd_limit_range_default_pod(const struct hf__json *range, struct hf__json *pod) {
        struct hf__strbuf notes = {0};
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(range, "spec.limits"));
             m && r == 0; m = hf__json_next(m)) {
                if (!is_of_containers(m))
                        continue;
                r = default_containers(m, pod, "spec.containers", "container", &notes);
                if (r == 0)
                        r = default_containers(m, pod, "spec.initContainers", "init container",
                                               &notes);
        }
        if (r == 0 && notes.error)
                r = -ENOMEM;
        if (r == 0 && notes.n > 0)
                r = annotate_pod(pod, notes.data);
        hf__strbuf_done(&notes);
        return r;
}

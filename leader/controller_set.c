/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and checks the controllers of an elector once, at registration. Mistakes are reported
 * there with the controller's name or its index, so that a term need not handle them.
 *
 * Invariant: in a set that was copied, every name in `after` resolves, and the relation has no
 * cycle. struct hf__term relies on both: with a cycle its controllers would wait for ever.
 */
#include "leader/controller_set.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized_struct.h"

static const struct hf__sized sized_controller = HF__SIZED(struct hf_controller, ctx);

static const char **free_names(const char **names) {
        for (size_t i = 0; names && names[i]; i++)
                free((char *)names[i]);
        free(names);
        return NULL;
}

/* The copy ends with NULL. Returns NULL only if memory runs out. */
static const char **copy_names(const char *const *from, size_t n) {
        const char **names = calloc(n + 1, sizeof(char *));
        for (size_t i = 0; names && i < n; i++) {
                names[i] = strdup(from[i]);
                if (!names[i])
                        return free_names(names);
        }
        return names;
}

struct hf_controller *hf__controller_set_free(struct hf_controller *controllers, size_t n) {
        for (size_t i = 0; controllers && i < n; i++) {
                free((char *)controllers[i].name);
                free_names((const char **)controllers[i].after);
        }
        free(controllers);
        return NULL;
}

const struct hf_controller *hf__controller_set_find(const struct hf_controller *controllers,
                                                    size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(controllers[i].name, name) == 0)
                        return &controllers[i];
        return NULL;
}

/* ---- checks ---- */

/* Checks the names in `after` of one controller. The order holds within a class only, because the
 * two classes start at different times. */
static int check_after(const struct hf_controller *set, size_t n,
                       const struct hf_controller *controller, const char *label,
                       struct hf_status *reterr_status) {
        const char *const *names = controller->after;
        for (size_t i = 0; names && names[i]; i++) {
                const struct hf_controller *before = hf__controller_set_find(set, n, names[i]);
                if (!before)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "elector %s: controller \"%s\" is after \"%s\", which is "
                                       "not in its set",
                                       label, controller->name, names[i]);
                if (before->runs != controller->runs)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "elector %s: controller \"%s\" is after \"%s\", but one of "
                                       "the two is leader-only and the other is not",
                                       label, controller->name, names[i]);
                for (size_t k = 0; k < i; k++)
                        if (strcmp(names[k], names[i]) == 0)
                                return hf_fail(reterr_status, HF_E_INVALID,
                                               "elector %s: controller \"%s\" is after "
                                               "\"%s\" twice",
                                               label, controller->name, names[i]);
        }
        return 0;
}

/* Returns the index of the first controller that `controller` is after and that has no place in the
 * order yet; n = none. */
static size_t find_unplaced_dependency(const struct hf_controller *set, size_t n,
                                       const bool *placed, size_t controller) {
        for (const char *const *name = set[controller].after; name && *name; name++) {
                size_t before = (size_t)(hf__controller_set_find(set, n, *name) - set);
                if (!placed[before])
                        return before;
        }
        return n;
}

/* Writes a cycle to text: "a" after "b" after "a". A longer text is cut. Each controller without a
 * place waits for one without a place, perhaps for itself. This chain must reach a cycle within n
 * steps, because there are only n controllers. */
static void describe_cycle(const struct hf_controller *set, size_t n, const bool *placed, size_t at,
                           char *text, size_t max_text) {
        for (size_t i = 0; i < n; i++)
                at = find_unplaced_dependency(set, n, placed, at);
        assert(at < n);
        size_t first = at, used = (size_t)snprintf(text, max_text, "\"%s\"", set[at].name);
        do {
                at = find_unplaced_dependency(set, n, placed, at);
                if (used < max_text)
                        used += (size_t)snprintf(text + used, max_text - used, " after \"%s\"",
                                                 set[at].name);
        } while (at != first);
}

/* Puts the controllers in order: repeatedly places each one that waits only for placed ones. A
 * controller that is never placed is in a cycle or comes after one. After the last round `left` is
 * the index of such a controller, if there is one. */
static int check_for_cycles(const struct hf_controller *set, size_t n, const char *label,
                            struct hf_status *reterr_status) {
        bool *placed = calloc(n ? n : 1, sizeof *placed);
        size_t n_placed = 0, left = n;
        if (!placed)
                return -ENOMEM;
        for (bool progress = true; progress;) {
                progress = false;
                for (size_t i = 0; i < n; i++)
                        if (!placed[i] && find_unplaced_dependency(set, n, placed, i) == n) {
                                placed[i] = progress = true;
                                n_placed++;
                        } else if (!placed[i]) {
                                left = i;
                        }
        }
        char cycle[320];
        if (n_placed < n)
                describe_cycle(set, n, placed, left, cycle, sizeof cycle);
        free(placed);
        if (n_placed == n)
                return 0;
        return hf_fail(reterr_status, HF_E_INVALID,
                       "elector %s: controllers wait for each other in a cycle: %s", label, cycle);
}

/* ---- copying ---- */

/* Copies all controllers before it checks their order, because `after` may name a later one. */
static int fill_set(const struct hf_controller *from, size_t n, const char *label,
                    struct hf_controller *set, struct hf_status *reterr_status) {
        for (size_t i = 0; i < n; i++) {
                struct hf_controller one;
                int r = hf__sized_copy_at(&sized_controller, &one, from, i, reterr_status);
                if (r != 0)
                        return r;
                if (!one.name || !*one.name || !one.run)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "elector %s: controller %zu has no %s", label, i,
                                       one.run ? "name" : "run function");
                if (hf__controller_set_find(set, i, one.name))
                        return hf_fail(reterr_status, HF_E_EXISTS,
                                       "elector %s: controller \"%s\" is registered twice", label,
                                       one.name);
                set[i] = one;
                set[i].name = strdup(one.name);
                set[i].after = copy_names(one.after, one.n_after);
                if (!set[i].name || !set[i].after)
                        return -ENOMEM;
        }
        int r = 0;
        for (size_t i = 0; i < n && r == 0; i++)
                r = check_after(set, n, &set[i], label, reterr_status);
        return r != 0 ? r : check_for_cycles(set, n, label, reterr_status);
}

int hf__controller_set_copy(const struct hf_controller *from, size_t n, const char *label,
                            struct hf_controller **ret_controllers,
                            struct hf_status *reterr_status) {
        if (n == 0) {
                *ret_controllers = NULL;
                return 0;
        }
        struct hf_controller *set = calloc(n, sizeof *set);
        int r = set ? fill_set(from, n, label, set, reterr_status) : -ENOMEM;
        if (r != 0) {
                hf__controller_set_free(set, n);
                return r;
        }
        *ret_controllers = set;
        return 0;
}

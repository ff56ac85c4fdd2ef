/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of definitions.
 *
 * Invariant: its values depend only on the definition, because the informer computes them once for
 * each version of it. Each value begins with a letter that says what it means, and contains the
 * group. So one index holds all sorts of values.
 */
#include "server/controllers/kinds/definition_index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/informer.h>
#include <holdfast/workqueue.h>

#include "base/json.h"
#include "client/informer_transform.h"
#include "server/controllers/kinds/definition_core.h"
#include "server/controllers/kinds/definition_row.h"

#define NAME_INDEX "definition-names"

/* The first letters of the values. */
#define RESOURCE 'r' /* an accepted plural, singular or short name */
#define KIND     'k' /* an accepted kind of objects or of lists */
#define WAITS    'w' /* the definition waits for a name in use; the value has "" as the name */
#define SERVES   'v' /* a version that is served */

/* Groups and names have up to 253 bytes, so no stored definition needs a longer value. */
#define VALUE_MAX 520

static void format_value(char what, const char *group, const char *name, char value[VALUE_MAX]) {
        (void)snprintf(value, VALUE_MAX, "%c%.256s/%.256s", what, group, name);
}

static void add_value(struct hf_informer_values *values, char what, const char *group,
                      const char *name) {
        char value[VALUE_MAX];

        if (!name)
                return;
        format_value(what, group, name, value);
        (void)hf_informer_values_add(values, value);
}

/* Whether some name of the definition was refused, because it is in use. */
static bool waits_for_name(const struct hf__json *definition) {
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(definition, "status.conditions"));
             m; m = hf__json_next(m))
                if (hf__json_has_text(m, "type", "NamesAccepted"))
                        return hf__json_has_text(m, "status", "False");
        return false;
}

/* The index function of the informer. A definition that cannot be parsed, other than for lack of
 * memory, has no values. Thread: the informer's. */
static void index_names(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                        struct hf_informer_values *values) {
        struct hf__json *definition;
        int r = hf__json_parse(object, n, &definition, NULL);

        if (r == -ENOMEM)
                hf_informer_values_fail(values);
        if (r != 0)
                return;
        const char *group = hf__json_string(definition, "spec.group");
        const struct hf__json *names = hf__json_path(definition, "status.acceptedNames");
        if (group) {
                add_value(values, RESOURCE, group, hf__json_string(names, "plural"));
                add_value(values, RESOURCE, group, hf__json_string(names, "singular"));
                for (const struct hf__json *m = hf__json_first(hf__json_get(names, "shortNames"));
                     m; m = hf__json_next(m))
                        add_value(values, RESOURCE, group, hf__json_text(m));
                add_value(values, KIND, group, hf__json_string(names, "kind"));
                add_value(values, KIND, group, hf__json_string(names, "listKind"));
                if (waits_for_name(definition))
                        add_value(values, WAITS, group, "");
                for (const struct hf__json *m =
                             hf__json_first(hf__json_path(definition, "spec.versions"));
                     m; m = hf__json_next(m))
                        if (hf__json_bool(m, "served", false))
                                add_value(values, SERVES, group, hf__json_string(m, "name"));
        }
        hf__json_free(definition);
}

int hfd_definition_prepare_informer(struct hf_informer *informer) {
        hf__informer_set_transform(informer, hfd_definition_reduce);
        return hf_informer_add_index(informer, NAME_INDEX, index_names, NULL);
}

/* ---- names and versions in use ---- */

static void note_found(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        *(bool *)ctx = true;
}

/* Whether a definition has the value. */
static bool is_used(struct hf_informer *informer, char what, const char *group, const char *name) {
        char value[VALUE_MAX];
        bool found = false;

        format_value(what, group, name, value);
        /* Fails only if the index does not exist; hfd_definition_prepare_informer creates it. */
        (void)hf_informer_by_index(informer, NAME_INDEX, value, note_found, &found);
        return found;
}

bool hfd_definition_uses_resource(struct hf_informer *informer, const char *group,
                                  const char *name) {
        return is_used(informer, RESOURCE, group, name);
}

bool hfd_definition_uses_kind(struct hf_informer *informer, const char *group, const char *name) {
        return is_used(informer, KIND, group, name);
}

bool hfd_definition_serves(struct hf_informer *informer, const char *group, const char *version) {
        return is_used(informer, SERVES, group, version);
}

/* ---- definitions that wait for a name ---- */

struct enqueue {
        struct hf_workqueue *queue;
        int error;
};

static void enqueue_name(void *ctx, const char *ns, const char *name, const char *object,
                         size_t n) {
        struct enqueue *enqueue = ctx;
        int r = hf_workqueue_add(enqueue->queue, name);

        if (enqueue->error == 0)
                enqueue->error = r;
}

int hfd_definition_enqueue_waiting(struct hf_informer *informer, const char *group,
                                   struct hf_workqueue *queue) {
        struct enqueue enqueue = {.queue = queue};
        char value[VALUE_MAX];

        format_value(WAITS, group, "", value);
        (void)hf_informer_by_index(informer, NAME_INDEX, value, enqueue_name, &enqueue);
        return enqueue.error;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subresources of pods that change a part of the spec: .../ephemeralcontainers adds containers,
 * .../resize changes resources, and .../binding sets the node, with labels, annotations and the
 * status.
 *
 * Invariants: a write of a subresource changes its part of the spec and no other. As in Kubernetes,
 * other changes that a client sends are ignored; only a .../resize with other containers is
 * refused. The texts of the causes are those of kube-apiserver.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/resource.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/strategies/pod/rules/secret_references.h"
#include "server/resources/workloads/workloads.h"

/* ---- merge ---- */

/* Makes the member of `to` equal to that of `from`; removes it if `from` has none. `to` is an
 * object. 0 or -ENOMEM. */
static int copy_member(struct hf__json *to, const struct hf__json *from, const char *key) {
        const struct hf__json *value = hf__json_get(from, key);

        if (value)
                return hf__json_put(to, key, hf__json_dup(value));
        hf__json_drop(to, key);
        return 0;
}

/* Whether both lists have containers with the same names in the same order, so that they can be
 * merged one by one. */
static bool have_same_names(const struct hf__json *a, const struct hf__json *b) {
        const struct hf__json *x = hf__json_first(a), *y = hf__json_first(b);

        while (x && y && strcmp(hfd_text_of(x, "name"), hfd_text_of(y, "name")) == 0) {
                x = hf__json_next(x);
                y = hf__json_next(y);
        }
        return !x && !y;
}

/* Copies resources and resizePolicy from each container of `from`. If the names of the containers
 * or their order differ, the whole list is copied. The validation (pod_resize.c) then sees and
 * refuses differences that a resize may not make. to, from: specs. 0 or -ENOMEM. */
static int merge_containers(struct hf__json *to, const struct hf__json *from, const char *key) {
        struct hf__json *list = hf__json_get(to, key), *m = hf__json_first(list);
        const struct hf__json *wanted = hf__json_get(from, key);
        int r = 0;

        if (!have_same_names(list, wanted))
                return copy_member(to, from, key);
        for (const struct hf__json *w = hf__json_first(wanted); w && r == 0;
             w = hf__json_next(w), m = hf__json_next(m)) {
                r = copy_member(m, w, "resources");
                if (r == 0)
                        r = copy_member(m, w, "resizePolicy");
        }
        return r;
}

/* `from` is the pod as the server has bound it (registry/parts), not what a client has sent. 0 or
 * -ENOMEM. */
static int merge_binding(struct hf__json *to, const struct hf__json *from) {
        static const char *const of_metadata[] = {"labels", "annotations"};
        int r = copy_member(hf__json_get(to, "spec"), hf__json_get(from, "spec"), "nodeName");

        for (size_t i = 0; i < 2 && r == 0; i++)
                r = copy_member(hf__json_get(to, "metadata"), hf__json_get(from, "metadata"),
                                of_metadata[i]);
        return r == 0 ? copy_member(to, from, "status") : r;
}

/* hfd_part_rules.merge: `to` and `from` are pods. */
static int merge_part(enum hfd_subresource part, struct hf__json *to, const struct hf__json *from) {
        struct hf__json *spec = hf__json_get(to, "spec");
        const struct hf__json *from_spec = hf__json_get(from, "spec");

        if (part == HFD_SUB_BINDING)
                return merge_binding(to, from);
        if (part == HFD_SUB_EPHEMERAL_CONTAINERS)
                return copy_member(spec, from_spec, "ephemeralContainers");
        int r = merge_containers(spec, from_spec, "containers");
        if (r == 0)
                r = merge_containers(spec, from_spec, "initContainers");
        return r == 0 ? copy_member(spec, from_spec, "resources") : r;
}

/* ---- the configuration of an apply ---- */

static bool is_listed(const char *key, const char *const *keys) {
        while (*keys && strcmp(key, *keys) != 0)
                keys++;
        return *keys;
}

/* Removes all members whose keys are not listed. keys ends with NULL. */
static void keep_only(struct hf__json *object, const char *const *keys) {
        struct hf__json *next;

        for (struct hf__json *m = hf__json_first(object); m; m = next) {
                next = hf__json_next(m);
                if (!is_listed(hf__json_key(m), keys))
                        hf__json_free(hf__json_detach(object, m));
        }
}

/* hfd_part_rules.restrict_config: without it, the manager of an apply would own fields that the
 * subresource ignores. A Binding cannot be applied. */
static int restrict_config(enum hfd_subresource part, struct hf__json *config) {
        static const char *const of_ephemeral[] = {"ephemeralContainers", NULL},
                                 *const of_resize[] = {"containers", "initContainers", "resources",
                                                       NULL},
                                 *const of_container[] = {"name", "resources", "resizePolicy",
                                                          NULL};
        struct hf__json *spec = hf__json_get(config, "spec");

        keep_only(spec, part == HFD_SUB_RESIZE ? of_resize : of_ephemeral);
        for (size_t i = 0; part == HFD_SUB_RESIZE && i < 2; i++) /* the lists of containers */
                for (struct hf__json *m = hf__json_first(hf__json_get(spec, of_resize[i])); m;
                     m = hf__json_next(m))
                        keep_only(m, of_container);
        return 0;
}

/* ---- validation ---- */

/* Ephemeral containers can be added, but neither changed nor removed: they may already run. A
 * member that a typed client leaves out because it is zero has not changed. */
static void validate_ephemeral(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        static const char field[] = "spec.ephemeralContainers";
        const struct hf__json *list = hf__json_path(object, field);
        struct hf__json_index names;
        char why[400];

        if (hfd_causes_check(causes, hf__json_index_init(&names, list, "name")))
                for (const struct hf__json *m = hf__json_first(hf__json_path(old, field)); m;
                     m = hf__json_next(m)) {
                        const char *name = hfd_text_of(m, "name");
                        const struct hf__json_index_entry *now = hf__json_index_find(&names, name);
                        if (now && hfd_causes_equal_by(causes, &hfd_ephemeral_container_schema,
                                                       now->item, m))
                                continue;
                        (void)snprintf(why, sizeof why,
                                       "existing ephemeral containers \"%.300s\" may not be %s\n",
                                       name, now ? "changed" : "removed");
                        hfd_cause_forbidden(causes, field, why);
                }
        hf__json_index_done(&names);
}

static void validate_part(enum hfd_subresource part, const struct hf__json *object,
                          const struct hf__json *old, struct hfd_causes *causes) {
        bool resize = part == HFD_SUB_RESIZE;

        if (part == HFD_SUB_BINDING)
                return; /* the server made the change from a Binding, which it has validated */
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *spec = hfd_pod_formed_spec(hf__json_get(object, "spec"), causes);
        if (!spec)
                return;
        hfd_pod_validate_changed_spec(spec, hf__json_get(old, "spec"), causes);
        if (hfd_pod_is_mirror(old)) {
                /* The kubelet runs the pod from a file, so a change of the object would have no
                 * effect. Kubernetes reports only this cause. */
                causes->n = 0;
                hfd_cause_forbidden(causes, "[]",
                                    resize ? "static pods cannot be resized"
                                           : "static pods do not support ephemeral containers");
        } else if (resize) {
                hfd_pod_validate_resize(object, old, causes);
        } else {
                validate_ephemeral(object, old, causes);
        }
}

const struct hfd_part_rules hfd_pod_part_rules = {.of = HFD_SUB_EPHEMERAL_CONTAINERS |
                                                        HFD_SUB_RESIZE | HFD_SUB_BINDING,
                                                  .merge = merge_part,
                                                  .restrict_config = restrict_config,
                                                  .validate = validate_part};

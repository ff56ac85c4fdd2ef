/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotations for AppArmor of pods. Before containers had the field appArmorProfile, an annotation
 * of the pod named the profile of a container. A new pod gets the field from the annotation; the
 * field adds no annotation (Kubernetes does that until 1.33 only). The annotations of a pod stay as
 * they are. app_armor.c has the rules that pods share with templates.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Annotations are found by an index: a client chooses how many
 * of them and how many containers there are.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

/* ---- from the annotation to the field ---- */

/* Whether the pod's profile, which holds for containers without one, is the same. */
static bool is_same(const struct hf__json *field, const struct hfd_app_armor *profile) {
        const char *name = hf__json_string(field, "localhostProfile");

        if (!field || strcmp(hfd_text_of(field, "type"), profile->type) != 0)
                return false;
        return name && profile->profile ? strcmp(name, profile->profile) == 0
                                        : !name && !profile->profile;
}

/* An annotation that is no valid profile is left to the validation. 0 or -ENOMEM. */
static int copy_profile(struct hf__json *container, const char *annotation,
                        const struct hf__json *of_pod) {
        static const char field[] = "securityContext.appArmorProfile";
        struct hfd_app_armor profile = hfd_app_armor_of_annotation(annotation);

        if (hf__json_path(container, field) || !profile.type || is_same(of_pod, &profile) ||
            (profile.profile && !hfd_app_armor_is_profile(profile.profile)))
                return 0;
        int r = hf__json_set_string(container, "securityContext.appArmorProfile.type",
                                    profile.type);
        return r == 0 && profile.profile
                       ? hf__json_set_string(container,
                                             "securityContext.appArmorProfile.localhostProfile",
                                             profile.profile)
                       : r;
}

int hfd_pod_copy_app_armor(struct hf__json *object) {
        struct hf__json *spec = hf__json_get(object, "spec");
        const struct hf__json *annotations = hf__json_path(object, "metadata.annotations"),
                              *of_pod = hf__json_path(spec, "securityContext.appArmorProfile");
        struct hf__json_index by_key;

        if (!hfd_app_armor_is_in_use(annotations, spec))
                return 0;
        int r = hf__json_index_init(&by_key, annotations, NULL);
        for (size_t i = 0; i < sizeof lists / sizeof lists[0] && r == 0; i++)
                for (struct hf__json *m = hf__json_first(hf__json_get(spec, lists[i])); m && r == 0;
                     m = hf__json_next(m)) {
                        const char *annotation = hfd_app_armor_find(&by_key, m);
                        if (annotation)
                                r = copy_profile(m, annotation, of_pod);
                }
        hf__json_index_done(&by_key);
        return r;
}

/* ---- updates ---- */

/* Adds a cause for each annotation of `from` for AppArmor that `to` does not have, or, if values,
 * that has another value there. */
static void refuse_missing(const struct hf__json *from, const struct hf__json *to, bool values,
                           const char *why, struct hfd_causes *causes) {
        struct hf__json_index by_key;
        char path[HFD_FIELD_PATH_MAX];

        if (!hfd_app_armor_is_annotated(from) ||
            !hfd_causes_check(causes, hf__json_index_init(&by_key, to, NULL)))
                return;
        for (const struct hf__json *m = hf__json_first(from); m; m = hf__json_next(m)) {
                const struct hf__json_index_entry *same =
                        hf__json_index_find(&by_key, hf__json_key(m));
                if (!hfd_app_armor_is_key(hf__json_key(m)) ||
                    (same && (!values || hfd_causes_equal(causes, same->item, m))))
                        continue;
                (void)snprintf(path, sizeof path, "metadata.annotations[%s]", hf__json_key(m));
                hfd_cause_forbidden(causes, path, why);
        }
        hf__json_index_done(&by_key);
}

void hfd_pod_validate_app_armor_update(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes) {
        const struct hf__json *annotations = hf__json_path(object, "metadata.annotations"),
                              *old_annotations = hf__json_path(old, "metadata.annotations");

        refuse_missing(old_annotations, annotations, true,
                       "may not remove or update AppArmor annotations", causes);
        refuse_missing(annotations, old_annotations, false, "may not add AppArmor annotations",
                       causes);
}

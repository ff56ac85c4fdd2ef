/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotations for AppArmor of pods. Before containers had the field appArmorProfile, an annotation
 * of the pod named the profile of a container. A new pod gets the field from the annotation; the
 * field adds no annotation (Kubernetes does that until 1.33 only). app_armor.c has the rules that
 * pods share with templates, and pod_annotations.c those of updates.
 *
 * Invariant: annotations are found by an index, because a client chooses how many of them and how
 * many containers there are.
 */
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

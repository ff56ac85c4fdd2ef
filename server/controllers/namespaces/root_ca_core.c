/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of kube-root-ca.crt.
 *
 * Invariant: for a ConfigMap that hfd_root_ca_restore has written, hfd_root_ca_next returns
 * HFD_ROOT_CA_KEEP. Otherwise the controller would write for ever.
 */
#include "server/controllers/namespaces/root_ca_core.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"

#define KEY        "ca.crt"
#define ANNOTATION "kubernetes.io/description"
/* Kubernetes' text, which users search for. */
#define DESCRIPTION                                                                                \
        "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "  \
        "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "  \
        "guaranteed across distributions of Kubernetes clusters."

static bool has_data(const struct hf__json *map, const char *pem) {
        const struct hf__json *data = hf__json_get(map, "data"), *value = hf__json_get(data, KEY);

        return hf__json_count(data) == 1 && hf__json_is_string(value) &&
               strcmp(hf__json_text(value), pem) == 0;
}

/* Whether the ConfigMap has a description. Any text is accepted: an administrator may have
 * translated it. */
static bool is_described(const struct hf__json *map) {
        const struct hf__json *text =
                hf__json_get(hf__json_path(map, "metadata.annotations"), ANNOTATION);

        return hf__json_is_string(text) && *hf__json_text(text);
}

enum hfd_root_ca_step hfd_root_ca_next(const struct hf__json *map, const char *pem) {
        if (!has_data(map, pem))
                return hf__json_bool(map, "immutable", false) ? HFD_ROOT_CA_REPLACE
                                                              : HFD_ROOT_CA_UPDATE;
        return is_described(map) ? HFD_ROOT_CA_KEEP : HFD_ROOT_CA_UPDATE;
}

int hfd_root_ca_restore(struct hf__json *map, const char *pem) {
        struct hf__json *data = hf__json_object(), *annotations;
        /* hf__json_set_string would take the dot in KEY as a separator of a path. */
        int r = data ? hf__json_put_string(data, KEY, pem) : -ENOMEM;

        if (r != 0) {
                hf__json_free(data);
                return r;
        }
        r = hf__json_set(map, "data", data);
        if (r != 0 || is_described(map))
                return r;
        annotations = hf__json_path(map, "metadata.annotations");
        if (!hf__json_is_object(annotations)) {
                r = hf__json_set(map, "metadata.annotations", hf__json_object());
                annotations = hf__json_path(map, "metadata.annotations");
        }
        return r == 0 ? hf__json_put_string(annotations, ANNOTATION, DESCRIPTION) : r;
}

int hfd_root_ca_new(const char *pem, struct hf__json **ret_map) {
        struct hf__json *map = hf__json_object();
        int r = map ? 0 : -ENOMEM;

        if (r == 0)
                r = hf__json_set_string(map, "apiVersion", "v1");
        if (r == 0)
                r = hf__json_set_string(map, "kind", "ConfigMap");
        if (r == 0)
                r = hf__json_set_string(map, "metadata.name", HFD_ROOT_CA_NAME);
        if (r == 0)
                r = hfd_root_ca_restore(map, pem);
        if (r == 0)
                *ret_map = map;
        else
                hf__json_free(map);
        return r;
}

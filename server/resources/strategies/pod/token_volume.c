/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the volume with the token of the service account to a new pod, as kube-apiserver's admission
 * plug-in ServiceAccount does.
 *
 * Invariant: the pod has its defaults already, and they are set again only if admission changes it.
 * So everything that is added here has all the members that the defaults would set
 * (pod_defaults.c), such as defaultMode.
 */
#include "server/resources/strategies/pod/token_volume.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/meta.h"

#define VOLUME_PREFIX "kube-api-access-"
#define MOUNT_PATH    "/var/run/secrets/kubernetes.io/serviceaccount"

/*
 * The sources of the volume: the token, the certificate of the cluster's CA, and the namespace.
 *
 * Kubernetes' number 3607 marks a token that was mounted automatically, because no user would
 * choose it. There such a token may be valid for much longer than these seconds, for old clients
 * that read it only once.
 */
static const char source[] =
        "{\"defaultMode\":420,\"sources\":["
        "{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},"
        "{\"configMap\":{\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}],"
        "\"name\":\"kube-root-ca.crt\"}},"
        "{\"downwardAPI\":{\"items\":[{\"fieldRef\":{\"apiVersion\":\"v1\","
        "\"fieldPath\":\"metadata.namespace\"},\"path\":\"namespace\"}]}}]}";

/* The array at `key`, which is created if there is none. Borrowed from the object. NULL: out of
 * memory. */
static struct hf__json *array_of(struct hf__json *object, const char *key) {
        struct hf__json *array = hf__json_get(object, key);

        if (hf__json_is_array(array))
                return array;
        if (hf__json_put(object, key, hf__json_array()) != 0)
                return NULL;
        return hf__json_get(object, key);
}

/* Whether the container has mounted something at the path already, which it keeps. */
static bool has_mount(const struct hf__json *container) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(container, "volumeMounts")); m;
             m = hf__json_next(m))
                if (hf__json_has_text(m, "mountPath", MOUNT_PATH))
                        return true;
        return false;
}

/* Appends the object, or frees it after an error: r is the result of its construction. array or
 * object NULL counts as out of memory. 0 or -ENOMEM. */
static int append_object(struct hf__json *array, struct hf__json *object, int r) {
        if (r != 0 || !array || !object) {
                hf__json_free(object);
                return r != 0 ? r : -ENOMEM;
        }
        return hf__json_append(array, object);
}

/* Mounts the volume with this name in a container. 0 or -ENOMEM. */
static int add_mount(struct hf__json *container, const char *volume) {
        struct hf__json *added = hf__json_object();
        int r = added ? hf__json_put_string(added, "mountPath", MOUNT_PATH) : -ENOMEM;

        if (r == 0)
                r = hf__json_put_string(added, "name", volume);
        if (r == 0)
                r = hf__json_set_bool(added, "readOnly", true);
        return append_object(array_of(container, "volumeMounts"), added, r);
}

/* *mounted becomes true if a container needed the volume; else it stays as it is. 0 or -ENOMEM. */
static int mount_in_containers(struct hf__json *containers, const char *volume, bool *mounted) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(containers); m && r == 0; m = hf__json_next(m)) {
                if (has_mount(m))
                        continue;
                r = add_mount(m, volume);
                *mounted = true;
        }
        return r;
}

/* 0 or -ENOMEM. */
static int add_volume(struct hf__json *spec, const char *name) {
        struct hf__json *added = hf__json_object(), *projected = NULL;
        int r = added ? hf__json_put_string(added, "name", name) : -ENOMEM;

        if (r == 0)
                r = hf__json_parse(source, sizeof source - 1, &projected, NULL);
        if (r == 0)
                r = hf__json_put(added, "projected", projected);
        return append_object(array_of(spec, "volumes"), added, r);
}

/* The name of the first volume with the prefix, which the client may have sent, for example in a
 * copy of another pod. NULL = there is none. Borrowed from the spec. */
static const char *find_volume(const struct hf__json *spec) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "volumes")); m;
             m = hf__json_next(m)) {
                const char *name = hf__json_string(m, "name");
                if (name && strncmp(name, VOLUME_PREFIX, sizeof VOLUME_PREFIX - 1) == 0)
                        return name;
        }
        return NULL;
}

int hfd_pod_mount_token(struct hf__json *spec) {
        char generated[HFD_GENERATED_NAME_MAX];
        const char *found = find_volume(spec), *name = found ? found : generated;
        bool mounted = false;
        int r = found ? 0 : hfd_meta_make_name(VOLUME_PREFIX, generated);

        if (r == 0)
                r = mount_in_containers(hf__json_get(spec, "initContainers"), name, &mounted);
        if (r == 0)
                r = mount_in_containers(hf__json_get(spec, "containers"), name, &mounted);
        return r == 0 && mounted && !found ? add_volume(spec, name) : r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of a pod template, which are those of kube-apiserver. A pod itself has some more
 * (hfd_pod_prepare).
 *
 * Most defaults are rows of tables (struct member) for one kind of object: the spec, a container, a
 * port. Functions set those that depend on other members, such as the pull policy of an image.
 *
 * Invariant: a template that has its defaults is not changed again. Otherwise an update that
 * changes nothing would make a new version.
 */
#include "server/resources/strategies/pod/pod_defaults.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

/* One member that is set if it is absent. */
struct member {
        const char *key;
        /* The value; "{}": an empty object; "false": the boolean; NULL: the value is `number`. */
        const char *text;
        int64_t number;
        /* The member is not a pointer in Kubernetes' Go type, so 0 or "" counts as absent. */
        bool zero_is_absent;
};

#define N_MEMBERS(table) (sizeof(table) / sizeof(table)[0])

static const struct member template_members[] = {{"metadata", "{}"}, {"spec", "{}"}};
static const struct member spec_members[] = {{"restartPolicy", "Always", 0, true},
                                             {"terminationGracePeriodSeconds", NULL, 30},
                                             {"dnsPolicy", "ClusterFirst", 0, true},
                                             {"securityContext", "{}"},
                                             {"schedulerName", "default-scheduler", 0, true}};
static const struct member container_members[] = {{"resources", "{}"},
                                                  {"terminationMessagePath", "/dev/termination-log",
                                                   0, true},
                                                  {"terminationMessagePolicy", "File", 0, true}};
static const struct member port_members[] = {{"protocol", "TCP", 0, true}};
static const struct member probe_members[] = {{"timeoutSeconds", NULL, 1, true},
                                              {"periodSeconds", NULL, 10, true},
                                              {"successThreshold", NULL, 1, true},
                                              {"failureThreshold", NULL, 3, true}};
static const struct member http_members[] = {{"path", "/", 0, true}, {"scheme", "HTTP", 0, true}};
static const struct member grpc_members[] = {{"service", ""}};
static const struct member field_members[] = {{"apiVersion", "v1", 0, true}};
static const struct member resource_members[] = {{"divisor", "0"}};
static const struct member file_members[] = {{"optional", "false"}};

/* ---- members ---- */

/* value: what the object has at the member's key, or NULL. */
static bool is_absent(const struct hf__json *value, const struct member *member) {
        if (!value)
                return true;
        if (!member->zero_is_absent)
                return false;
        return hf__json_is_string(value) ? !*hf__json_text(value) : hf__json_number(value) == 0;
}

/* Sets the n members of an object that are absent. object NULL, or of another type: there is
 * nothing to set. 0 or -ENOMEM. */
static int set_members(struct hf__json *object, const struct member *members, size_t n) {
        int r = 0;

        for (size_t i = 0; hf__json_is_object(object) && i < n && r == 0; i++) {
                const struct member *member = &members[i];
                if (!is_absent(hf__json_get(object, member->key), member))
                        continue;
                if (!member->text)
                        r = hf__json_set_i64(object, member->key, member->number);
                else if (strcmp(member->text, "{}") == 0)
                        r = hf__json_put(object, member->key, hf__json_object());
                else if (strcmp(member->text, "false") == 0)
                        r = hf__json_set_bool(object, member->key, false);
                else
                        r = hf__json_put_string(object, member->key, member->text);
        }
        return r;
}

/* The same for all elements of a list. */
static int set_in_elements(struct hf__json *list, const struct member *members, size_t n) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m))
                r = set_members(m, members, n);
        return r;
}

/* source: a valueFrom of a variable, or an item of downwardAPI, in a volume or a projection. Both
 * can refer to a field of the pod, or to a resource of a container; a variable also to a key in a
 * file. NULL: there is nothing to set. 0 or -ENOMEM. */
static int set_references(struct hf__json *source) {
        int r = set_members(hf__json_get(source, "fieldRef"), field_members,
                            N_MEMBERS(field_members));

        if (r == 0)
                r = set_members(hf__json_get(source, "fileKeyRef"), file_members,
                                N_MEMBERS(file_members));
        return r == 0 ? set_members(hf__json_get(source, "resourceFieldRef"), resource_members,
                                    N_MEMBERS(resource_members))
                      : r;
}

/* ---- images ---- */

/*
 * Whether the image that the name refers to may change, because its tag is "latest": written out,
 * or implied if the name has neither a tag nor a digest. The name has the form
 * [HOST[:PORT]/]PATH[:TAG][@DIGEST], so only a colon after the last slash begins a tag. As in
 * Kubernetes, the tag "latest" counts even if a digest follows. An empty name, which only an image
 * volume of a template may have, is not "latest".
 */
static bool is_latest(const char *image) {
        const char *digest = strchr(image, '@'), *slash = strrchr(image, '/');
        const char *tag = strchr(slash ? slash : image, ':');

        if (!*image)
                return false;
        if (!tag || (digest && tag > digest))
                return !digest;
        return digest ? (size_t)(digest - tag) == 7 && strncmp(tag, ":latest", 7) == 0
                      : strcmp(tag, ":latest") == 0;
}

/* Sets the pull policy at `key` if there is none. name: the key of the image's name. An image that
 * may change is pulled at each start of a container. 0 or -ENOMEM. */
static int set_pull_policy(struct hf__json *object, const char *key, const char *name) {
        const char *image = hf__json_text(hf__json_get(object, name));
        const struct member member = {key, image && is_latest(image) ? "Always" : "IfNotPresent", 0,
                                      true};

        return set_members(object, &member, 1);
}

/* ---- containers ---- */

/* handler: a probe or a lifecycle hook; NULL: there is nothing to set. 0 or -ENOMEM. */
static int set_handler(struct hf__json *handler) {
        int r = set_members(hf__json_get(handler, "httpGet"), http_members,
                            N_MEMBERS(http_members));

        return r == 0 ? set_members(hf__json_get(handler, "grpc"), grpc_members,
                                    N_MEMBERS(grpc_members))
                      : r;
}

static int set_container(struct hf__json *container) {
        static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
        struct hf__json *lifecycle = hf__json_get(container, "lifecycle");
        int r = set_pull_policy(container, "imagePullPolicy", "image");

        if (r == 0)
                r = set_members(container, container_members, N_MEMBERS(container_members));
        if (r == 0)
                r = set_in_elements(hf__json_get(container, "ports"), port_members,
                                    N_MEMBERS(port_members));
        for (struct hf__json *m = hf__json_first(hf__json_get(container, "env")); m && r == 0;
             m = hf__json_next(m))
                r = set_references(hf__json_get(m, "valueFrom"));
        for (size_t i = 0; i < 3 && r == 0; i++) {
                struct hf__json *probe = hf__json_get(container, probes[i]);
                r = set_members(probe, probe_members, N_MEMBERS(probe_members));
                if (r == 0)
                        r = set_handler(probe);
        }
        if (r == 0)
                r = set_handler(hf__json_get(lifecycle, "postStart"));
        return r == 0 ? set_handler(hf__json_get(lifecycle, "preStop")) : r;
}

static int set_containers(struct hf__json *spec) {
        static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
        int r = 0;

        for (size_t i = 0; i < 3; i++)
                for (struct hf__json *m = hf__json_first(hf__json_get(spec, lists[i])); m && r == 0;
                     m = hf__json_next(m))
                        r = set_container(m);
        return r;
}

/* ---- volumes ---- */

/* The defaults of volume sources. The order counts where a row creates the parent of a later one.
 */
static const struct {
        const char *source; /* a path in the volume */
        struct member member;
} source_members[] = {
        {"secret", {"defaultMode", NULL, 0644}},
        {"configMap", {"defaultMode", NULL, 0644}},
        {"downwardAPI", {"defaultMode", NULL, 0644}},
        {"projected", {"defaultMode", NULL, 0644}},
        {"hostPath", {"type", ""}},
        {"iscsi", {"iscsiInterface", "default", 0, true}},
        {"rbd", {"pool", "rbd", 0, true}},
        {"rbd", {"user", "admin", 0, true}},
        {"rbd", {"keyring", "/etc/ceph/keyring", 0, true}},
        {"azureDisk", {"cachingMode", "ReadWrite"}},
        {"azureDisk", {"kind", "Shared"}},
        {"azureDisk", {"fsType", "ext4"}},
        {"azureDisk", {"readOnly", "false"}},
        {"scaleIO", {"storageMode", "ThinProvisioned", 0, true}},
        {"scaleIO", {"fsType", "xfs", 0, true}},
        {"ephemeral.volumeClaimTemplate", {"spec", "{}"}},
        {"ephemeral.volumeClaimTemplate.spec", {"resources", "{}"}},
        {"ephemeral.volumeClaimTemplate.spec", {"volumeMode", "Filesystem"}},
};

int hfd_volume_source_default(struct hf__json *volume) {
        int r = 0;

        for (size_t i = 0; i < N_MEMBERS(source_members) && r == 0; i++)
                r = set_members(hf__json_path(volume, source_members[i].source),
                                &source_members[i].member, 1);
        return r;
}

static int set_all_references(struct hf__json *items) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(items); m && r == 0; m = hf__json_next(m))
                r = set_references(m);
        return r;
}

/* sources: the list of a projected volume. 0 or -ENOMEM. */
static int set_projections(struct hf__json *sources) {
        static const struct member expiry = {"expirationSeconds", NULL, 3600};
        int r = 0;

        for (struct hf__json *m = hf__json_first(sources); m && r == 0; m = hf__json_next(m)) {
                r = set_members(hf__json_get(m, "serviceAccountToken"), &expiry, 1);
                if (r == 0)
                        r = set_all_references(hf__json_path(m, "downwardAPI.items"));
        }
        return r;
}

/* A volume that has a name and nothing else is an emptyDir, which has no defaults of its own. 0 or
 * -ENOMEM. */
static int set_volume(struct hf__json *volume) {
        static const struct member empty = {"emptyDir", "{}"};
        bool has_source = false;
        int r = 0;

        if (!hf__json_is_object(volume)) /* only in the store, see default_old in update.c */
                return 0;
        for (const struct hf__json *m = hf__json_first(volume); m; m = hf__json_next(m))
                has_source = has_source || strcmp(hf__json_key(m), "name") != 0;
        if (!has_source)
                return set_members(volume, &empty, 1);
        r = hfd_volume_source_default(volume);
        if (r == 0 && hf__json_get(volume, "image"))
                r = set_pull_policy(hf__json_get(volume, "image"), "pullPolicy", "reference");
        if (r == 0)
                r = set_all_references(hf__json_path(volume, "downwardAPI.items"));
        return r == 0 ? set_projections(hf__json_path(volume, "projected.sources")) : r;
}

/* ---- the template ---- */

/* serviceAccount is the old name of serviceAccountName. Both always have the same value, so that
 * old and new clients see it; if they differ, the new name counts. 0 or -ENOMEM. */
static int set_account(struct hf__json *spec) {
        const char *name = hf__json_string(spec, "serviceAccountName"),
                   *old_name = hf__json_string(spec, "serviceAccount");
        int r = 0;

        if (name && *name)
                r = hf__json_put_string(spec, "serviceAccount", name);
        else if (old_name && *old_name)
                r = hf__json_put_string(spec, "serviceAccountName", old_name);
        return r;
}

int hfd_pod_spec_default(struct hf__json *spec) {
        int r = set_members(spec, spec_members, N_MEMBERS(spec_members));

        if (r == 0)
                r = set_account(spec);
        if (r == 0)
                r = set_containers(spec);
        for (struct hf__json *m = hf__json_first(hf__json_get(spec, "volumes")); m && r == 0;
             m = hf__json_next(m))
                r = set_volume(m);
        return r;
}

int hfd_pod_template_default(struct hf__json *object, const char *key) {
        const struct member member = {key, "{}"};
        int r = set_members(object, &member, 1);
        struct hf__json *template = hf__json_get(object, key);

        if (r == 0)
                r = set_members(template, template_members, N_MEMBERS(template_members));
        return r == 0 ? hfd_pod_spec_default(hf__json_get(template, "spec")) : r;
}

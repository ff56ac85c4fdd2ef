/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Secrets that a pod uses. Kubernetes' admission plug-in ServiceAccount has the same checks.
 *
 * Invariants: has_secrets knows every place in which a pod can name a Secret. In Kubernetes a
 * kubelet may read the Secrets of the pods on its node, and it creates mirror pods itself. With a
 * place missing, it could read any Secret of a namespace. The messages are those of kube-apiserver.
 */
#include "server/resources/strategies/pod/rules/secret_references.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

/* NULL = the object has no annotation with this key. */
static const struct hf__json *annotation(const struct hf__json *object, const char *key) {
        return hf__json_get(hf__json_path(object, "metadata.annotations"), key);
}

/* ---- mirror pods ---- */

bool hfd_pod_is_mirror(const struct hf__json *pod) {
        return annotation(pod, HFD_MIRROR_POD) != NULL;
}

static bool has_text(const struct hf__json *object, const char *path) {
        const char *text = hf__json_string(object, path);

        return text && *text;
}

static bool any_has(const struct hf__json *list, const char *path) {
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (has_text(m, path))
                        return true;
        return false;
}

/* The list has all volume sources of the schema (volumes.c, cloud_volumes.c) that can name a
 * Secret, except projected ones, which can name several. */
static bool volume_has_secret(const struct hf__json *volume) {
        static const char *const paths[] =
                {"azureFile.secretName",      "cephfs.secretRef.name",
                 "cinder.secretRef.name",     "csi.nodePublishSecretRef.name",
                 "flexVolume.secretRef.name", "iscsi.secretRef.name",
                 "rbd.secretRef.name",        "scaleIO.secretRef.name",
                 "secret.secretName",         "storageos.secretRef.name"};

        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
                if (has_text(volume, paths[i]))
                        return true;
        return any_has(hf__json_path(volume, "projected.sources"), "secret.name");
}

static bool has_secrets(const struct hf__json *spec) {
        static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};

        if (any_has(hf__json_get(spec, "imagePullSecrets"), "name"))
                return true;
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
                for (const struct hf__json *m = hf__json_first(hf__json_get(spec, lists[i])); m;
                     m = hf__json_next(m))
                        if (any_has(hf__json_get(m, "envFrom"), "secretRef.name") ||
                            any_has(hf__json_get(m, "env"), "valueFrom.secretKeyRef.name"))
                                return true;
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "volumes")); m;
             m = hf__json_next(m))
                if (volume_has_secret(m))
                        return true;
        return false;
}

/* Whether a volume of the pod gets a token of a service account. */
static bool has_tokens(const struct hf__json *spec) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "volumes")); m;
             m = hf__json_next(m))
                for (const struct hf__json *s =
                             hf__json_first(hf__json_path(m, "projected.sources"));
                     s; s = hf__json_next(s))
                        if (hf__json_get(s, "serviceAccountToken"))
                                return true;
        return false;
}

const char *hfd_mirror_pod_mistake(const struct hf__json *pod) {
        const struct hf__json *spec = hf__json_get(pod, "spec");

        if (has_text(spec, "serviceAccountName"))
                return "a mirror pod may not reference service accounts";
        if (has_secrets(spec))
                return "a mirror pod may not reference secrets";
        if (has_tokens(spec))
                return "a mirror pod may not use ServiceAccountToken volume projections";
        return NULL;
}

/* ---- the Secrets of a service account ---- */

bool hfd_account_limits_secrets(const struct hf__json *account) {
        /* The texts that Go's strconv.ParseBool reads as true. */
        static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
        const struct hf__json *value =
                annotation(account, "kubernetes.io/enforce-mountable-secrets");

        for (size_t i = 0; hf__json_is_string(value) && i < sizeof yes / sizeof yes[0]; i++)
                if (strcmp(hf__json_text(value), yes[i]) == 0)
                        return true;
        return false;
}

/* Sorted names, borrowed from the account. */
struct names {
        const char **of; /* owned */
        size_t n;
};

/* Collects the member `name` of all elements. The caller frees ret_names->of, also after a failure.
 * 0 or -ENOMEM. */
static int collect_names(const struct hf__json *list, struct names *ret_names) {
        size_t n = hf__json_count(list);

        *ret_names = (struct names){.of = calloc(n + 1, sizeof(char *))};
        if (!ret_names->of)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                ret_names->of[ret_names->n++] = hfd_text_of(m, "name");
        qsort(ret_names->of, n, sizeof(char *), hf__text_compare);
        return 0;
}

static bool contains_name(const struct names *names, const char *name) {
        return bsearch(&name, names->of, names->n, sizeof(char *), hf__text_compare) != NULL;
}

/* The common state of the checks. A check returns false after it has written a message to `why`:
 * the first forbidden Secret ends the search. */
struct check {
        const struct names *allowed; /* names of Secrets; borrowed */
        const char *account;         /* the name of the service account */
        struct hf__strbuf *why;      /* borrowed; an error stays in it */
};

static bool check_volumes(const struct check *c, const struct hf__json *volumes) {
        for (const struct hf__json *m = hf__json_first(volumes); m; m = hf__json_next(m)) {
                const struct hf__json *secret = hf__json_get(m, "secret");
                const char *name = hfd_text_of(secret, "secretName");
                if (!secret || contains_name(c->allowed, name))
                        continue;
                hf__strbuf_printf(c->why,
                                  "volume with secret.secretName=\"%s\" is not allowed because "
                                  "service account %s does not reference that secret",
                                  name, c->account);
                return false;
        }
        return true;
}

/* reference: the Secret that a variable of a container uses; NULL = it uses none. variable NULL:
 * the reference is in envFrom. prefix: the kind of container in the message. */
static bool check_secret(const struct check *c, const char *prefix,
                         const struct hf__json *container, const struct hf__json *variable,
                         const struct hf__json *reference) {
        const char *name = hfd_text_of(reference, "name");

        if (!reference || contains_name(c->allowed, name))
                return true;
        hf__strbuf_printf(c->why, "%s %s with ", prefix, hfd_text_of(container, "name"));
        if (variable)
                hf__strbuf_printf(c->why, "envVar %s", hfd_text_of(variable, "name"));
        else
                hf__strbuf_puts(c->why, "envFrom");
        hf__strbuf_printf(c->why,
                          " referencing secret.secretName=\"%s\" is not allowed because service "
                          "account %s does not reference that secret",
                          name, c->account);
        return false;
}

static bool check_containers(const struct check *c, const char *prefix,
                             const struct hf__json *containers) {
        for (const struct hf__json *m = hf__json_first(containers); m; m = hf__json_next(m)) {
                for (const struct hf__json *e = hf__json_first(hf__json_get(m, "env")); e;
                     e = hf__json_next(e))
                        if (!check_secret(c, prefix, m, e,
                                          hf__json_path(e, "valueFrom.secretKeyRef")))
                                return false;
                for (const struct hf__json *e = hf__json_first(hf__json_get(m, "envFrom")); e;
                     e = hf__json_next(e))
                        if (!check_secret(c, prefix, m, NULL, hf__json_get(e, "secretRef")))
                                return false;
        }
        return true;
}

/* c->allowed has the account's imagePullSecrets here, not its secrets. */
static bool check_pull_secrets(const struct check *c, const struct hf__json *references) {
        unsigned i = 0;

        for (const struct hf__json *m = hf__json_first(references); m; m = hf__json_next(m), i++) {
                const char *name = hfd_text_of(m, "name");
                if (contains_name(c->allowed, name))
                        continue;
                hf__strbuf_printf(c->why,
                                  "imagePullSecrets[%u].name=\"%s\" is not allowed because service "
                                  "account %s does not reference that imagePullSecret",
                                  i, name, c->account);
                return false;
        }
        return true;
}

int hfd_pod_check_secrets(const struct hf__json *spec, const struct hf__json *account,
                          struct hf__strbuf *why) {
        const char *name = hf__json_string(account, "metadata.name");
        struct names secrets = {0}, pull_secrets = {0};
        struct check check = {.allowed = &secrets, .account = name ? name : "", .why = why};
        int r = collect_names(hf__json_get(account, "secrets"), &secrets);

        if (r == 0)
                r = collect_names(hf__json_get(account, "imagePullSecrets"), &pull_secrets);
        if (r == 0 &&
            (!check_volumes(&check, hf__json_get(spec, "volumes")) ||
             !check_containers(&check, "init container", hf__json_get(spec, "initContainers")) ||
             !check_containers(&check, "container", hf__json_get(spec, "containers"))))
                r = HF_E_FORBIDDEN;
        check.allowed = &pull_secrets;
        if (r == 0 && !check_pull_secrets(&check, hf__json_get(spec, "imagePullSecrets")))
                r = HF_E_FORBIDDEN;
        free(secrets.of);
        free(pull_secrets.of);
        return r == HF_E_FORBIDDEN && why->error != 0 ? -ENOMEM : r;
}

int hfd_pod_check_ephemeral_secrets(const struct hf__json *spec, const struct hf__json *account,
                                    struct hf__strbuf *why) {
        const char *name = hf__json_string(account, "metadata.name");
        struct names secrets = {0};
        const struct check check = {.allowed = &secrets, .account = name ? name : "", .why = why};
        int r = collect_names(hf__json_get(account, "secrets"), &secrets);

        if (r == 0 && !check_containers(&check, "ephemeral container",
                                        hf__json_get(spec, "ephemeralContainers")))
                r = why->error == 0 ? HF_E_FORBIDDEN : -ENOMEM;
        free(secrets.of);
        return r;
}

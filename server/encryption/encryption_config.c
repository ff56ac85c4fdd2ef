/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses an EncryptionConfiguration.
 *
 * Invariants: memory that held a key is overwritten before it is freed, except within libyaml, and
 * within the parser of JSON when it refuses or repairs a text. A message names places
 * ("resources[0].providers[1].aesgcm.keys[0]"), and never repeats a secret. A member that is not
 * known is refused, because it may have been meant to protect something.
 */
#include "server/encryption/encryption_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml_body.h"
#include "server/auth/files.h"
#include "server/resources/rows/resource_table.h"

#define JSON_MAX    ((size_t)4 << 20) /* bytes of a text after YAML's aliases are expanded */
#define PLACE_MAX   160               /* bytes of a place, such as "resources[0].providers[1]" */
#define API_VERSION "apiserver.config.k8s.io/v1"
#define KIND        "EncryptionConfiguration"

struct parser {
        struct hfd_encryption *encryption; /* owned by the caller */
        struct hfd_encryption_rule *rule;  /* borrowed; the rule that is being built */
        char place[PLACE_MAX];             /* of the current value, for messages */
        struct hf_status *reterr_status;
};

static int refuse_config(const struct parser *p, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* Returns HF_E_INVALID. The message has the current place. Some texts are those of Kubernetes,
 * because people search for them. */
static int refuse_config(const struct parser *p, const char *format, ...) {
        char why[300];
        va_list values;

        va_start(values, format);
        (void)vsnprintf(why, sizeof why, format, values);
        va_end(values);
        return hf_fail(p->reterr_status, HF_E_INVALID, "%s%s%s", p->place, *p->place ? ": " : "",
                       why);
}

static int fail_memory(const struct parser *p) {
        return hf_fail(p->reterr_status, -ENOMEM, "out of memory");
}

/* Sets the place to a member of `parent`. Here and below a place that is too long is cut: messages
 * with it are less precise then, but still true. */
static void set_place(struct parser *p, const char *parent, const char *member) {
        (void)snprintf(p->place, sizeof p->place, "%.100s%.40s", parent, member);
}

static void set_element(struct parser *p, const char *list, size_t i) {
        (void)snprintf(p->place, sizeof p->place, "%.120s[%zu]", list, i);
}

/* Refuses a value that is not an object, and an object with a member that is not in known, which
 * ends with NULL. */
static int check_members(const struct parser *p, const struct hf__json *object,
                         const char *const *known) {
        if (!hf__json_is_object(object))
                return refuse_config(p, "must be an object");
        for (struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m)) {
                size_t i = 0;

                while (known[i] && strcmp(known[i], hf__json_key(m)) != 0)
                        i++;
                if (!known[i])
                        return refuse_config(p, "unknown field \"%.80s\"", hf__json_key(m));
        }
        return 0;
}

/* ---- resources ---- */

/* To name Leases is a mistake. A wildcard may include them: hfd_encryption_rule leaves them out. */
static bool is_leases(const char *plural, const char *group) {
        return strcmp(plural, "leases") == 0 && strcmp(group, "coordination.k8s.io") == 0;
}

/* Whether Holdfast has the group built in, but without such a stored resource. The name is misspelt
 * then, or Holdfast does not store what is meant: nothing would be encrypted. Another group may
 * come from a definition or a later version, so its resources are accepted. */
static bool is_misspelt(const char *plural, const char *group) {
        bool has_group = false;

        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);

                if (strcmp(row->group, group) != 0)
                        continue;
                has_group = true;
                if (!row->is_review && strcmp(row->plural, plural) == 0)
                        return false;
        }
        return has_group && strcmp(plural, "*") != 0;
}

static bool has_upper(const char *text) {
        for (; *text; text++)
                if (isupper((unsigned char)*text))
                        return true;
        return false;
}

/* Adds a resource to the rule: "secrets", "deployments.apps", or with a wildcard. A resource that
 * an earlier entry covers, of this rule or of another, is refused, because the later entry would
 * never be used. */
static int add_resource(struct parser *p, const char *text) {
        char plural[HFD_QUALIFIED_MAX];
        size_t n = strcspn(text, ".");
        const char *group = text[n] ? text + n + 1 : "";

        if (n == 0 || strlen(text) >= sizeof plural)
                return refuse_config(p, "\"%.100s\" is not the name of a resource", text);
        if (has_upper(text))
                return refuse_config(p, "resource name should be lowercase: \"%s\"", text);
        if (strcmp(text, "*") == 0)
                return refuse_config(p, "use '*.' to encrypt all the resources in core API group "
                                        "or *.* "
                                        "to encrypt all resources");
        (void)snprintf(plural, sizeof plural, "%.*s", (int)n, text);
        /* As in Kubernetes, "*" stands for a whole resource or group, not for a part of a name. */
        bool any = strcmp(plural, "*") == 0;
        if ((strchr(plural, '*') && !any) ||
            (strchr(group, '*') && !(any && strcmp(group, "*") == 0)))
                return refuse_config(p, "\"%s\": a wildcard is one of *.<group>, *. and *.*", text);
        if (is_leases(plural, group))
                return refuse_config(p, "Leases cannot be encrypted: they have no secrets, and "
                                        "`holdfastd "
                                        "release` reads them without a key");
        if (strcmp(group, "*") != 0 && is_misspelt(plural, group))
                return refuse_config(p, "there is no resource \"%s\"", text);
        const char *earlier = hfd_encryption_find_entry(p->encryption, plural, group);
        if (earlier)
                return refuse_config(p, "resource \"%s\" is masked by earlier rule \"%s\"", text,
                                     earlier);
        int r = hfd_encryption_add_resource(p->rule, plural, group);
        if (r == HF_E_TOO_LARGE)
                return refuse_config(p, "there are more than %d resources",
                                     HFD_ENCRYPTION_RESOURCES_MAX);
        return r == 0 ? 0 : fail_memory(p);
}

static int add_resources(struct parser *p, const struct hf__json *list) {
        char parent[PLACE_MAX];
        size_t i = 0;
        int r = 0;

        (void)snprintf(parent, sizeof parent, "%s", p->place);
        if (!hf__json_is_array(list) || !hf__json_first(list))
                return refuse_config(p, "at least one resource is required");
        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                set_element(p, parent, i++);
                r = hf__json_is_string(m) ? add_resource(p, hf__json_text(m))
                                          : refuse_config(p, "must be a string");
        }
        return r;
}

/* ---- providers ---- */

/* Adds the key whose secret has been decoded. A name that is given twice for one cipher is refused:
 * a value has only the cipher and the name of its key, so the second key would never be found. */
static int add_decoded(struct parser *p, enum hfd_cipher_kind kind, const char *name,
                       const char *key, size_t n_key) {
        int r = hfd_encryption_add_key(p->rule, kind, name, key, n_key);

        switch (r) {
        case 0: return 0;
        case -EINVAL:
                return refuse_config(p,
                                     "secret is not of the expected length, got %zu, expected one "
                                     "of "
                                     "[16 24 32]",
                                     n_key);
        case HF_E_CONFLICT: return refuse_config(p, "the name \"%s\" is given twice", name);
        case HF_E_TOO_LARGE:
                return refuse_config(p,
                                     "the name is longer than %d bytes, or there are more than %d "
                                     "keys",
                                     HFD_ENCRYPTION_NAME_MAX - 1, HFD_ENCRYPTION_KEYS_MAX);
        default: return fail_memory(p);
        }
}

/* Adds a key of a provider. The decoded secret is wiped; the cipher has what it needs. */
static int add_key(struct parser *p, enum hfd_cipher_kind kind, const struct hf__json *json) {
        static const char *const known[] = {"name", "secret", NULL};
        char *key = NULL;
        size_t n_key = 0;
        int r = check_members(p, json, known);

        if (r != 0)
                return r;
        const char *name = hf__json_string(json, "name"), *secret = hf__json_string(json, "secret");
        if (!name || !*name)
                return refuse_config(p, "a key must have a name");
        if (strchr(name, ':')) /* a colon ends the name in front of each value */
                return refuse_config(p, "the name \"%.100s\" must not contain a colon", name);
        if (!secret || !*secret)
                return refuse_config(p, "a key must have a secret");
        r = hf__base64_decode(secret, strlen(secret), &key, &n_key);
        if (r == HF_E_INVALID)
                return refuse_config(p, "secrets must be base64 encoded");
        if (r != 0)
                return fail_memory(p);
        r = add_decoded(p, kind, name, key, n_key);
        explicit_bzero(key, n_key);
        free(key);
        return r;
}

static int add_keys(struct parser *p, enum hfd_cipher_kind kind, const struct hf__json *provider) {
        static const char *const known[] = {"keys", NULL};
        const struct hf__json *keys = hf__json_get(provider, "keys");
        char parent[PLACE_MAX];
        size_t i = 0;
        int r = check_members(p, provider, known);

        (void)snprintf(parent, sizeof parent, "%.140s.keys", p->place);
        if (r == 0 && (!hf__json_is_array(keys) || !hf__json_first(keys)))
                r = refuse_config(p, "at least one key is required");
        for (struct hf__json *m = hf__json_first(keys); m && r == 0; m = hf__json_next(m)) {
                set_element(p, parent, i++);
                r = add_key(p, kind, m);
        }
        return r;
}

/* A value without a prefix is plain, so identity can read it. If identity is the first provider,
 * all later writes are stored as plain text: in this way an administrator ends the encryption. */
static int add_identity(struct parser *p, const struct hf__json *provider) {
        static const char *const known[] = {NULL};

        if (check_members(p, provider, known) != 0)
                return HF_E_INVALID;
        return hfd_encryption_add_identity(p->rule) == 0
                       ? 0
                       : refuse_config(p, "there are more than %d keys", HFD_ENCRYPTION_KEYS_MAX);
}

/* A provider is an object with one member, whose name is that of the cipher, or `identity`. */
static int add_provider(struct parser *p, const struct hf__json *json) {
        const struct hf__json *provider = hf__json_is_object(json) ? hf__json_first(json) : NULL;
        char parent[PLACE_MAX];

        if (!provider)
                return refuse_config(p, "must have one of aesgcm, aescbc and identity");
        if (hf__json_next(provider))
                return refuse_config(p, "has more than one provider");
        const char *name = hf__json_key(provider);
        (void)snprintf(parent, sizeof parent, "%s", p->place);
        (void)snprintf(p->place, sizeof p->place, "%.120s.%.20s", parent, name);
        if (strcmp(name, "aesgcm") == 0)
                return add_keys(p, HFD_AES_GCM, provider);
        if (strcmp(name, "aescbc") == 0)
                return add_keys(p, HFD_AES_CBC, provider);
        if (strcmp(name, "identity") == 0)
                return add_identity(p, provider);
        if (strcmp(name, "secretbox") == 0)
                return refuse_config(p,
                                     "secretbox is not supported (XSalsa20 is not in OpenSSL): use "
                                     "aesgcm");
        if (strcmp(name, "kms") == 0)
                return refuse_config(p, "kms is not supported: use aesgcm");
        return refuse_config(p, "there is no such provider: use aesgcm, aescbc or identity");
}

static int add_providers(struct parser *p, const struct hf__json *list) {
        char parent[PLACE_MAX];
        size_t i = 0;
        int r = 0;

        (void)snprintf(parent, sizeof parent, "%s", p->place);
        if (!hf__json_is_array(list) || !hf__json_first(list))
                return refuse_config(p, "at least one provider is required");
        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                set_element(p, parent, i++);
                r = add_provider(p, m);
        }
        return r;
}

/* ---- the whole ---- */

static int add_rule(struct parser *p, const struct hf__json *json) {
        static const char *const known[] = {"resources", "providers", NULL};
        char parent[PLACE_MAX];
        int r = check_members(p, json, known);

        if (r != 0)
                return r;
        r = hfd_encryption_add_rule(p->encryption, &p->rule);
        if (r == HF_E_TOO_LARGE)
                return refuse_config(p, "there are more than %d rules", HFD_ENCRYPTION_RULES_MAX);
        if (r != 0)
                return fail_memory(p);
        (void)snprintf(parent, sizeof parent, "%s", p->place);
        set_place(p, parent, ".resources");
        r = add_resources(p, hf__json_get(json, "resources"));
        set_place(p, parent, ".providers");
        return r == 0 ? add_providers(p, hf__json_get(json, "providers")) : r;
}

static int add_rules(struct parser *p, const struct hf__json *json) {
        static const char *const known[] = {"apiVersion", "kind", "resources", NULL};
        const struct hf__json *list = hf__json_get(json, "resources");
        const char *twice = NULL;
        size_t i = 0;
        int r = check_members(p, json, known);

        if (r != 0)
                return r;
        r = hf__json_check_unique(json, &twice);
        if (r == -ENOMEM)
                return fail_memory(p);
        /* Nobody could say which of the two members was meant. */
        if (r != 0)
                return refuse_config(p, "the field \"%.80s\" is given twice in one object", twice);
        if (!hf__json_has_text(json, "apiVersion", API_VERSION) ||
            !hf__json_has_text(json, "kind", KIND))
                r = refuse_config(p, "it is not of apiVersion " API_VERSION " and kind " KIND);
        if (r == 0 && (!hf__json_is_array(list) || !hf__json_first(list)))
                r = refuse_config(p, "resources: at least one rule is required");
        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                set_element(p, "resources", i++);
                r = add_rule(p, m);
        }
        return r;
}

/* Parses the text. JSON is tried first, because it needs no libyaml. */
static int parse_text(const char *text, size_t n, struct hf__json **ret_json,
                      struct hf_status *reterr_status) {
        struct hf__strbuf converted = {.max = JSON_MAX, .secret = true};

        if (n > 0 && text[strspn(text, " \t\r\n")] == '{' &&
            hf__json_parse(text, n, ret_json, NULL) == 0)
                return 0;
        int r = hf__yaml_body_to_json(text, n, &converted, reterr_status);
        if (r == 0)
                r = hf__json_parse(converted.data, converted.n, ret_json, NULL);
        if (r == -ENOMEM)
                r = hf_fail(reterr_status, r, "out of memory");
        else if (r != 0 && !*reterr_status->message)
                r = hf_fail(reterr_status, HF_E_INVALID, "it is neither YAML nor JSON");
        hf__strbuf_done(&converted);
        return r;
}

int hfd_encryption_parse(const char *text, size_t n, struct hfd_encryption **ret_encryption,
                         struct hf_status *reterr_status) {
        struct hf_status status = {0};
        struct parser p = {.reterr_status = &status};
        struct hf__json *json = NULL;
        int r = parse_text(text, n, &json, &status);

        if (r == 0) {
                p.encryption = hfd_encryption_new(text, n);
                r = p.encryption ? add_rules(&p, json) : fail_memory(&p);
        }
        hf__json_wipe_free(json);
        if (r == 0)
                *ret_encryption = p.encryption;
        else
                (void)hfd_encryption_unref(p.encryption);
        if (r != 0 && reterr_status)
                *reterr_status = status;
        return r;
}

int hfd_encryption_read(const char *path, struct hfd_encryption **ret_encryption,
                        struct hf_status *reterr_status) {
        struct hf_status why = {0};
        char *text = NULL;
        int r = hfd_read_file(path, &text, reterr_status);

        if (r != 0)
                return r;
        r = hfd_encryption_parse(text, strlen(text), ret_encryption, &why);
        hfd_secret_free(text);
        return r == 0 ? 0 : hf_fail(reterr_status, r, "cannot use %.200s: %s", path, why.message);
}

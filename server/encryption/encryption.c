/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of an EncryptionConfiguration (encryption.h).
 *
 * Invariant: a value that begins with `k8s:enc:` is never taken for plain. Objects are JSON, so no
 * plain value begins like this, and an encrypted one is never served as it is.
 */
#include "server/encryption/encryption.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/sha256.h"
#include "server/storage/sealed.h"

/* Bytes of "k8s:enc:aesgcm:v1:NAME:", with a NUL. */
#define PREFIX_MAX (HFD_ENCRYPTION_NAME_MAX + 32)

/* A key of a rule; or `identity`, which encrypts nothing. */
struct key {
        struct hfd_cipher *cipher; /* owned; NULL = identity */
        size_t n_prefix;
        char prefix[PREFIX_MAX]; /* "k8s:enc:aesgcm:v1:NAME:"; "" = identity */
};

/* A resource that a rule covers: "secrets", "*.apps", "*.*". */
struct entry {
        char *plural, *group; /* owned; "*" = any */
        char *text;           /* owned; as it was written */
};

/* The first key encrypts what is written; the others only decrypt what was written before. */
struct hfd_encryption_rule {
        struct entry entries[HFD_ENCRYPTION_RESOURCES_MAX];
        size_t n_entries;
        struct key keys[HFD_ENCRYPTION_KEYS_MAX];
        size_t n_keys;
};

struct hfd_encryption {
        atomic_int refs;
        struct hfd_encryption_rule *rules[HFD_ENCRYPTION_RULES_MAX]; /* owned */
        size_t n_rules;
        uint8_t digest[32]; /* of the text */
};

/* ---- building ---- */

struct hfd_encryption *hfd_encryption_new(const char *text, size_t n) {
        struct hfd_encryption *encryption = calloc(1, sizeof *encryption);

        if (!encryption)
                return NULL;
        atomic_init(&encryption->refs, 1);
        hf__sha256(text, n, encryption->digest);
        return encryption;
}

int hfd_encryption_add_rule(struct hfd_encryption *encryption,
                            struct hfd_encryption_rule **ret_rule) {
        if (encryption->n_rules == HFD_ENCRYPTION_RULES_MAX)
                return HF_E_TOO_LARGE;
        struct hfd_encryption_rule *rule = calloc(1, sizeof *rule);
        if (!rule)
                return -ENOMEM;
        assert(encryption->n_rules < HFD_ENCRYPTION_RULES_MAX);
        encryption->rules[encryption->n_rules++] = rule;
        *ret_rule = rule;
        return 0;
}

int hfd_encryption_add_resource(struct hfd_encryption_rule *rule, const char *plural,
                                const char *group) {
        if (rule->n_entries == HFD_ENCRYPTION_RESOURCES_MAX)
                return HF_E_TOO_LARGE;
        assert(rule->n_entries < HFD_ENCRYPTION_RESOURCES_MAX);
        struct entry *entry = &rule->entries[rule->n_entries++]; /* freed with the rule */
        entry->plural = strdup(plural);
        entry->group = strdup(group);
        /* In the core group, whose name is "", the wildcard has a dot ("*."), but a resource has
         * none ("secrets"). */
        bool dot = *group || strcmp(plural, "*") == 0;
        if (asprintf(&entry->text, "%s%s%s", plural, dot ? "." : "", group) < 0)
                entry->text = NULL;
        return entry->plural && entry->group && entry->text ? 0 : -ENOMEM;
}

static int add_key(struct hfd_encryption_rule *rule, struct hfd_cipher *cipher,
                   const char *prefix) {
        if (rule->n_keys == HFD_ENCRYPTION_KEYS_MAX)
                return HF_E_TOO_LARGE;
        assert(rule->n_keys < HFD_ENCRYPTION_KEYS_MAX);
        struct key *key = &rule->keys[rule->n_keys++];
        key->cipher = cipher;
        key->n_prefix = strlen(prefix);
        memcpy(key->prefix, prefix, key->n_prefix + 1);
        return 0;
}

int hfd_encryption_add_key(struct hfd_encryption_rule *rule, enum hfd_cipher_kind kind,
                           const char *name, const void *key, size_t n_key) {
        struct hfd_cipher *cipher = NULL;
        char prefix[PREFIX_MAX];

        assert(*name && !strchr(name, ':'));
        if (strlen(name) >= HFD_ENCRYPTION_NAME_MAX)
                return HF_E_TOO_LARGE;
        (void)snprintf(prefix, sizeof prefix,
                       HFD_SEALED_PREFIX "%s:v1:%s:", kind == HFD_AES_GCM ? "aesgcm" : "aescbc",
                       name);
        for (size_t i = 0; i < rule->n_keys; i++)
                if (strcmp(rule->keys[i].prefix, prefix) == 0)
                        return HF_E_CONFLICT;
        int r = hfd_cipher_new(kind, key, n_key, &cipher);
        if (r == 0)
                r = add_key(rule, cipher, prefix);
        if (r != 0)
                (void)hfd_cipher_free(cipher);
        return r;
}

int hfd_encryption_add_identity(struct hfd_encryption_rule *rule) {
        return add_key(rule, NULL, "");
}

/* "*.*" matches all resources, "*.GROUP" those of one group, and "*." those of the core group,
 * whose name is "". */
static bool entry_matches(const struct entry *entry, const char *plural, const char *group) {
        bool any = strcmp(entry->plural, "*") == 0;

        return (any || strcmp(entry->plural, plural) == 0) &&
               ((any && strcmp(entry->group, "*") == 0) || strcmp(entry->group, group) == 0);
}

static const struct entry *find_entry(const struct hfd_encryption_rule *rule, const char *plural,
                                      const char *group) {
        for (size_t i = 0; i < rule->n_entries; i++)
                if (entry_matches(&rule->entries[i], plural, group))
                        return &rule->entries[i];
        return NULL;
}

const char *hfd_encryption_find_entry(const struct hfd_encryption *encryption, const char *plural,
                                      const char *group) {
        for (size_t i = 0; i < encryption->n_rules; i++) {
                const struct entry *entry = find_entry(encryption->rules[i], plural, group);
                if (entry)
                        return entry->text;
        }
        return NULL;
}

static void free_rule(struct hfd_encryption_rule *rule) {
        for (size_t i = 0; i < rule->n_keys; i++)
                (void)hfd_cipher_free(rule->keys[i].cipher);
        for (size_t i = 0; i < rule->n_entries; i++) {
                free(rule->entries[i].plural);
                free(rule->entries[i].group);
                free(rule->entries[i].text);
        }
        free(rule);
}

struct hfd_encryption *hfd_encryption_ref(struct hfd_encryption *encryption) {
        assert(atomic_load_explicit(&encryption->refs, memory_order_relaxed) > 0);
        (void)atomic_fetch_add_explicit(&encryption->refs, 1, memory_order_relaxed);
        return encryption;
}

struct hfd_encryption *hfd_encryption_unref(struct hfd_encryption *encryption) {
        assert(!encryption || atomic_load_explicit(&encryption->refs, memory_order_relaxed) > 0);
        if (!encryption ||
            atomic_fetch_sub_explicit(&encryption->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        for (size_t i = 0; i < encryption->n_rules; i++)
                free_rule(encryption->rules[i]);
        free(encryption);
        return NULL;
}

/* ---- using ---- */

/* Digests are compared, so that no copy of the text, which has the keys, is kept. */
bool hfd_encryption_is_same(const struct hfd_encryption *a, const struct hfd_encryption *b) {
        return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

const struct hfd_encryption_rule *hfd_encryption_rule_of(const struct hfd_encryption *encryption,
                                                         const char *plural, const char *group) {
        assert(plural && group);
        for (size_t i = 0; i < encryption->n_rules; i++)
                if (find_entry(encryption->rules[i], plural, group))
                        return encryption->rules[i];
        return NULL;
}

const struct hfd_encryption_rule *hfd_encryption_rule(const struct hfd_encryption *encryption,
                                                      const struct hfd_resource *resource) {
        if (resource->term_record || resource->is_review)
                return NULL;
        return hfd_encryption_rule_of(encryption, resource->plural, resource->group);
}

int hfd_encryption_seal(const struct hfd_encryption_rule *rule, const char *key,
                        const uint8_t nonce[HFD_NONCE_MAX], struct hf__buf *plain,
                        struct hf__buf **ret_stored) {
        assert(rule->n_keys > 0);
        const struct key *first = &rule->keys[0];

        if (!first->cipher) {
                *ret_stored = hf__buf_ref(plain);
                return 0;
        }
        return hfd_cipher_seal(first->cipher, nonce, key, plain, first->prefix, first->n_prefix,
                               ret_stored);
}

/* Whether the value was encrypted with the key. No prefix is the beginning of another one, because
 * a prefix ends with the colon after the name, and names contain no colon. */
static bool is_of_key(const struct key *key, const struct hf__buf *stored) {
        if (!key->cipher)
                return !hfd_is_sealed(stored);
        return stored->n >= key->n_prefix && memcmp(stored->data, key->prefix, key->n_prefix) == 0;
}

int hfd_encryption_open(const struct hfd_encryption_rule *rule, const char *key,
                        struct hf__buf *stored, struct hfd_opened *ret_opened) {
        struct hfd_opened opened = {.why = "no matching prefix found"};
        size_t i = 0;
        int r = HF_E_INVALID;

        assert(stored && ret_opened);
        while (i < rule->n_keys && !is_of_key(&rule->keys[i], stored))
                i++;
        opened.stale = i > 0;
        if (i < rule->n_keys && !rule->keys[i].cipher) {
                opened.why = NULL;
        } else if (i < rule->n_keys) {
                const struct key *of = &rule->keys[i];
                r = hfd_cipher_open(of->cipher, key, stored->data + of->n_prefix,
                                    stored->n - of->n_prefix, &opened.value, &opened.why);
                if (r != 0 && r != HF_E_INVALID)
                        return r;
                if (r == 0)
                        opened.why = NULL;
        }
        if (!opened.value)
                opened.value = hf__buf_ref(stored);
        *ret_opened = opened;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decrypts kvs and events (decrypt.h).
 *
 * Invariant: a copy has a reference to each of its values, also to those that were not decrypted.
 * So the function that frees a copy drops every value in the same way.
 */
#include "server/encryption/decrypt.h"

#include <errno.h>
#include <stdlib.h>

#include "server/resources/objects/object_key.h"

const struct hfd_encryption_rule *hfd_covered_rule(const struct hfd_covered *covered,
                                                   const char *key) {
        const char *path;
        const struct hfd_resource *resource =
                hfd_object_key_parse(covered->prefix, NULL, key, &path);
        struct hfd_custom_key custom;

        if (resource)
                return hfd_encryption_rule(covered->encryption, resource);
        /* A custom resource is covered even without its definition, because objects may be read
         * before the definition is known and after it was deleted. */
        return hfd_object_key_custom(covered->prefix, key, &custom)
                       ? hfd_encryption_rule_of(covered->encryption, custom.plural, custom.group)
                       : NULL;
}

static const struct hfd_encryption_rule *rule_of(const struct hfd_covered *covered,
                                                 const struct hfd_kv *kv) {
        return kv->value ? hfd_covered_rule(covered, kv->key) : NULL;
}

/* Replaces the borrowed value of kv by a reference. If a rule covers the key and the value can be
 * decrypted, the reference is to the decrypted value. 0, or -ENOMEM: then kv has no value. */
static int open_kv(const struct hfd_covered *covered, struct hfd_kv *kv) {
        const struct hfd_encryption_rule *rule = rule_of(covered, kv);
        struct hfd_opened opened = {0};

        if (!rule) {
                hf__buf_ref(kv->value);
                return 0;
        }
        int r = hfd_encryption_open(rule, kv->key, kv->value, &opened);
        kv->value = opened.value;
        kv->sealed = opened.why;
        kv->stale = opened.stale && !opened.why;
        return r;
}

/* ---- kvs ---- */

int hfd_decrypt_kvs(const struct hfd_covered *covered, const struct hfd_kv *kvs, size_t n,
                    struct hfd_kv **ret_kvs) {
        size_t i = 0;
        int r = 0;

        *ret_kvs = NULL;
        while (i < n && !rule_of(covered, &kvs[i]))
                i++;
        if (i == n)
                return 0;
        struct hfd_kv *copy = malloc(n * sizeof *copy);
        if (!copy)
                return -ENOMEM;
        for (i = 0; i < n && r == 0; i++) {
                copy[i] = kvs[i];
                r = open_kv(covered, &copy[i]);
        }
        if (r == 0)
                *ret_kvs = copy;
        else
                hfd_decrypt_kvs_free(copy, i);
        return r;
}

void hfd_decrypt_kvs_free(struct hfd_kv *kvs, size_t n) {
        for (size_t i = 0; kvs && i < n; i++)
                hf__buf_unref(kvs[i].value);
        free(kvs);
}

/* ---- events ---- */

/* Only a put has a value: a deletion has none, and the kv of a progress event is not set. */
static bool has_value(const struct hfd_watch_event *event) {
        return event->type == HFD_WATCH_PUT && event->kv.value;
}

bool hfd_covered_event(const struct hfd_covered *covered, const struct hfd_watch_event *event) {
        return has_value(event) && rule_of(covered, &event->kv);
}

int hfd_decrypt_events(const struct hfd_covered *covered, const struct hfd_watch_event *events,
                       size_t n, struct hfd_watch_event **ret_events) {
        size_t i = 0;
        int r = 0;

        *ret_events = NULL;
        while (i < n && !hfd_covered_event(covered, &events[i]))
                i++;
        if (i == n)
                return 0;
        struct hfd_watch_event *copy = malloc(n * sizeof *copy);
        if (!copy)
                return -ENOMEM;
        for (i = 0; i < n && r == 0; i++) {
                copy[i] = events[i];
                if (has_value(&copy[i]))
                        r = open_kv(covered, &copy[i].kv);
        }
        if (r == 0)
                *ret_events = copy;
        else
                hfd_decrypt_events_free(copy, i);
        return r;
}

void hfd_decrypt_events_free(struct hfd_watch_event *events, size_t n) {
        for (size_t i = 0; events && i < n; i++)
                if (has_value(&events[i]))
                        hf__buf_unref(events[i].kv.value);
        free(events);
}

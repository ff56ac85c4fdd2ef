/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of a namespace's quotas about a write, and the versions on which they are based.
 *
 * Invariant: after a decision, a quota that counts the write, or will count it, has a key and,
 * unless it refuses, a new version to be stored. Other quotas have neither, and those after a
 * refusing one were not asked.
 */
#include "server/registry/base/quota_charges.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/objects/stored_object.h"
#include "server/resources/rows/resource_table.h"

const struct hfd_resource *hfd_quota_resource(void) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "resourcequotas");

        assert(resource);
        return resource;
}

/* ---- the versions ---- */

static bool is_refusing(const struct hfd_quota_charge *charge) {
        return charge->key && !charge->stored;
}

static void clear_decision(struct hfd_quota_charge *charge) {
        free(charge->key);
        charge->key = NULL;
        charge->stored = hf__buf_unref(charge->stored);
}

void hfd_quota_charges_clear(struct hfd_quota_charges *charges) {
        assert(charges->n <= HFD_QUOTAS_IN_NAMESPACE_MAX);
        for (size_t i = 0; i < charges->n; i++) {
                clear_decision(&charges->of[i]);
                hfd_object_unref(charges->of[i].object);
                charges->of[i] = (struct hfd_quota_charge){0};
        }
        charges->n = 0;
}

void hfd_quota_charges_set(struct hfd_quota_charges *charges, struct hfd_object *const *objects,
                           size_t n) {
        assert(charges->n == 0 && n <= HFD_QUOTAS_IN_NAMESPACE_MAX);
        for (size_t i = 0; i < n; i++)
                charges->of[i].object = objects[i];
        charges->n = n;
}

void hfd_quota_charges_confirm(struct hfd_quota_charges *charges) {
        for (size_t i = 0; i < charges->n; i++)
                charges->of[i].fresh |= is_refusing(&charges->of[i]);
}

/* kv NULL: the quota was deleted. False: no object can be made from kv. */
static bool update_charge(struct hfd_quota_charge *charge, struct hfd_cacher *cacher,
                          const struct hfd_kv *kv) {
        struct hfd_object *object = NULL;

        if (kv) {
                object = hfd_stored_object_new(hfd_quota_resource(), charge->object->path, kv);
                if (!object)
                        return false;
                /* The next writes of this instance begin with this version. */
                hfd_cacher_record_write(cacher, object);
        }
        hfd_object_unref(charge->object);
        charge->object = object;
        charge->fresh = true;
        return true;
}

const struct hfd_kv *hfd_quota_charges_update(struct hfd_quota_charges *charges,
                                              struct hfd_cacher *cacher, bool written,
                                              const struct hfd_kv *kvs, size_t n) {
        for (size_t i = 0; i < charges->n; i++) {
                struct hfd_quota_charge *charge = &charges->of[i];
                const struct hfd_kv *found = NULL;
                if (!charge->key || is_refusing(charge) == written)
                        continue;
                for (size_t k = 0; k < n && !found; k++)
                        if (strcmp(kvs[k].key, charge->key) == 0)
                                found = &kvs[k];
                if (!update_charge(charge, cacher, found))
                        return found;
        }
        return NULL;
}

void hfd_quota_charges_committed(const struct hfd_quota_charges *charges, struct hfd_cacher *cacher,
                                 uint64_t revision) {
        for (size_t i = 0; i < charges->n; i++) {
                const struct hfd_quota_charge *charge = &charges->of[i];
                struct hfd_object *object = NULL;
                if (charge->stored)
                        object = hfd_object_new(hfd_quota_resource(), charge->object->path,
                                                revision, charge->stored);
                /* If memory is short, the cacher does not learn the version, and the next write
                 * has one conflict more. */
                if (object)
                        hfd_cacher_record_write(cacher, object);
                hfd_object_unref(object);
        }
}

/* ---- decisions ---- */

/* Decides for one quota. 0, -ENOMEM or HF_E_TOO_LARGE. */
static int decide_charge(struct hfd_quota_charge *charge, const struct hfd_quota_change *change,
                         const char *prefix, enum hfd_quota_verdict *ret_verdict,
                         struct hf__strbuf *why) {
        struct hf__json *json = hfd_object_parse(charge->object);
        char key[HFD_KEY_MAX];
        int r = json ? hfd_quota_charge(json, change, ret_verdict, why) : -ENOMEM;

        if (r == 0 && *ret_verdict != HFD_QUOTA_UNCOUNTED) {
                r = hfd_object_key(prefix, hfd_quota_resource(), charge->object->path, key);
                charge->key = r == 0 ? strdup(key) : NULL;
                if (r == 0 && !charge->key)
                        r = -ENOMEM;
        }
        if (r == 0 && (*ret_verdict == HFD_QUOTA_CHARGED || *ret_verdict == HFD_QUOTA_PENDING)) {
                charge->stored = hfd_object_encode(hfd_quota_resource(), json);
                r = charge->stored ? 0 : -ENOMEM;
        }
        hf__json_free(json);
        return r;
}

void hfd_quota_charges_forget(struct hfd_quota_charges *charges) {
        for (size_t i = 0; i < charges->n; i++)
                clear_decision(&charges->of[i]);
}

int hfd_quota_charges_decide(struct hfd_quota_charges *charges,
                             const struct hfd_quota_change *change, const char *prefix,
                             const char *path, struct hfd_quota_decision *decision) {
        int r = 0;

        hfd_quota_charges_forget(charges);
        for (size_t i = 0; i < charges->n && r == 0 && !decision->refuses; i++) {
                struct hfd_quota_charge *charge = &charges->of[i];
                enum hfd_quota_verdict verdict;
                if (!charge->object || strcmp(charge->object->path, path) == 0)
                        continue;
                r = decide_charge(charge, change, prefix, &verdict, &decision->why);
                if (r == 0 && verdict == HFD_QUOTA_REFUSED)
                        decision->refuses = charge;
                decision->n_changed += charge->stored != NULL;
        }
        return r;
}

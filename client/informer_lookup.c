/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an informer's store from any thread, under its lock. hf_informer_get only takes a reference
 * to the object's text under the lock and copies the text afterwards, so that copying a large
 * object does not block other threads.
 */
#include "client/informer_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/workqueue.h>

#include "base/buf.h"
#include "base/thread.h"
#include "client/informer_private.h"

int hf_informer_get(struct hf_informer *informer, const char *ns, const char *name,
                    char **ret_object, size_t *ret_n) {
        char key[HF_KEY_MAX];

        if (!informer || !name || !ret_object)
                return -EINVAL;
        if (hf_key_make(key, ns, name) < 0)
                return HF_E_NOT_FOUND;
        (void)pthread_mutex_lock(&informer->mu);
        struct hf__informer_entry *entry =
                (struct hf__informer_entry *)hf__key_index_find(&informer->store.entries, key);
        struct hf__buf *object = entry ? hf__buf_ref(entry->object) : NULL;
        (void)pthread_mutex_unlock(&informer->mu);
        if (!object)
                return HF_E_NOT_FOUND;
        char *copy = malloc(object->n + 1);
        if (copy) {
                memcpy(copy, object->data, object->n);
                copy[object->n] = '\0';
                *ret_object = copy;
                if (ret_n)
                        *ret_n = object->n;
        }
        (void)hf__buf_unref(object);
        return copy ? 0 : -ENOMEM;
}

size_t hf_informer_count(struct hf_informer *informer) {
        (void)pthread_mutex_lock(&informer->mu);
        size_t n = informer->store.entries.n;
        (void)pthread_mutex_unlock(&informer->mu);
        return n;
}

bool hf__informer_has_in(struct hf_informer *informer, const char *ns) {
        /* Keys are sorted and begin with the namespace. So the first key at or after "namespace/"
         * has that prefix if the namespace contains any object. */
        char prefix[HF_NAME_MAX + 2]; /* with the slash and the NUL */
        int n = snprintf(prefix, sizeof prefix, "%s/", ns);

        if (n < 0 || (size_t)n >= sizeof prefix)
                return false;
        (void)pthread_mutex_lock(&informer->mu);
        const struct hf__keyed *first = hf__key_index_lower_bound(&informer->store.entries, prefix);
        bool has = first && strncmp(first->key, prefix, (size_t)n) == 0;
        (void)pthread_mutex_unlock(&informer->mu);
        return has;
}

void hf_informer_each(struct hf_informer *informer,
                      void (*each)(void *ctx, const char *ns, const char *name, const char *object,
                                   size_t n),
                      void *ctx) {
        const struct hf__informer_entry *entry;
        struct hf__key_iter iter;

        (void)pthread_mutex_lock(&informer->mu);
        hf__key_iter_init(&iter, &informer->store.entries);
        while ((entry = (const struct hf__informer_entry *)hf__key_iter_next(&iter)))
                hf__informer_entry_visit(entry, each, ctx);
        (void)pthread_mutex_unlock(&informer->mu);
}

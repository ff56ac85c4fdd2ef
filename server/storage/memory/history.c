/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys, versions and the log of the memory store.
 *
 * Invariants: A key's versions and the log are sorted by mod revision, because searches rely on it.
 * A write happens completely or not at all: every allocation is done before the revision is
 * incremented, and no later step can fail.
 */
#include "server/storage/memory/history.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hfd_version *hfd_version_ref(struct hfd_version *version) {
        assert(version->refs > 0);
        version->refs++;
        return version;
}

struct hfd_version *hfd_version_unref(struct hfd_version *version) {
        assert(!version || version->refs > 0);
        if (version && --version->refs == 0) {
                hf__buf_unref(version->value);
                free(version);
        }
        return NULL;
}

/* Creates a version; commit_version sets its revisions. NULL = out of memory. */
static struct hfd_version *new_version(const char *key, struct hf__buf *value) {
        size_t n = strlen(key) + 1;
        struct hfd_version *version = malloc(sizeof *version + n);

        if (!version)
                return NULL;
        *version = (struct hfd_version){.refs = 1, .value = hf__buf_ref(value)};
        memcpy(version->key, key, n);
        return version;
}

/* Makes room in *(void **)array for `more` elements of `size` bytes after the first n. *space is
 * the capacity in elements. It at least doubles, so that appending is cheap on average. 0 or
 * -ENOMEM. */
static int reserve_space(void *array, size_t n, size_t more, size_t *space, size_t size) {
        void **base = array, *bigger;
        size_t wanted = n + more;

        if (wanted <= *space)
                return 0;
        if (wanted < 2 * *space)
                wanted = 2 * *space;
        bigger = realloc(*base, wanted * size);
        if (!bigger)
                return -ENOMEM;
        *base = bigger;
        *space = wanted;
        return 0;
}

void hfd_history_init(struct hfd_history *history) {
        *history = (struct hfd_history){.revision = 1};
}

void hfd_history_deinit(struct hfd_history *history) {
        for (size_t i = 0; i < history->n_keys; i++) {
                for (size_t j = 0; j < history->keys[i].n; j++)
                        hfd_version_unref(history->keys[i].versions[j]);
                free(history->keys[i].versions);
                free(history->keys[i].name);
        }
        for (size_t i = 0; i < history->n_log; i++)
                hfd_version_unref(history->log[i]);
        free(history->keys);
        free(history->log);
        *history = (struct hfd_history){0};
}

size_t hfd_history_find(const struct hfd_history *history, const char *name) {
        size_t low = 0, high = history->n_keys;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(history->keys[middle].name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Searches backwards from the newest: most reads want the current version, and compaction keeps the
 * number of versions small. */
struct hfd_version *hfd_history_at(const struct hfd_history *history, size_t index,
                                   uint64_t revision) {
        const struct hfd_history_key *key = &history->keys[index];
        size_t i = key->n;

        while (i > 0 && key->versions[i - 1]->mod > revision)
                i--;
        return i > 0 && key->versions[i - 1]->value ? key->versions[i - 1] : NULL;
}

struct hfd_version *hfd_history_get(const struct hfd_history *history, const char *key,
                                    uint64_t revision) {
        size_t i = hfd_history_find(history, key);

        return i < history->n_keys && strcmp(history->keys[i].name, key) == 0
                       ? hfd_history_at(history, i, revision)
                       : NULL;
}

bool hfd_history_compare(const struct hfd_history *history, const struct hfd_compare *compare) {
        const struct hfd_version *version =
                hfd_history_get(history, compare->key, history->revision);

        /* memcmp must not see a NULL, which an empty value may be. */
        switch (compare->kind) {
        case HFD_MOD_EQUALS: return (version ? version->mod : 0) == compare->revision;
        case HFD_VALUE_EQUALS:
                return version && version->value->n == compare->n_value &&
                       (compare->n_value == 0 ||
                        memcmp(version->value->data, compare->value, compare->n_value) == 0);
        case HFD_VALUE_BEGINS:
                return version && version->value->n > compare->n_value &&
                       (compare->n_value == 0 ||
                        memcmp(version->value->data, compare->value, compare->n_value) == 0);
        }
        return false;
}

/* Returns the key's entry in keys, which is added if it is missing, with room for one more version.
 * NULL = out of memory. If the write fails later, the added entry has no versions. Reads ignore it,
 * and the next compaction removes it unless a later write has used it. */
static struct hfd_history_key *find_or_add_key(struct hfd_history *history, const char *name) {
        size_t i = hfd_history_find(history, name);
        struct hfd_history_key *key;

        if (i == history->n_keys || strcmp(history->keys[i].name, name) != 0) {
                char *copy;

                if (reserve_space(&history->keys, history->n_keys, 1, &history->space_keys,
                                  sizeof *history->keys))
                        return NULL;
                copy = strdup(name);
                if (!copy)
                        return NULL;
                memmove(&history->keys[i + 1], &history->keys[i],
                        (history->n_keys - i) * sizeof *history->keys);
                history->keys[i] = (struct hfd_history_key){.name = copy};
                history->n_keys++;
        }
        key = &history->keys[i];
        return reserve_space(&key->versions, key->n, 1, &key->space, sizeof *key->versions) ? NULL
                                                                                            : key;
}

/* Consumes the reference to version. Cannot fail: find_or_add_key and the caller have reserved the
 * space. */
static void commit_version(struct hfd_history *history, struct hfd_version *version) {
        struct hfd_history_key *key = &history->keys[hfd_history_find(history, version->key)];
        const struct hfd_version *last = key->n ? key->versions[key->n - 1] : NULL;

        assert(key->n < key->space && history->n_log < history->space_log);
        assert(!last || last->mod < history->revision);
        version->mod = history->revision;
        /* A put keeps the create revision, unless the key was deleted in between. */
        version->create = version->value && last && last->value ? last->create : history->revision;
        key->versions[key->n++] = hfd_version_ref(version);
        history->log[history->n_log++] = version; /* consumed */
}

static bool has_version(struct hfd_version *const *versions, size_t n, const char *key) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(versions[i]->key, key) == 0)
                        return true;
        return false;
}

/* Makes the versions of the ops that change something, and the entries of their keys. 0 or -ENOMEM;
 * in either case the caller owns the n versions. */
static int make_versions(struct hfd_history *history, const struct hfd_op *ops, size_t n_ops,
                         struct hfd_version **versions, size_t *n) {
        for (size_t i = 0; i < n_ops; i++) {
                struct hf__buf *value = ops[i].kind == HFD_PUT ? ops[i].value : NULL;

                /* hfd_txn_check lets a key appear twice only to be deleted twice. */
                if (has_version(versions, *n, ops[i].key) ||
                    (!value && !hfd_history_get(history, ops[i].key, history->revision)))
                        continue;
                versions[*n] = new_version(ops[i].key, value);
                if (!versions[*n])
                        return -ENOMEM;
                ++*n;
                if (!find_or_add_key(history, ops[i].key))
                        return -ENOMEM;
        }
        return 0;
}

int hfd_history_write(struct hfd_history *history, const struct hfd_op *ops, size_t n_ops) {
        struct hfd_version *versions[HFD_TXN_MAX];
        size_t n = 0;

        assert(n_ops <= HFD_TXN_MAX);
        if (reserve_space(&history->log, history->n_log, n_ops, &history->space_log,
                          sizeof *history->log) != 0)
                return -ENOMEM;
        int r = make_versions(history, ops, n_ops, versions, &n);
        if (r != 0) {
                while (n > 0)
                        hfd_version_unref(versions[--n]);
                return r;
        }
        /* Nothing below can fail. If every op deletes a missing key, nothing is written, and the
         * revision does not change. */
        if (n > 0)
                history->revision++;
        for (size_t i = 0; i < n; i++)
                commit_version(history, versions[i]);
        return 0;
}

/* Keeps the version that a read at revision sees, and all later ones. If that version is a deletion
 * it is dropped too, because reading a missing key has the same result. Returns false if no version
 * of the key remains. */
static bool compact_key(struct hfd_history_key *key, uint64_t revision) {
        size_t drop = 0;

        while (drop + 1 < key->n && key->versions[drop + 1]->mod <= revision)
                drop++;
        if (drop < key->n && key->versions[drop]->mod <= revision && !key->versions[drop]->value)
                drop++;
        for (size_t i = 0; i < drop; i++)
                hfd_version_unref(key->versions[i]);
        key->n -= drop;
        memmove(key->versions, key->versions + drop, key->n * sizeof *key->versions);
        return key->n > 0;
}

void hfd_history_compact(struct hfd_history *history, uint64_t revision, uint64_t keep_log) {
        size_t kept = 0, drop = hfd_history_log_find(history, keep_log);

        assert(revision > history->compacted && revision <= history->revision);
        history->compacted = revision;
        for (size_t i = 0; i < drop; i++)
                hfd_version_unref(history->log[i]);
        history->n_log -= drop;
        if (drop > 0)
                memmove(history->log, history->log + drop, history->n_log * sizeof *history->log);
        for (size_t i = 0; i < history->n_keys; i++) {
                struct hfd_history_key *key = &history->keys[i];

                /* n is 0 if the write that added the entry has failed. */
                if (key->n > 0 && compact_key(key, revision)) {
                        history->keys[kept++] = *key;
                } else {
                        free(key->versions);
                        free(key->name);
                }
        }
        history->n_keys = kept;
}

size_t hfd_history_log_find(const struct hfd_history *history, uint64_t revision) {
        size_t low = 0, high = history->n_log;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (history->log[middle]->mod < revision)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

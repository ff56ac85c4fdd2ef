/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts between a Lease object and a record.
 *
 * Invariants:
 *  - any program may have written the Lease: reading accepts every JSON object, and treats a field
 *    that it cannot parse as absent;
 *  - writing changes only our own fields of the object, so that a Go process (client-go) and ours
 *    can contend for one Lease, and foreign labels survive.
 */
#include "leader/lease_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "client/json_span.h"
#include "leader/lease_history.h"

/* ---- managedFields ---- */

struct hf__lease_cut hf__lease_find_cut(const char *text, size_t n) {
        static const char name[] = "managedFields";
        struct hf__lease_cut none = {0};
        struct hf__span lease = {text, n}, metadata, key, value;
        size_t at = 0, end = 0; /* end: where the previous member ends; 0 = there is none */

        if (!hf__span_member(lease, "metadata", &metadata))
                return none;
        while (hf__span_next_member(metadata, &at, &key, &value) > 0) {
                bool is_found = key.n == sizeof name - 1 && memcmp(key.data, name, key.n) == 0;
                if (is_found && end > 0) { /* with the comma in front of it */
                        size_t metadata_at = (size_t)(metadata.data - text);
                        return (struct hf__lease_cut){metadata_at + end, metadata_at + at};
                }
                if (is_found)
                        return none; /* no server prints it first */
                end = at;
        }
        return none;
}

/* ---- reading ---- */

/*
 * Copies a string that another program wrote. If it is too long, it is cut between two UTF-8
 * characters, because it may be written again and must stay valid. The cut string ends in an
 * ellipsis, which no identity of ours can contain, so it never equals one of ours.
 */
static void copy_text(char *to, size_t max, const char *from) {
        static const char mark[] = "\xe2\x80\xa6"; /* an ellipsis */
        size_t n = from ? strlen(from) : 0;

        if (n < max) {
                (void)snprintf(to, max, "%s", from ? from : "");
                return;
        }
        n = max - sizeof mark;
        while (n > 0 && ((unsigned char)from[n] & 0xc0) == 0x80)
                n--;
        memcpy(to, from, n);
        memcpy(to + n, mark, sizeof mark);
}

static int64_t read_time(const struct hf__json *spec, const char *key) {
        const char *text = hf__json_string(spec, key);
        int64_t usec = 0, sec = 0;
        if (!text)
                return 0;
        if (hf__microtime_parse(text, &usec) == 0)
                return usec;
        /* A time written by hand may lack the six decimals. */
        return hf__time_parse(text, &sec) == 0 ? sec * 1000000 : 0;
}

static uint64_t parse_revision(const char *rv) {
        char *end;
        if (*rv < '0' || *rv > '9')
                return 0;
        errno = 0;
        unsigned long long value = strtoull(rv, &end, 10);
        return *end || errno ? 0 : value;
}

/* An annotation's name contains dots, so it is looked up as a key, not as a path. NULL = none. */
static const char *annotation_of(const struct hf__json *lease, const char *key) {
        const struct hf__json *annotation =
                hf__json_get(hf__json_path(lease, "metadata.annotations"), key);
        return hf__json_is_string(annotation) ? hf__json_text(annotation) : NULL;
}

int hf__lease_read(const struct hf__json *lease, struct hf__record *ret_record) {
        if (!hf__json_is_object(lease))
                return HF_E_INVALID;
        struct hf__record record = {.exists = true};
        const struct hf__json *spec = hf__json_get(lease, "spec");
        copy_text(record.holder, sizeof record.holder, hf__json_string(spec, "holderIdentity"));
        (void)hf__json_i64(spec, "leaseDurationSeconds", &record.duration_s);
        (void)hf__json_i64(spec, "leaseTransitions", &record.transitions);
        record.acquire_us = read_time(spec, "acquireTime");
        record.renew_us = read_time(spec, "renewTime");
        copy_text(record.successor, sizeof record.successor,
                  annotation_of(lease, HF__SUCCESSOR_ANNOTATION));
        const char *hand_over_to = annotation_of(lease, HF__HAND_OVER_ANNOTATION);
        /* A longer string is no valid identity, so it names no process. */
        if (hand_over_to && strlen(hand_over_to) < sizeof record.hand_over_to)
                strcpy(record.hand_over_to, hand_over_to);
        record.preferred = spec && hf__json_string(spec, "preferredHolder") &&
                           *hf__json_string(spec, "preferredHolder");
        copy_text(record.uid, sizeof record.uid, hf__json_string(lease, "metadata.uid"));
        copy_text(record.rv, sizeof record.rv, hf__json_string(lease, "metadata.resourceVersion"));
        record.rv_number = parse_revision(record.rv);
        *ret_record = record;
        return 0;
}

/* ---- writing ---- */

static int set_time(struct hf__json *spec, const char *key, int64_t usec) {
        char text[HF__MICROTIME_MAX];
        if (usec == 0) {
                hf__json_remove(spec, key);
                return 0;
        }
        hf__microtime_format(usec, text);
        return hf__json_set_string(spec, key, text);
}

/* Returns the member `key` of object. A missing member, or one that is not an object, is replaced
 * by an empty object. NULL = out of memory. */
static struct hf__json *member_object(struct hf__json *object, const char *key) {
        if (!hf__json_is_object(hf__json_get(object, key)) &&
            hf__json_put(object, key, hf__json_object()) != 0)
                return NULL;
        return hf__json_get(object, key);
}

/* Sets a label or an annotation; value NULL removes it. The name is a key, not a path, because it
 * contains dots. */
static int set_in_map(struct hf__json *metadata, const char *map, const char *key,
                      const char *value) {
        if (!value) {
                hf__json_drop(hf__json_get(metadata, map), key);
                return 0;
        }
        struct hf__json *object = member_object(metadata, map);
        return object ? hf__json_put_string(object, key, value) : -ENOMEM;
}

static int set_labels(struct hf__json *metadata, const char *const *labels) {
        for (; labels && *labels; labels++) {
                const char *equals = strchr(*labels, '=');
                char *key = equals ? strndup(*labels, (size_t)(equals - *labels)) : NULL;
                if (!key)
                        return equals ? -ENOMEM : -EINVAL;
                int r = set_in_map(metadata, "labels", key, equals + 1);
                free(key);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int set_history(struct hf__json *metadata, const struct hf__json *last,
                       const struct hf__record *record) {
        struct hf__strbuf text = {0};
        if (record->cause == HF__CAUSE_NONE)
                return 0;
        hf__lease_history_append(annotation_of(last, HF__LEASE_HISTORY_ANNOTATION), record, &text);
        int r = text.error ? text.error
                           : set_in_map(metadata, "annotations", HF__LEASE_HISTORY_ANNOTATION,
                                        text.data);
        hf__strbuf_done(&text);
        return r;
}

/* A record that begins a term gets the description of the process, or loses the old description if
 * process is NULL. A renewal keeps the description, a release removes it. */
static int set_process(struct hf__json *metadata, const struct hf__record *record,
                       const char *process) {
        struct hf__strbuf text = {0};
        bool describes = process && record->cause != HF__CAUSE_NONE;
        if (record->cause == HF__CAUSE_NONE && record->holder[0])
                return 0;
        if (describes)
                hf__strbuf_printf(&text, "%lld %s %s", (long long)record->acquire_us,
                                  record->holder, process);
        int r = text.error;
        if (r == 0)
                r = set_in_map(metadata, "annotations", HF__PROCESS_ANNOTATION,
                               describes ? text.data : NULL);
        hf__strbuf_done(&text);
        return r;
}

bool hf__lease_process(const struct hf__json *lease, const char *holder, int64_t acquire_us,
                       char *process, size_t max) {
        const char *text = annotation_of(lease, HF__PROCESS_ANNOTATION);
        char *end = NULL;
        size_t n = strlen(holder);
        if (!text || *text < '1' || *text > '9')
                return false;
        errno = 0;
        if (strtoll(text, &end, 10) != acquire_us || errno != 0 || *end != ' ' ||
            strncmp(end + 1, holder, n) != 0 || end[1 + n] != ' ')
                return false;
        text = end + n + 2;
        if (*text == '\0' || strlen(text) >= max)
                return false;
        strcpy(process, text);
        return true;
}

static int fill_metadata(struct hf__json *metadata, const char *ns, const char *name,
                         const struct hf__record *record, const char *const *labels) {
        const char *successor = record->successor[0] ? record->successor : NULL;

        int r = hf__json_set_string(metadata, "namespace", ns);
        if (r == 0)
                r = hf__json_set_string(metadata, "name", name);
        if (!record->exists || !record->rv[0])
                hf__json_remove(metadata, "resourceVersion");
        else if (r == 0)
                r = hf__json_set_string(metadata, "resourceVersion", record->rv);
        if (r == 0)
                r = set_labels(metadata, labels);
        if (r == 0)
                r = set_in_map(metadata, "annotations", HF__SUCCESSOR_ANNOTATION, successor);
        /* A hand-over request applies only to the record that it was added to. */
        if (r == 0)
                r = set_in_map(metadata, "annotations", HF__HAND_OVER_ANNOTATION, NULL);
        return r;
}

static int fill_spec(struct hf__json *spec, const struct hf__record *record) {
        int r = hf__json_set_string(spec, "holderIdentity", record->holder);
        if (record->duration_s <= 0)
                hf__json_remove(spec, "leaseDurationSeconds"); /* 0 is not valid on the wire */
        else if (r == 0)
                r = hf__json_set_i64(spec, "leaseDurationSeconds", record->duration_s);
        if (r == 0)
                r = hf__json_set_i64(spec, "leaseTransitions", record->transitions);
        if (r == 0)
                r = set_time(spec, "acquireTime", record->acquire_us);
        if (r == 0)
                r = set_time(spec, "renewTime", record->renew_us);
        return r;
}

static int fill_lease(struct hf__json *lease, const char *ns, const char *name,
                      const struct hf__record *record, const char *const *labels) {
        struct hf__json *metadata = member_object(lease, "metadata");
        struct hf__json *spec = member_object(lease, "spec");
        if (!metadata || !spec)
                return -ENOMEM;
        int r = hf__json_set_string(lease, "apiVersion", "coordination.k8s.io/v1");
        if (r == 0)
                r = hf__json_set_string(lease, "kind", "Lease");
        if (r == 0)
                r = fill_metadata(metadata, ns, name, record, labels);
        if (r == 0)
                r = fill_spec(spec, record);
        return r;
}

void hf__lease_write(struct hf__json *last, const char *ns, const char *name,
                     const struct hf__record *record, const char *const *labels,
                     const char *process, struct hf__strbuf *out) {
        bool is_update = last && record->exists;
        struct hf__json *lease = is_update ? last : hf__json_object();
        int r = lease ? fill_lease(lease, ns, name, record, labels) : -ENOMEM;
        if (r == 0)
                r = set_history(hf__json_get(lease, "metadata"), last, record);
        if (r == 0)
                r = set_process(hf__json_get(lease, "metadata"), record, process);
        if (r == 0)
                hf__json_print(lease, out);
        else if (out->error == 0)
                out->error = r;
        if (!is_update)
                hf__json_free(lease);
}

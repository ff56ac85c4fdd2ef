/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the text of a Lease, with other values of the members that a holder changes.
 *
 * Invariant: each member that hf__lease_write would set is found exactly once, or the edit is given
 * up. So the result is that of hf__lease_write also if a member is missing or repeated. If the edit
 * is given up, the caller parses the Lease and calls hf__lease_write.
 */
#include "leader/lease_edit.h"

#include <string.h>

#include "base/strbuf.h"
#include "base/time_format.h"
#include "client/json_span.h"
#include "leader/lease_record.h"

enum member {
        API_VERSION,
        KIND,
        METADATA,
        NS,
        NAME,
        REVISION,
        SPEC,
        HOLDER,
        DURATION,
        TRANSITIONS,
        ACQUIRE_TIME,
        RENEW_TIME,
        N_REQUIRED,
        ANNOTATIONS = N_REQUIRED, /* may be missing */
};

struct edit {
        const struct hf__lease_edit *what;
        struct hf__strbuf *out;
        const char *copied; /* the text is copied up to here */
        unsigned found;     /* a bit for each member */
};

static bool is_key(struct hf__span key, const char *name) {
        return key.n == strlen(name) && memcmp(key.data, name, key.n) == 0;
}

/* False: the object has two members of this name. */
static bool mark_found(struct edit *edit, enum member member) {
        bool is_first = !(edit->found & 1u << member);

        edit->found |= 1u << member;
        return is_first;
}

static bool find_text(struct edit *edit, enum member member, struct hf__span value,
                      const char *text) {
        return mark_found(edit, member) && value.n == strlen(text) + 2 &&
               hf__span_is_plain(value) && memcmp(value.data + 1, text, value.n - 2) == 0;
}

/* Copies the text up to the value, and leaves the value out. */
static bool cut_value(struct edit *edit, enum member member, struct hf__span value) {
        hf__strbuf_add(edit->out, edit->copied, (size_t)(value.data - edit->copied));
        edit->copied = value.data + value.n;
        return mark_found(edit, member);
}

static bool replace_text(struct edit *edit, enum member member, struct hf__span value,
                         const char *text) {
        bool is_found = cut_value(edit, member, value);

        hf__strbuf_printf(edit->out, "\"%s\"", text);
        return is_found;
}

static bool replace_number(struct edit *edit, enum member member, struct hf__span value,
                           int64_t number) {
        bool is_found = cut_value(edit, member, value);

        hf__strbuf_printf(edit->out, "%lld", (long long)number);
        return is_found;
}

static bool replace_time(struct edit *edit, enum member member, struct hf__span value,
                         int64_t usec) {
        char text[HF__MICROTIME_MAX];

        hf__microtime_format(usec, text);
        return replace_text(edit, member, value, text);
}

/* Called for each member of an object. False: the edit is given up. */
typedef bool (*member_fn)(struct edit *edit, struct hf__span key, struct hf__span value);

/* Calls fn for each member of the object. False: fn gives the edit up, the text is not an object,
 * or the name of a member has an escape: it may be a name that fn looks for. */
static bool each_member(struct edit *edit, struct hf__span object, member_fn fn) {
        struct hf__span key, value;
        size_t at = 0;
        int r;

        while ((r = hf__span_next_member(object, &at, &key, &value)) > 0)
                if (memchr(key.data, '\\', key.n) || !fn(edit, key, value))
                        return false;
        return r == 0;
}

/* Whether the annotation stays as it is. An update removes or sets the others. A renewal keeps the
 * description of the process. */
static bool keep_annotation(struct edit *edit, struct hf__span key, struct hf__span value) {
        bool is_release = edit->what->record->holder[0] == '\0';

        (void)value;
        return !is_key(key, HF__SUCCESSOR_ANNOTATION) && !is_key(key, HF__HAND_OVER_ANNOTATION) &&
               !(is_release && is_key(key, HF__PROCESS_ANNOTATION));
}

static bool edit_metadata(struct edit *edit, struct hf__span key, struct hf__span value) {
        if (is_key(key, "namespace"))
                return find_text(edit, NS, value, edit->what->ns);
        if (is_key(key, "name"))
                return find_text(edit, NAME, value, edit->what->name);
        if (is_key(key, "resourceVersion"))
                return replace_text(edit, REVISION, value, edit->what->record->rv);
        if (is_key(key, "annotations"))
                return mark_found(edit, ANNOTATIONS) && each_member(edit, value, keep_annotation);
        return true;
}

static bool edit_spec(struct edit *edit, struct hf__span key, struct hf__span value) {
        const struct hf__record *record = edit->what->record;

        if (is_key(key, "holderIdentity"))
                return replace_text(edit, HOLDER, value, record->holder);
        if (is_key(key, "leaseDurationSeconds"))
                return replace_number(edit, DURATION, value, record->duration_s);
        if (is_key(key, "leaseTransitions"))
                return replace_number(edit, TRANSITIONS, value, record->transitions);
        if (is_key(key, "acquireTime"))
                return replace_time(edit, ACQUIRE_TIME, value, record->acquire_us);
        if (is_key(key, "renewTime"))
                return replace_time(edit, RENEW_TIME, value, record->renew_us);
        return true;
}

static bool edit_lease(struct edit *edit, struct hf__span key, struct hf__span value) {
        if (is_key(key, "apiVersion"))
                return find_text(edit, API_VERSION, value, "coordination.k8s.io/v1");
        if (is_key(key, "kind"))
                return find_text(edit, KIND, value, "Lease");
        if (is_key(key, "metadata"))
                return mark_found(edit, METADATA) && each_member(edit, value, edit_metadata);
        if (is_key(key, "spec"))
                return mark_found(edit, SPEC) && each_member(edit, value, edit_spec);
        return true;
}

/* Whether the text can stand between quotes in JSON as it is. The store of another server may send
 * any text. */
static bool is_plain(const char *text) {
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                if (*c < 0x20 || *c == '"' || *c == '\\')
                        return false;
        return true;
}

/* Whether hf__lease_write would only replace values for this record: it would not create the Lease,
 * begin a term, name a successor, remove a member, or escape a character. (keep_annotation looks
 * for the annotations that it would remove.) */
static bool is_simple(const struct hf__record *record) {
        return record->exists && record->cause == HF__CAUSE_NONE && record->duration_s > 0 &&
               record->acquire_us != 0 && record->renew_us != 0 && record->rv[0] &&
               !record->successor[0] && is_plain(record->rv) && is_plain(record->holder);
}

bool hf__lease_edit(const struct hf__lease_edit *what, const char *last, size_t n,
                    struct hf__strbuf *out) {
        struct edit edit = {.what = what, .out = out, .copied = last};
        const unsigned required = (1u << N_REQUIRED) - 1;

        if (!is_simple(what->record))
                return false;
        hf__strbuf_reserve(out, n + HF_IDENTITY_MAX + HF__REVISION_MAX);
        if (!each_member(&edit, (struct hf__span){last, n}, edit_lease) ||
            (edit.found & required) != required) {
                hf__strbuf_reset(out);
                return false;
        }
        hf__strbuf_add(out, edit.copied, (size_t)(last + n - edit.copied));
        return true;
}

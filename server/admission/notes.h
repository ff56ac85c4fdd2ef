/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Collects what admission adds to a response and to the audit log: warnings, and annotations of the
 * event. Both are bounded, and adding one takes time in proportion to its length on average,
 * whatever is there already. If memory runs out, warnings and annotations are dropped. Thread:
 * owner only.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Bytes of all annotations of a request; more are dropped. */
#define HFD_ADMISSION_ANNOTATIONS_MAX ((size_t)64 << 10)
/* Bytes of all warnings of a request; the response sends fewer (handlers/rest). */
#define HFD_ADMISSION_WARNINGS_MAX ((size_t)16 << 10)

/* Texts in a strbuf, found by their hash. */
struct hfd_note_index {
        uint64_t seed;    /* random: a webhook cannot choose texts that have the same hash */
        uint32_t *places; /* owned; a place in the strbuf plus 1; 0 = free */
        size_t n, space;  /* space is a power of 2, or 0 */
};

/* Begins as {0}. */
struct hfd_admission_notes {
        struct hf__strbuf warnings;        /* lines; no two are equal */
        struct hf__strbuf annotations;     /* keys, each followed by a value, all with their NULs */
        struct hfd_note_index lines, keys; /* of the two texts above */
};
void hfd_admission_notes_done(struct hfd_admission_notes *notes);

/* Adds a warning, unless the same is there already. Control characters become spaces. notes NULL =
 * nobody reads them. */
void hfd_admission_warn(struct hfd_admission_notes *notes, const char *text);
/* Adds an annotation to the event of the audit log. As in Kubernetes, the first value of a key
 * stays. */
void hfd_admission_annotate(struct hfd_admission_notes *notes, const char *key, const char *value);
/* Adds the warnings and annotations of `from`. */
void hfd_admission_notes_merge(struct hfd_admission_notes *notes,
                               const struct hfd_admission_notes *from);

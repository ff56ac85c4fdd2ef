/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads, changes and writes the ledger.
 *
 * Invariants: a write keeps the parts of the ConfigMap that this program does not know, except
 * unknown members of records. If one record cannot be read, the whole ledger is rejected, because
 * the step of a skipped record would be done again. `completed` is read even from a rejected
 * ledger.
 */
#include "bootstrap/ledger.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

#define MAX_TEXT (900u << 10) /* bytes of all records; a ConfigMap may have 1 MiB */

static const char *const outcomes[_HF__OUTCOME_MAX] = {"created", "updated", "found", "kept",
                                                       "deleted"};

const char *hf__outcome_text(enum hf__outcome outcome) {
        assert(outcome < _HF__OUTCOME_MAX);
        return outcomes[outcome];
}

void hf__ledger_done(struct hf__ledger *ledger) {
        for (size_t i = 0; i < ledger->n_entries; i++)
                free(ledger->entries[i].step);
        free(ledger->entries);
        *ledger = (struct hf__ledger){0};
}

/* ---- reading ---- */

/* Copies a string member, or "" if it is absent. False: the member is not a string, or is too
 * long. */
static bool copy_member(const struct hf__json *object, const char *key, char *text, size_t max) {
        const struct hf__json *member = hf__json_get(object, key);
        const char *value = member ? hf__json_text(member) : "";

        if (!value || strlen(value) >= max)
                return false;
        memcpy(text, value, strlen(value) + 1);
        return true;
}

/* Accepts lower-case digits only, because hashes are compared as texts. */
static bool is_hash(const char *text, bool may_be_empty) {
        size_t n = strspn(text, "0123456789abcdef");
        return text[n] == '\0' && (n == HF__HASH_DIGITS || (n == 0 && may_be_empty));
}

static bool read_superseded(const struct hf__json *line, struct hf__ledger_entry *entry) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(line, "superseded")); m;
             m = hf__json_next(m)) {
                const char *hash = hf__json_text(m);
                if (!hash || !is_hash(hash, false) || entry->n_superseded == HF__SUPERSEDED_MAX)
                        return false;
                memcpy(entry->superseded[entry->n_superseded++], hash, sizeof(hf__hash));
        }
        return true;
}

static bool read_outcome(const struct hf__json *line, struct hf__ledger_entry *entry) {
        const char *text = hf__json_string(line, "outcome");

        for (unsigned i = 0; text && i < _HF__OUTCOME_MAX; i++)
                if (strcmp(text, outcomes[i]) == 0) {
                        entry->outcome = (enum hf__outcome)i;
                        return true;
                }
        return false;
}

/* Fills the entry, except its step. Returns NULL, or a text that says what is wrong. */
static const char *read_entry(const struct hf__json *line, struct hf__ledger_entry *entry) {
        if (!hf__json_string(line, "step"))
                return "has no step";
        if (!copy_member(line, "phase", entry->phase, sizeof entry->phase) ||
            !copy_member(line, "at", entry->at, sizeof entry->at))
                return "has no usable phase or time";
        if (!copy_member(line, "hash", entry->hash, sizeof entry->hash) ||
            !is_hash(entry->hash, false) ||
            !copy_member(line, "applied", entry->applied, sizeof entry->applied) ||
            !is_hash(entry->applied, true) || !read_superseded(line, entry))
                return "has no usable hash";
        if (!copy_member(line, "version", entry->version, sizeof entry->version) ||
            !hf__version_valid(entry->version))
                return "has no usable version";
        return read_outcome(line, entry) ? NULL : "has no known outcome";
}

/* Appends a copy of the entry with this step. Takes ownership of step, also on failure. A NULL step
 * means that the caller ran out of memory. */
static int append_entry(struct hf__ledger *ledger, const struct hf__ledger_entry *entry,
                        char *step) {
        struct hf__ledger_entry *entries = ledger->entries;

        if (step && ledger->n_entries == ledger->capacity) {
                size_t capacity = ledger->capacity ? 2 * ledger->capacity : 64;

                entries = realloc(entries, capacity * sizeof *entries);
                if (entries) {
                        ledger->entries = entries;
                        ledger->capacity = capacity;
                }
        }
        if (!step || !entries) {
                free(step);
                return -ENOMEM;
        }
        entries[ledger->n_entries] = *entry;
        entries[ledger->n_entries++].step = step;
        return 0;
}

/* Reads one record and appends it. A second record of the same step is an error, because the two
 * could contradict each other. */
static int read_record(struct hf__ledger *ledger, const char *text, size_t n, size_t number,
                       struct hf_status *reterr_status) {
        struct hf__ledger_entry entry = {0};
        struct hf__json *line = NULL;
        const char *wrong = "is not JSON";

        int r = hf__json_parse(text, n, &line, NULL);
        if (r == 0)
                wrong = read_entry(line, &entry);
        if (r == 0 && !wrong && hf__ledger_find(ledger, hf__json_string(line, "step")))
                wrong = "has the step of an earlier one";
        if (r != -ENOMEM && wrong)
                r = hf_fail(reterr_status, HF_E_INVALID, "data.steps, line %zu: the record %s",
                            number, wrong);
        else if (r == 0)
                r = append_entry(ledger, &entry, strdup(hf__json_string(line, "step")));
        if (r < 0)
                (void)hf_fail(reterr_status, r, "%s", hf_strerror(r));
        hf__json_free(line);
        return r;
}

/* Reads the records, one per line. Users can write into the ConfigMap, so the number of records is
 * limited. */
static int read_steps(struct hf__ledger *ledger, const char *text,
                      struct hf_status *reterr_status) {
        for (size_t number = 1; *text; number++) {
                size_t n = strcspn(text, "\n");
                int r = n ? read_record(ledger, text, n, number, reterr_status) : 0;
                if (r != 0)
                        return r;
                if (ledger->n_entries > HF__LEDGER_RECORDS_MAX)
                        return hf_fail(reterr_status, HF_E_TOO_LARGE,
                                       "data.steps has too many records");
                text += n + (text[n] == '\n');
        }
        return 0;
}

#define MAX_KEY 64

static void make_completed_key(const char *phase, char key[MAX_KEY]) {
        (void)snprintf(key, MAX_KEY, "%.47s.completed", phase);
}

/* Reads the completion of a phase. Any text that is not empty counts as complete, even one that
 * cannot be read: a later format or a user has marked the phase as complete. */
static void read_completed(struct hf__ledger *ledger, const struct hf__json *data,
                           const char *phase) {
        char key[MAX_KEY];

        make_completed_key(phase, key);
        const char *value = hf__json_text(hf__json_get(data, key));
        if (!value || !*value || ledger->n_completed == HF_BOOTSTRAP_PHASES_MAX)
                return;
        struct hf__ledger_completed *completed = &ledger->completed[ledger->n_completed++];
        size_t n = strcspn(value, " ");
        (void)snprintf(completed->phase, sizeof completed->phase, "%s", phase);
        (void)snprintf(completed->version, sizeof completed->version, "%.*s",
                       n < sizeof completed->version ? (int)n : 0, value);
        if (!hf__version_valid(completed->version))
                completed->version[0] = '\0';
        if (value[n] == ' ')
                (void)snprintf(completed->at, sizeof completed->at, "%s", value + n + 1);
}

int hf__ledger_read(const struct hf__json *object, const char *const *phases, size_t n_phases,
                    struct hf__ledger *ret_ledger, struct hf_status *reterr_status) {
        const struct hf__json *data = hf__json_get(object, "data");
        const char *format = hf__json_text(hf__json_get(data, "format"));
        const char *steps = hf__json_text(hf__json_get(data, "steps"));

        *ret_ledger = (struct hf__ledger){0};
        for (size_t i = 0; i < n_phases; i++)
                read_completed(ret_ledger, data, phases[i]);
        if (!format)
                return hf_fail(reterr_status, HF_E_INVALID, "data.format is missing");
        ret_ledger->newer_format = strcmp(format, HF__LEDGER_FORMAT) != 0;
        if (ret_ledger->newer_format)
                return 0;
        return read_steps(ret_ledger, steps ? steps : "", reterr_status);
}

/* ---- writing ---- */

static void print_member(struct hf__strbuf *out, const char *before, const char *key,
                         const char *value) {
        hf__strbuf_printf(out, "%s\"%s\":", before, key);
        hf__strbuf_json(out, value, strlen(value));
}

/* The order of the members is fixed, so that an unchanged record stays the same line. */
static void print_entry(const struct hf__ledger_entry *entry, struct hf__strbuf *out) {
        print_member(out, "{", "step", entry->step);
        print_member(out, ",", "phase", entry->phase);
        print_member(out, ",", "outcome", outcomes[entry->outcome]);
        print_member(out, ",", "version", entry->version);
        print_member(out, ",", "at", entry->at);
        print_member(out, ",", "hash", entry->hash);
        print_member(out, ",", "applied", entry->applied);
        for (unsigned i = 0; i < entry->n_superseded; i++)
                hf__strbuf_printf(out, "%s\"%s\"", i ? "," : ",\"superseded\":[",
                                  entry->superseded[i]);
        hf__strbuf_puts(out, entry->n_superseded ? "]}\n" : "}\n");
}

static int set_data(struct hf__json *data, const struct hf__ledger *ledger, const char *steps) {
        int r = hf__json_put_string(data, "format", HF__LEDGER_FORMAT);

        for (size_t i = 0; r == 0 && i < ledger->n_completed; i++) {
                const struct hf__ledger_completed *completed = &ledger->completed[i];
                char key[MAX_KEY], value[128];
                make_completed_key(completed->phase, key);
                (void)snprintf(value, sizeof value, "%s %s", completed->version, completed->at);
                if (completed->version[0]) /* else keeps the value, which could not be read */
                        r = hf__json_put_string(data, key, value);
        }
        if (r == 0)
                r = hf__json_put_string(data, "steps", steps);
        return r;
}

static struct hf__json *new_object(const char *ns, const char *name) {
        struct hf__json *object = hf__json_object();
        int r = object ? hf__json_set_string(object, "apiVersion", "v1") : -ENOMEM;

        if (r == 0)
                r = hf__json_set_string(object, "kind", "ConfigMap");
        if (r == 0)
                r = hf__json_set_string(object, "metadata.name", name);
        if (r == 0)
                r = hf__json_set_string(object, "metadata.namespace", ns);
        return r == 0 ? object : hf__json_free(object);
}

int hf__ledger_write(const struct hf__ledger *ledger, const struct hf__json *object, const char *ns,
                     const char *name, struct hf__strbuf *out) {
        struct hf__strbuf steps = {.max = MAX_TEXT};
        struct hf__json *copy = object ? hf__json_dup(object) : new_object(ns, name);
        int r = copy ? 0 : -ENOMEM;

        assert(!ledger->newer_format); /* its records were not read and would be lost */
        hf__strbuf_puts(&steps, "");   /* without records, steps.data is "", not NULL */
        for (size_t i = 0; i < ledger->n_entries; i++)
                print_entry(&ledger->entries[i], &steps);
        if (r == 0)
                r = steps.error;
        if (r == 0 && !hf__json_is_object(hf__json_get(copy, "data")))
                r = hf__json_set(copy, "data", hf__json_object());
        if (r == 0)
                r = set_data(hf__json_get(copy, "data"), ledger, steps.data);
        if (r == 0) {
                hf__json_print(copy, out);
                r = out->error;
        }
        hf__strbuf_done(&steps);
        hf__json_free(copy);
        return r;
}

/* ---- looking up and changing ---- */

const struct hf__ledger_entry *hf__ledger_find(const struct hf__ledger *ledger, const char *step) {
        for (size_t i = 0; i < ledger->n_entries; i++)
                if (strcmp(ledger->entries[i].step, step) == 0)
                        return &ledger->entries[i];
        return NULL;
}

const struct hf__ledger_completed *hf__ledger_find_completed(const struct hf__ledger *ledger,
                                                             const char *phase) {
        for (size_t i = 0; i < ledger->n_completed; i++)
                if (strcmp(ledger->completed[i].phase, phase) == 0)
                        return &ledger->completed[i];
        return NULL;
}

/* Sets the superseded hashes of the new entry: the hashes in the previous entry, without the hash
 * of the new one. If a manifest returns to an earlier content, that content is not superseded any
 * more. Keeps only the newest HF__SUPERSEDED_MAX. */
static void set_superseded(const struct hf__ledger_entry *previous,
                           struct hf__ledger_entry *entry) {
        assert(entry->n_superseded == 0);
        for (unsigned i = 0; i <= previous->n_superseded; i++) {
                const char *hash =
                        i < previous->n_superseded ? previous->superseded[i] : previous->hash;
                if (strcmp(hash, entry->hash) == 0)
                        continue;
                if (entry->n_superseded == HF__SUPERSEDED_MAX)
                        memmove(entry->superseded[0], entry->superseded[1],
                                --entry->n_superseded * sizeof(hf__hash));
                memcpy(entry->superseded[entry->n_superseded++], hash, sizeof(hf__hash));
        }
}

int hf__ledger_add(struct hf__ledger *ledger, const struct hf__ledger_entry *entry) {
        struct hf__ledger_entry *previous =
                (struct hf__ledger_entry *)hf__ledger_find(ledger, entry->step);
        struct hf__ledger_entry made = *entry;

        made.n_superseded = 0;
        /* Nobody could read a ledger with more records. */
        if (!previous && ledger->n_entries >= HF__LEDGER_RECORDS_MAX)
                return HF_E_TOO_LARGE;
        if (!previous)
                return append_entry(ledger, &made, strdup(entry->step));
        set_superseded(previous, &made);
        made.step = previous->step;
        *previous = made;
        return 0;
}

void hf__ledger_remove(struct hf__ledger *ledger, size_t index) {
        assert(index < ledger->n_entries);
        struct hf__ledger_entry *entry = &ledger->entries[index];
        free(entry->step);
        ledger->n_entries--;
        memmove(entry, entry + 1, (ledger->n_entries - index) * sizeof *entry);
}

/* The value of a phase is overwritten, even one that could not be read: this version has now
 * completed the phase. */
int hf__ledger_complete(struct hf__ledger *ledger, const char *phase, const char *version,
                        const char *at) {
        struct hf__ledger_completed *completed =
                (struct hf__ledger_completed *)hf__ledger_find_completed(ledger, phase);

        if (!completed && ledger->n_completed == HF_BOOTSTRAP_PHASES_MAX)
                return HF_E_TOO_LARGE;
        if (!completed)
                completed = &ledger->completed[ledger->n_completed++];
        (void)snprintf(completed->phase, sizeof completed->phase, "%s", phase);
        (void)snprintf(completed->version, sizeof completed->version, "%s", version);
        (void)snprintf(completed->at, sizeof completed->at, "%s", at);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Events, without a thread of its own.
 *
 *      FREE --recorded--> UNDER_WAY --answered--> KEPT --recorded again, due--> UNDER_WAY
 *
 * A repetition is due WRITE_EVERY after the last write began; before then, it is only counted. If
 * no entry is FREE, a new Event takes the KEPT entry that has not been seen for longest.
 *
 * An entry holds one Event. The Event's name on the server ends with a hash of the component,
 * object, type, reason and message, so the name alone tells Events apart. Each write begins with a
 * PUT to that name, so a repetition, even by another process, adds no object. If the response is
 * 404, because there is no such object and this server does not create one on PUT, a POST follows.
 *
 * Invariants: the state of an entry that is UNDER_WAY is changed only by the response to its
 * request, or by send_entry if that sends no request. An entry that is UNDER_WAY holds a reference
 * to the recorder, so the owner may free the recorder while requests are under way. After that the
 * owner may free the host, too. Therefore on_response does not log (the next hf_recorder_event
 * logs the failure), and send_entry, which on_response calls for another attempt, uses the host's
 * clock only under the lock and sends nothing if `freed` is set. No lock is held while a request is
 * started, because its response may come on the same thread.
 */
#include <holdfast/recorder.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "base/time_format.h"

#define MAX_ENTRIES     64
#define MAX_ATTEMPTS    3 /* PUT, POST, and PUT again if another process was first */
#define WRITE_EVERY     (10 * HF_NSEC_PER_SEC)
#define REQUEST_TIMEOUT (10 * HF_NSEC_PER_SEC)
#define N_HASH          16   /* digits in an Event's name */
#define MAX_NAME        200  /* bytes of the object's name in it */
#define MAX_REASON      129  /* bytes, with the NUL */
#define MAX_MESSAGE     1025 /* bytes, with the NUL */

enum entry_state { FREE = 0, KEPT, UNDER_WAY };

struct entry {
        struct hf_recorder *recorder; /* borrowed; NULL while FREE; a reference while UNDER_WAY */
        /* guarded by recorder->mu */
        enum entry_state state;
        unsigned n_attempts;
        bool create; /* send a POST */
        uint64_t count;
        hf_nsec seen_at, written_at; /* boot time */
        int64_t last_s;              /* when it was last seen, in seconds since 1970 */
        /* These do not change while UNDER_WAY, so send_entry may use them without the lock. */
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        struct hf__strbuf text; /* the Event up to the members that change with each repetition */
};

struct hf_recorder {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hf_client *client;   /* borrowed */
        char *component, *instance; /* owned */

        pthread_mutex_t mu;
        /* guarded by mu */
        int refs;      /* one for the owner, one for each entry under way */
        bool freed;    /* by the owner */
        int abandoned; /* why the last Event was given up, until that is logged; 0 = none */
        struct entry entries[MAX_ENTRIES];
};

/* ---- creating and freeing ---- */

static void free_recorder(struct hf_recorder *recorder) {
        for (size_t i = 0; i < MAX_ENTRIES; i++)
                hf__strbuf_done(&recorder->entries[i].text);
        (void)pthread_mutex_destroy(&recorder->mu);
        free(recorder->component);
        free(recorder->instance);
        free(recorder);
}

HF__CLEANUP_DEFINE(recorder_cleanup, struct hf_recorder *, free_recorder)

static void unref_recorder(struct hf_recorder *recorder) {
        (void)pthread_mutex_lock(&recorder->mu);
        assert(recorder->refs > 0);
        bool is_last_ref = --recorder->refs == 0;
        (void)pthread_mutex_unlock(&recorder->mu);
        if (is_last_ref)
                free_recorder(recorder);
}

static const struct hf__sized sized_config = HF__SIZED(struct hf_recorder_config, instance);

int hf_recorder_new(const struct hf_host *host, const struct hf_recorder_config *given,
                    struct hf_recorder **ret_recorder) {
        struct hf_recorder_config config;

        if (!ret_recorder || hf__host_check(host, NULL) != 0 ||
            hf__sized_copy(&sized_config, &config, given, NULL) != 0)
                return -EINVAL;
        if (!config.client || !config.component || !config.instance)
                return -EINVAL;
        HF__CLEANUP(hf__free_cleanup) struct hf_recorder *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return r;
        HF__CLEANUP(recorder_cleanup) struct hf_recorder *recorder = HF__TAKE(memory);
        recorder->host = host;
        recorder->client = config.client;
        recorder->component = strdup(config.component);
        recorder->instance = strdup(config.instance);
        if (!recorder->component || !recorder->instance)
                return -ENOMEM;
        recorder->refs = 1;
        *ret_recorder = HF__TAKE(recorder);
        return 0;
}

struct hf_recorder *hf_recorder_free(struct hf_recorder *recorder) {
        if (!recorder)
                return NULL;
        (void)pthread_mutex_lock(&recorder->mu);
        recorder->freed = true;
        (void)pthread_mutex_unlock(&recorder->mu);
        unref_recorder(recorder);
        return NULL;
}

/* ---- writing ---- */

static void on_response(void *ctx, const struct hf_response *reply);

/* Prints the Event and starts its request. The entry must be UNDER_WAY. A failure to start is
 * handled like a response. */
static void send_entry(struct entry *entry) {
        struct hf_recorder *recorder = entry->recorder;
        struct hf__strbuf body = {0};
        char last[HF__MICROTIME_MAX];

        (void)pthread_mutex_lock(&recorder->mu);
        if (recorder->freed) {
                entry->state = KEPT;
                (void)pthread_mutex_unlock(&recorder->mu);
                unref_recorder(recorder);
                return;
        }
        hf_nsec deadline = hf_now(hf_host_clock(recorder->host)) + REQUEST_TIMEOUT;
        bool create = entry->create;
        hf__time_format(entry->last_s, last);
        hf__strbuf_add(&body, entry->text.data, entry->text.n);
        hf__strbuf_printf(&body, ",\"lastTimestamp\":\"%s\",\"count\":%llu}", last,
                          (unsigned long long)entry->count);
        (void)pthread_mutex_unlock(&recorder->mu);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = create ? HF_VERB_CREATE : HF_VERB_UPDATE,
                                           .resource = {"", "v1", "events"},
                                           .ns = entry->ns,
                                           .name = create ? NULL : entry->name,
                                           .body = body.data,
                                           .n_body = body.n,
                                           .deadline = deadline};
        int r = body.error;
        if (r == 0)
                r = hf_client_request(recorder->client, &request, on_response, entry, NULL);
        hf__strbuf_done(&body);
        if (r != 0)
                on_response(entry,
                            &(struct hf_response){.size = sizeof(struct hf_response), .error = r});
}

static void on_response(void *ctx, const struct hf_response *reply) {
        struct entry *entry = ctx;
        struct hf_recorder *recorder = entry->recorder;

        (void)pthread_mutex_lock(&recorder->mu);
        assert(entry->state == UNDER_WAY);
        bool again = reply->error == (entry->create ? HF_E_EXISTS : HF_E_NOT_FOUND) &&
                     ++entry->n_attempts < MAX_ATTEMPTS;
        if (again)
                entry->create = !entry->create;
        else
                entry->state = KEPT;
        if (!again && reply->error != 0)
                recorder->abandoned = reply->error;
        (void)pthread_mutex_unlock(&recorder->mu);
        if (again)
                send_entry(entry);
        else
                unref_recorder(recorder);
}

/* ---- recording ---- */

/* A recorded Event: the arguments of hf_recorder_event, and members of the object. */
struct record {
        const struct hf__json *object;
        const char *ns, *name; /* of the object; ns "" = none */
        enum hf_recorder_type type;
        char reason[MAX_REASON], message[MAX_MESSAGE];
        char event_name[HF_NAME_MAX + 1];
};

static void put_member(struct hf__strbuf *out, const char *key, const char *value) {
        hf__strbuf_printf(out, ",\"%s\":", key);
        hf__strbuf_json(out, value, strlen(value));
}

static void put_object_member(struct hf__strbuf *out, const char *key, const struct record *record,
                              const char *path) {
        const char *value = hf__json_string(record->object, path);
        if (value && value[0])
                put_member(out, key, value);
}

static const char *type_name(enum hf_recorder_type type) {
        return type == HF_RECORDER_WARNING ? "Warning" : "Normal";
}

static const char *event_ns(const struct record *record) {
        return record->ns[0] ? record->ns : "default";
}

static void print_event(const struct hf_recorder *recorder, const struct record *record,
                        int64_t now_s, struct hf__strbuf *out) {
        char at[HF__MICROTIME_MAX];

        hf__time_format(now_s, at);
        hf__strbuf_puts(out, "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":");
        hf__strbuf_json(out, record->event_name, strlen(record->event_name));
        put_member(out, "namespace", event_ns(record));
        hf__strbuf_puts(out, "},\"involvedObject\":{\"name\":");
        hf__strbuf_json(out, record->name, strlen(record->name));
        put_object_member(out, "kind", record, "kind");
        put_object_member(out, "apiVersion", record, "apiVersion");
        put_object_member(out, "namespace", record, "metadata.namespace");
        put_object_member(out, "uid", record, "metadata.uid");
        put_object_member(out, "resourceVersion", record, "metadata.resourceVersion");
        hf__strbuf_puts(out, "},\"source\":{\"component\":");
        hf__strbuf_json(out, recorder->component, strlen(recorder->component));
        hf__strbuf_puts(out, "}");
        put_member(out, "type", type_name(record->type));
        put_member(out, "reason", record->reason);
        put_member(out, "message", record->message);
        put_member(out, "reportingComponent", recorder->component);
        put_member(out, "reportingInstance", recorder->instance);
        put_member(out, "firstTimestamp", at);
}

/* Sets the Event's name: the object's name, cut so that there is room for the rest, and a hash of
 * all that distinguishes two Events. 0 or -ENOMEM. */
static int name_event(const struct hf_recorder *recorder, struct record *record) {
        const char *uid = hf__json_string(record->object, "metadata.uid");
        const char *kind = hf__json_string(record->object, "kind");
        const char *const parts[] = {recorder->component, kind ? kind : "", record->ns,
                                     record->name,        uid ? uid : "",   type_name(record->type),
                                     record->reason,      record->message};
        struct hf__strbuf all = {0};
        char hash[N_HASH + 1];

        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
                hf__strbuf_add(&all, parts[i], strlen(parts[i]) + 1);
        int r = all.error;
        if (r == 0) {
                size_t n = strnlen(record->name, MAX_NAME);
                /* In a name, neither - nor . may stand before a dot. */
                while (n > 0 && (record->name[n - 1] == '-' || record->name[n - 1] == '.'))
                        n--;
                hf__sha256_text(all.data, all.n, N_HASH, hash);
                (void)snprintf(record->event_name, sizeof record->event_name, "%.*s.%s", (int)n,
                               record->name, hash);
        }
        hf__strbuf_done(&all);
        return r;
}

/* The entry of this Event; else a FREE one; else the KEPT one not seen for longest. NULL: all are
 * UNDER_WAY. */
static struct entry *find_entry_locked(struct hf_recorder *recorder, const struct record *record) {
        hf__mutex_assert_held(&recorder->mu);
        struct entry *found = NULL;

        for (struct entry *entry = recorder->entries; entry < recorder->entries + MAX_ENTRIES;
             entry++) {
                if (strcmp(entry->name, record->event_name) == 0) /* a free one has none */
                        return entry;
                if (entry->state != UNDER_WAY && (!found || entry->seen_at < found->seen_at))
                        found = entry; /* a free one was seen at 0 */
        }
        return found;
}

/* Counts the Event. Returns its entry if it must be written now. NULL: it is only counted, or it is
 * not recorded, because all entries are UNDER_WAY or memory is exhausted. */
static struct entry *record_locked(struct hf_recorder *recorder, const struct record *record) {
        hf__mutex_assert_held(&recorder->mu);
        const struct hf_clock *clock = hf_host_clock(recorder->host);
        struct entry *entry = find_entry_locked(recorder, record);
        hf_nsec now = hf_now(clock);
        int64_t now_s = clock->real(clock->ctx) / HF_NSEC_PER_SEC;

        if (!entry)
                return NULL;
        if (strcmp(entry->name, record->event_name) != 0) {
                struct hf__strbuf text = {0};
                print_event(recorder, record, now_s, &text);
                if (text.error != 0) {
                        hf__strbuf_done(&text);
                        return NULL;
                }
                hf__strbuf_done(&entry->text);
                *entry = (struct entry){.recorder = recorder, .state = KEPT, .text = text};
                (void)snprintf(entry->ns, sizeof entry->ns, "%s", event_ns(record));
                (void)snprintf(entry->name, sizeof entry->name, "%s", record->event_name);
        }
        bool is_due = entry->count == 0 || now - entry->written_at >= WRITE_EVERY;
        entry->count++;
        entry->seen_at = now;
        entry->last_s = now_s;
        if (entry->state == UNDER_WAY || !is_due)
                return NULL;
        entry->state = UNDER_WAY;
        entry->written_at = now;
        entry->n_attempts = 0;
        entry->create = false;
        assert(recorder->refs > 0);
        recorder->refs++;
        return entry;
}

void hf_recorder_event(struct hf_recorder *recorder, const char *object, size_t n,
                       enum hf_recorder_type type, const char *reason, const char *format, ...) {
        struct record record = {.type = type};
        struct hf__json *json = NULL;
        struct entry *entry = NULL;
        int abandoned = 0;
        va_list args;

        if (!recorder || !object || !reason || hf__json_parse(object, n, &json, NULL) != 0)
                return;
        va_start(args, format);
        (void)vsnprintf(record.message, sizeof record.message, format, args);
        va_end(args);
        (void)snprintf(record.reason, sizeof record.reason, "%s", reason);
        record.object = json;
        record.name = hf__json_string(json, "metadata.name");
        record.ns = hf__json_string(json, "metadata.namespace");
        if (!record.ns)
                record.ns = "";
        if (record.name && strlen(record.ns) <= HF_NAME_MAX && name_event(recorder, &record) == 0) {
                (void)pthread_mutex_lock(&recorder->mu);
                entry = record_locked(recorder, &record);
                abandoned = recorder->abandoned;
                recorder->abandoned = 0;
                (void)pthread_mutex_unlock(&recorder->mu);
        }
        hf__json_free(json);
        if (abandoned)
                hf_log(&recorder->host->log, HF_LOG_DEBUG, "recorder",
                       "an Event was not written: %s", hf_strerror(abandoned));
        if (entry)
                send_entry(entry);
}

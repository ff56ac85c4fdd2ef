/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a LeaseCandidate object up to date.
 *
 *      NEW --start--> RUNNING --stop--> STOPPED      (a stop also leads from NEW to STOPPED)
 *
 * One thread publishes (writes) the object: at the start, when it is woken, and when the next
 * renewal is due. After a failure it publishes only when the retry is due. A watch of the object
 * runs on the client's threads. It wakes the publishing thread when the object was deleted or
 * contains a ping without a response.
 *
 * Invariants:
 *  - Publishing reads the object first, because the coordinator writes to it too.
 *  - No ping is lost between two watches, because each begins with the object's current state.
 *  - The watch holds a reference, because it may end after hf_candidate_free. Its end callback then
 *    must not use the host, which may be freed already.
 */
#include <holdfast/candidate.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/json.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "base/time_format.h"

#define COMPONENT   "candidate"
#define REFRESH     (300 * HF_NSEC_PER_SEC)
#define RETRY_MIN   (500 * HF_NSEC_PER_MSEC)
#define RETRY_MAX   (30 * HF_NSEC_PER_SEC)
#define WATCH_RETRY HF_NSEC_PER_SEC

enum state { NEW, RUNNING, STOPPED };

struct hf_candidate {
        /* immutable */
        const struct hf_host *host;        /* borrowed */
        struct hf_candidate_config config; /* its strings are owned */
        struct hf_cancel *stop;            /* owned */
        pthread_t thread;                  /* set by hf_candidate_start */

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        int refs; /* one for the owner, one for the watch */
        enum state state;
        bool woken; /* the object must be published now, not only at the next renewal */
        bool watching;
        hf_nsec watch_retry_at;

        /* only the candidate's thread */
        uint64_t watch_id;
        unsigned n_failures; /* in a row */
        uint64_t rng;
};

static const struct hf_resource candidates = {"coordination.k8s.io", "v1beta1", "leasecandidates"};

static void destroy_candidate(struct hf_candidate *candidate) {
        assert(candidate->state != RUNNING && !candidate->watching);
        free((char *)candidate->config.ns);
        free((char *)candidate->config.name);
        free((char *)candidate->config.lease_name);
        free((char *)candidate->config.binary_version);
        free((char *)candidate->config.emulation_version);
        free((char *)candidate->config.strategy);
        hf_cancel_unref(candidate->stop);
        pthread_cond_destroy(&candidate->changed);
        pthread_mutex_destroy(&candidate->mu);
        free(candidate);
}

static void unref_candidate(struct hf_candidate *candidate) {
        pthread_mutex_lock(&candidate->mu);
        assert(candidate->refs > 0);
        bool is_last_ref = --candidate->refs == 0;
        pthread_mutex_unlock(&candidate->mu);
        if (is_last_ref)
                destroy_candidate(candidate);
}

static hf_nsec now(const struct hf_candidate *candidate) {
        return hf_now(hf_host_clock(candidate->host));
}

/* Adds up to 20 %, so that candidates that were started together do not all renew at once. The
 * generator is Knuth's for MMIX. The random fraction has 53 bits, as many as a double holds. */
static hf_nsec jittered_duration(struct hf_candidate *candidate, hf_nsec duration) {
        candidate->rng =
                candidate->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double fraction = (double)(candidate->rng >> 11) * 0x1p-53;
        return duration + (hf_nsec)(fraction * (double)(duration / 5));
}

/* ---- the watch ---- */

/* Reads a time in microseconds. 0 = absent or malformed, which is older than any time. */
static int64_t read_time(const struct hf__json *object, const char *path) {
        const char *text = hf__json_string(object, path);
        int64_t usec = 0;

        return text && hf__microtime_parse(text, &usec) == 0 ? usec : 0;
}

/* Whether the coordinator has sent a ping to which this process has not responded. */
static bool is_pinged(const struct hf__json *object) {
        return read_time(object, "spec.pingTime") > read_time(object, "spec.renewTime");
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct hf_candidate *candidate = ctx;
        struct hf__json *object = NULL;
        bool wanted = event->type == HF_EVENT_DELETED;

        if (event->type == HF_EVENT_BOOKMARK)
                return;
        if (!wanted) {
                int r = hf__json_parse(event->object, event->n_object, &object, NULL);
                /* Without memory: the event may be a ping, and it does not come again. */
                wanted = r == 0 ? is_pinged(object) : r < 0;
        }
        hf__json_free(object);
        if (!wanted)
                return;
        pthread_mutex_lock(&candidate->mu);
        assert(candidate->refs > 0); /* the watch has one */
        candidate->woken = true;
        pthread_cond_broadcast(&candidate->changed);
        pthread_mutex_unlock(&candidate->mu);
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct hf_candidate *candidate = ctx;

        pthread_mutex_lock(&candidate->mu);
        assert(candidate->refs > 0);
        candidate->watching = false;
        /* After a stop the host may be freed already, and now() uses the host. */
        if (candidate->state == RUNNING)
                candidate->watch_retry_at = now(candidate) + WATCH_RETRY;
        pthread_cond_broadcast(&candidate->changed);
        pthread_mutex_unlock(&candidate->mu);
        unref_candidate(candidate);
}

/* Opens the watch, which gets a reference. on_watch_end drops it; if the watch cannot be opened,
 * the client does not call on_watch_end, so this function does. */
static void open_watch(struct hf_candidate *candidate) {
        struct hf_watch_spec spec = {.size = sizeof spec,
                                     .resource = candidates,
                                     .ns = candidate->config.ns,
                                     .name = candidate->config.name,
                                     .bookmarks = true,
                                     .lane = HF_LANE_WATCH};

        pthread_mutex_lock(&candidate->mu);
        assert(candidate->refs > 0 && !candidate->watching);
        candidate->watching = true;
        candidate->refs++;
        pthread_mutex_unlock(&candidate->mu);
        if (hf_client_watch(candidate->config.client, &spec, on_event, on_watch_end, candidate,
                            &candidate->watch_id) != 0)
                on_watch_end(candidate, HF_E_UNAVAILABLE, NULL);
}

/* ---- publishing ---- */

/* Writes this process's own fields into the object. renewTime must be later than pingTime, even if
 * this machine's clock is behind the coordinator's. */
static int fill_object(const struct hf_candidate *candidate, struct hf__json *object) {
        const struct hf_clock *clock = hf_host_clock(candidate->host);
        const struct hf_candidate_config *config = &candidate->config;
        int64_t at = clock->real(clock->ctx) / HF_NSEC_PER_USEC;
        int64_t pinged = read_time(object, "spec.pingTime");
        char renewed[HF__MICROTIME_MAX];

        hf__microtime_format(at > pinged ? at : pinged + 1, renewed);
        const struct {
                const char *path, *text;
        } fields[] = {
                {"apiVersion", "coordination.k8s.io/v1beta1"},
                {"kind", "LeaseCandidate"},
                {"metadata.namespace", config->ns},
                {"metadata.name", config->name},
                {"spec.leaseName", config->lease_name},
                {"spec.binaryVersion", config->binary_version},
                {"spec.emulationVersion", config->emulation_version},
                {"spec.strategy", config->strategy},
                {"spec.renewTime", renewed},
        };
        int r = 0;
        if (!hf__json_is_object(hf__json_get(object, "metadata")))
                r = hf__json_put(object, "metadata", hf__json_object());
        if (r == 0 && !hf__json_is_object(hf__json_get(object, "spec")))
                r = hf__json_put(object, "spec", hf__json_object());
        for (size_t i = 0; r == 0 && i < sizeof fields / sizeof fields[0]; i++)
                r = hf__json_set_string(object, fields[i].path, fields[i].text);
        return r;
}

/* Sends the object to the server. object NULL: memory ran out when it was created. */
static int write_object(struct hf_candidate *candidate, struct hf__json *object, enum hf_verb verb,
                        struct hf_status *reterr_status) {
        struct hf__strbuf text = {0};
        int r = object ? fill_object(candidate, object) : -ENOMEM;

        if (r == 0) {
                hf__json_print(object, &text);
                r = text.error;
        }
        if (r == 0) {
                struct hf_request request = {.size = sizeof request,
                                             .verb = verb,
                                             .resource = candidates,
                                             .ns = candidate->config.ns,
                                             .name = verb == HF_VERB_UPDATE ? candidate->config.name
                                                                            : NULL,
                                             .body = text.data,
                                             .n_body = text.n};
                r = hf_client_do(candidate->config.client, &request, candidate->stop, NULL, NULL,
                                 reterr_status);
        }
        hf__strbuf_done(&text);
        return r;
}

/* Reads the object, then creates or updates it. The update carries the resourceVersion that was
 * read, so that it does not overwrite a ping of the coordinator; a conflict is retried. */
static int publish_object(struct hf_candidate *candidate, struct hf_status *reterr_status) {
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = candidates,
                                 .ns = candidate->config.ns,
                                 .name = candidate->config.name};
        struct hf__json *object = NULL;
        char *body = NULL;
        size_t n = 0;
        int r = hf_client_do(candidate->config.client, &get, candidate->stop, &body, &n,
                             reterr_status);

        if (r == HF_E_NOT_FOUND) {
                object = hf__json_object();
                r = write_object(candidate, object, HF_VERB_CREATE, reterr_status);
        } else if (r == 0) {
                r = hf__json_parse(body, n, &object, NULL);
                if (r == 0)
                        r = write_object(candidate, object, HF_VERB_UPDATE, reterr_status);
        }
        hf__json_free(object);
        free(body);
        return r;
}

/* The pause doubles with each failure in a row, up to RETRY_MAX. Jitter is added. */
static hf_nsec retry_pause(struct hf_candidate *candidate) {
        hf_nsec delay = RETRY_MIN;

        for (unsigned i = 1; i < candidate->n_failures && delay < RETRY_MAX; i++)
                delay *= 2;
        return jittered_duration(candidate, delay < RETRY_MAX ? delay : RETRY_MAX);
}

/* Publishes, and returns the boot time at which to publish again. */
static hf_nsec publish_and_schedule(struct hf_candidate *candidate) {
        struct hf_status status = {0};
        int r = publish_object(candidate, &status);

        if (r == 0) {
                candidate->n_failures = 0;
                return now(candidate) + jittered_duration(candidate, candidate->config.refresh);
        }
        /* A conflict with the coordinator is expected: the next attempt reads the object again. */
        bool is_news = candidate->n_failures == 0 && r != HF_E_CONFLICT;
        if (r != HF_E_CANCELED)
                hf_log(&candidate->host->log, is_news ? HF_LOG_WARNING : HF_LOG_DEBUG, COMPONENT,
                       "%s/%s: %s", candidate->config.ns, candidate->config.name,
                       status.message[0] ? status.message : hf_strerror(r));
        candidate->n_failures++;
        return now(candidate) + retry_pause(candidate);
}

/* The thread. It waits until it must publish, reopen the watch, or stop. It unlocks before it
 * publishes or reopens the watch, because both call the client. */
static void *candidate_main(void *ctx) {
        struct hf_candidate *candidate = ctx;
        const struct hf_clock *clock = hf_host_clock(candidate->host);
        hf_nsec due = 0;

        for (;;) {
                pthread_mutex_lock(&candidate->mu);
                for (;;) {
                        hf_nsec at = now(candidate), until = due;
                        /* After a failure a wake-up must not shorten the backoff. */
                        bool publish_now =
                                at >= due || (candidate->woken && candidate->n_failures == 0);
                        bool watch_now = !candidate->watching && at >= candidate->watch_retry_at;
                        if (candidate->state == STOPPED || publish_now || watch_now)
                                break;
                        if (!candidate->watching && candidate->watch_retry_at < until)
                                until = candidate->watch_retry_at;
                        (void)clock->wait(clock->ctx, &candidate->changed, &candidate->mu, until);
                }
                bool stopped = candidate->state == STOPPED, watching = candidate->watching;
                bool open = !watching && now(candidate) >= candidate->watch_retry_at;
                bool woken = candidate->woken && candidate->n_failures == 0;
                candidate->woken = candidate->woken && !woken;
                pthread_mutex_unlock(&candidate->mu);
                if (stopped) {
                        if (watching)
                                hf_client_watch_cancel(candidate->config.client,
                                                       candidate->watch_id);
                        return NULL;
                }
                if (open)
                        open_watch(candidate);
                if (woken || now(candidate) >= due)
                        due = publish_and_schedule(candidate);
        }
}

/* ---- construction, start, stop ---- */

/* Replaces the borrowed *text by an owned copy. If it is NULL or empty, copies fallback. */
static int copy_text(const char **text, const char *fallback) {
        const char *from = *text && **text ? *text : fallback;

        *text = strdup(from);
        return *text ? 0 : -ENOMEM;
}

static int copy_config(struct hf_candidate *candidate, const struct hf_candidate_config *config) {
        struct hf_candidate_config *to = &candidate->config;
        const char **texts[] = {&to->ns,
                                &to->name,
                                &to->lease_name,
                                &to->binary_version,
                                &to->emulation_version,
                                &to->strategy};
        const char *fallback[] = {"", "", "", "", config->binary_version, "OldestEmulationVersion"};
        const char *given[] = {config->ns,
                               config->name,
                               config->lease_name,
                               config->binary_version,
                               config->emulation_version,
                               config->strategy};
        int r = 0;

        *to = *config;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                *texts[i] = NULL; /* so that destroy frees only copies */
        for (size_t i = 0; r == 0 && i < sizeof texts / sizeof texts[0]; i++) {
                *texts[i] = given[i];
                r = copy_text(texts[i], fallback[i]);
        }
        if (to->refresh == 0)
                to->refresh = REFRESH;
        return r;
}

/* Checks the members without which the object is invalid, the client, and refresh. The error names
 * the wrong one. */
static int check_config(const struct hf_candidate_config *config, struct hf_status *reterr_status) {
        const struct {
                const char *what, *text;
        } needed[] = {{"namespace", config->ns},
                      {"name", config->name},
                      {"Lease", config->lease_name},
                      {"binary version", config->binary_version}};

        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
                if (!needed[i].text || !*needed[i].text)
                        return hf_fail(reterr_status, HF_E_INVALID, "candidate: it has no %s",
                                       needed[i].what);
        if (!config->client)
                return hf_fail(reterr_status, HF_E_INVALID, "candidate %s/%s: it has no client",
                               config->ns, config->name);
        if (config->refresh < 0)
                return hf_fail(reterr_status, HF_E_INVALID, "candidate %s/%s: refresh is negative",
                               config->ns, config->name);
        return 0;
}

HF__CLEANUP_DEFINE(candidate_cleanup, struct hf_candidate *, destroy_candidate)

static int make_candidate(const struct hf_host *host, const struct hf_candidate_config *config,
                          struct hf_candidate **ret_candidate) {
        HF__CLEANUP(hf__free_cleanup) struct hf_candidate *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&memory->mu, &memory->changed);
        if (r != 0)
                return r;
        HF__CLEANUP(candidate_cleanup) struct hf_candidate *candidate = HF__TAKE(memory);
        candidate->host = host;
        candidate->refs = 1;
        candidate->rng = (uint64_t)hf_now(hf_host_clock(host)) ^
                         (uint64_t)(uintptr_t)candidate; /* any seed is good enough for jitter */
        r = copy_config(candidate, config);
        if (r != 0)
                return r;
        r = hf_cancel_new(NULL, hf_host_clock(host), &candidate->stop);
        if (r != 0)
                return r;
        *ret_candidate = HF__TAKE(candidate);
        return 0;
}

static const struct hf__sized sized_config = HF__SIZED(struct hf_candidate_config, binary_version);

int hf_candidate_new(const struct hf_host *host, const struct hf_candidate_config *config,
                     struct hf_candidate **ret_candidate, struct hf_status *reterr_status) {
        struct hf_candidate_config copy;
        int r = hf__host_check(host, reterr_status);

        if (r == 0)
                r = hf__sized_copy(&sized_config, &copy, config, reterr_status);
        if (r == 0)
                r = check_config(&copy, reterr_status);
        if (r != 0)
                return r;
        r = make_candidate(host, &copy, ret_candidate);
        if (r != 0)
                return hf_fail(reterr_status, r, "candidate %s/%s: %s", copy.ns, copy.name,
                               hf_strerror(r));
        return 0;
}

int hf_candidate_start(struct hf_candidate *candidate) {
        pthread_mutex_lock(&candidate->mu);
        int r = candidate->state == NEW ? 0 : HF_E_CLOSED;
        if (r == 0)
                r = hf__thread_start(candidate->host, "hf-candidate", candidate_main, candidate,
                                     &candidate->thread);
        if (r == 0)
                candidate->state = RUNNING;
        pthread_mutex_unlock(&candidate->mu);
        return r;
}

void hf_candidate_stop(struct hf_candidate *candidate) {
        pthread_mutex_lock(&candidate->mu);
        assert(candidate->refs > 0);
        bool was_running = candidate->state == RUNNING;
        candidate->state = STOPPED;
        pthread_cond_broadcast(&candidate->changed);
        pthread_mutex_unlock(&candidate->mu);
        hf_cancel_fire(candidate->stop, HF_CANCEL_STOPPING);
        if (was_running)
                (void)hf__thread_join(candidate->thread);
}

struct hf_candidate *hf_candidate_free(struct hf_candidate *candidate) {
        if (!candidate)
                return NULL;
        hf_candidate_stop(candidate);
        unref_candidate(candidate);
        return NULL;
}

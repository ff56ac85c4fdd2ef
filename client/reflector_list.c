/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reflector's list requests: the one that fills the store before a watch, and the probe, which
 * runs in parallel to a watch because threads wait in informer_barrier.c.
 *
 * Pages. A list is requested in pages of HF__REFLECTOR_PAGE objects, to limit the size of a
 * response. Each page is added to the store when it arrives. After the last page, objects that were
 * in none of them are removed. A list that fails is restarted from the first page. If it failed
 * because its version expired between two pages, the next list is requested without paging.
 *
 * Probes. If a probe's revision R is higher than the last one seen, the probe is newer than the
 * store. It replaces the store's content, and later watch events up to R are skipped (watch_floor).
 * If the watch has already reached R, the probe changes nothing; a consistent probe still counts
 * as such for the waiting threads. So the revision of an idle collection advances, and that of a
 * busy one never goes back. If a probe cannot be ordered against the watch, because more pages
 * follow or its version is not a number, it ends the watch and becomes the list before the next
 * watch. If a probe fails while its objects are stored, the watch is ended and a new list is
 * requested: the watch would deliver older states of some of these objects. A probe's response that
 * arrives when need_list is set is ignored, because it may be older than the store.
 *
 * Invariant: the store never returns to an older state, unless the server was restored from a
 * backup: then the next complete list is authoritative (versions_reused).
 */
#include "client/reflector_list.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "client/informer_barrier.h"
#include "client/informer_private.h"
#include "client/json_span.h"
#include "client/reflector_backoff.h"

/* ---- state that the watch shares ---- */

void hf__reflector_forget_pages(struct hf_informer *informer) {
        free(informer->reflector.continue_token);
        informer->reflector.continue_token = NULL;
}

void hf__reflector_need_list(struct hf_informer *informer, hf_nsec at) {
        struct hf__reflector *reflector = &informer->reflector;

        assert(hf__reflector_on_thread(reflector));
        reflector->need_list = true;
        reflector->list_at = at;
        /* Cancel a probe: its response would be ignored, and the list must not wait for it. */
        if (reflector->list && reflector->list->is_probe)
                hf_client_cancel(informer->client, reflector->list->id);
}

void hf__reflector_relist(struct hf_informer *informer) {
        hf__reflector_abandon_watch(informer);
        hf__reflector_need_list(informer, hf_now(informer->clock));
}

void hf__reflector_set_last_sync(struct hf_informer *informer, const char *resource_version) {
        assert(strlen(resource_version) < HF__RESOURCE_VERSION_MAX);
        strcpy(informer->reflector.last_sync_version, resource_version);
        (void)pthread_mutex_lock(&informer->mu);
        informer->seen_revision = hf__resource_version_number(resource_version);
        (void)pthread_cond_broadcast(&informer->changed);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* ---- starting ---- */

/* If need_list is not set, the list was a probe. Its failure only delays the next probe, because no
 * watch depends on it. */
static void list_failed(struct hf_informer *informer, int error, const struct hf_status *status) {
        struct hf__reflector *reflector = &informer->reflector;
        uint32_t retry_after_s = status ? status->retry_after_s : 0;

        reflector->unpaged = reflector->continue_token && error == HF_E_GONE;
        hf__reflector_forget_pages(informer);
        if (reflector->need_list) {
                unsigned failures = reflector->list_failures++;
                hf__reflector_log_failure(informer, "list", failures == 0, error, status);
                reflector->list_at = hf__reflector_retry_at(informer, failures, retry_after_s);
                return;
        }
        (void)pthread_mutex_lock(&informer->mu);
        informer->probe_at =
                hf_now(informer->clock) + hf__reflector_probe_delay_locked(informer, retry_after_s);
        (void)pthread_mutex_unlock(&informer->mu);
}

/*
 * Appends the query of the next list, or of its next page.
 *
 * If the server has one revision counter for all collections (one_revision), the first probe after
 * a thread has begun to wait only has to be as new as the revision that the threads wait for. Every
 * other list is consistent and gets a number, which shows waiting threads whether it began after
 * their call.
 */
static void append_query(struct hf_informer *informer, struct hf__strbuf *out) {
        struct hf__reflector *reflector = &informer->reflector;

        (void)pthread_mutex_lock(&informer->mu);
        bool may_be_old = !reflector->continue_token && informer->one_revision &&
                          !reflector->need_list && informer->probe_failures == 0;
        (void)pthread_mutex_unlock(&informer->mu);

        if (informer->query[0])
                hf__strbuf_printf(out, "%s&", informer->query);
        if (reflector->unpaged)
                hf__strbuf_puts(out, "limit=0");
        else
                hf__strbuf_printf(out, "limit=%d", HF__REFLECTOR_PAGE);
        if (may_be_old)
                hf__strbuf_printf(out,
                                  "&resourceVersion=%" PRIu64 "&resourceVersionMatch=NotOlderThan",
                                  hf__informer_barrier_revision(informer));
        if (reflector->continue_token) {
                hf__strbuf_puts(out, "&continue=");
                hf__strbuf_urlencode(out, reflector->continue_token);
                return;
        }
        (void)pthread_mutex_lock(&informer->mu);
        reflector->list_number = may_be_old ? 0 : ++informer->n_consistent_lists;
        (void)pthread_mutex_unlock(&informer->mu);
}

void hf__reflector_list_start(struct hf_informer *informer) {
        struct hf__reflector *reflector = &informer->reflector;
        struct hf__strbuf query = {0};

        assert(!reflector->list);
        append_query(informer, &query);
        int r = query.error != 0
                        ? -ENOMEM
                        : hf__reflector_source_list(informer, query.data, !reflector->need_list,
                                                    &reflector->list);
        hf__strbuf_done(&query);
        if (r != 0)
                list_failed(informer, r, NULL);
}

/* ---- processing a page ---- */

/* Parses the metadata of the list itself: its version, and the token of the next page (malloc'ed;
 * NULL for the last page). 0, -ENOMEM or -EPROTO. */
static int parse_list_metadata(const struct hf__buf *body,
                               char ret_version[HF__RESOURCE_VERSION_MAX], char **ret_token) {
        const struct hf__span list = {body->data, body->n};
        struct hf__json *json = NULL;
        struct hf__span text;
        char *token = NULL;

        if (!hf__span_member(list, "metadata", &text))
                return -EPROTO;
        int r = hf__json_parse(text.data, text.n, &json, NULL);
        if (r != 0)
                return r < 0 ? r : -EPROTO;
        const char *version = hf__json_string(json, "resourceVersion");
        const char *given_token = hf__json_string(json, "continue");
        if (!version || !version[0] || strlen(version) >= HF__RESOURCE_VERSION_MAX)
                r = -EPROTO;
        if (r == 0 && given_token && given_token[0]) {
                token = strdup(given_token);
                r = token ? 0 : -ENOMEM;
        }
        if (r == 0) {
                strcpy(ret_version, version);
                *ret_token = token;
        }
        (void)hf__json_free(json);
        return r;
}

/* Called when a list was stored, or when the store is already at least as new as the list. */
static void record_list_success(struct hf_informer *informer, bool is_probe) {
        struct hf__reflector *reflector = &informer->reflector;
        hf_nsec delay = 0;

        reflector->list_failures = 0;
        reflector->unpaged = false;
        (void)pthread_mutex_lock(&informer->mu);
        if (reflector->list_number > informer->newest_consistent_list)
                informer->newest_consistent_list = reflector->list_number;
        informer->synced = true;
        /* If a thread began to wait after a consistent list was started, send another probe at
         * once. Otherwise the threads probably wait for a revision that the server does not have
         * yet, so send probes with increasing delays. (After a list that is not consistent, there
         * is no number to compare.) */
        if (is_probe && !hf__informer_barrier_missed_locked(informer, reflector->list_number))
                delay = hf__reflector_probe_delay_locked(informer, 0);
        informer->probe_at = hf_now(informer->clock) + delay;
        (void)pthread_cond_broadcast(&informer->changed);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* Decides at the first page whether to store a list. False: it is a probe, and the watch has
 * already reached its revision. If it is a probe that cannot be ordered against the watch, ends the
 * watch. */
static bool accept_list(struct hf_informer *informer, const char *version, bool has_more) {
        uint64_t revision = hf__resource_version_number(version);

        if (informer->reflector.need_list)
                return true;
        if (revision != 0 && revision <= informer->seen_revision)
                return false;
        if (has_more || revision == 0)
                hf__reflector_relist(informer);
        return true;
}

/* A revision below the last one seen is taken as a sign that the server was restored from a
 * backup. */
static void begin_list(struct hf_informer *informer, const char *version) {
        uint64_t revision = hf__resource_version_number(version);

        strcpy(informer->reflector.list_version, version);
        if (revision != 0 && revision < informer->seen_revision)
                informer->store.versions_reused = true;
        hf__informer_store_replace_begin(informer);
}

/* watch_floor is 0 unless the list is a probe: a watch that starts after the list has no events to
 * skip. */
static void end_list(struct hf_informer *informer) {
        struct hf__reflector *reflector = &informer->reflector;

        hf__informer_store_replace_end(informer);
        informer->store.versions_reused = false;
        reflector->watch_floor =
                reflector->need_list ? 0 : hf__resource_version_number(reflector->list_version);
        reflector->need_list = false;
        hf__reflector_set_last_sync(informer, reflector->list_version);
}

static int store_page(struct hf_informer *informer, const struct hf__buf *body, bool is_probe) {
        char version[HF__RESOURCE_VERSION_MAX], *token = NULL;
        bool is_first = !informer->reflector.continue_token;

        int r = parse_list_metadata(body, version, &token);
        if (r != 0)
                return r;
        hf__reflector_forget_pages(informer);
        if (is_first) {
                if (!accept_list(informer, version, token != NULL)) {
                        free(token);
                        record_list_success(informer, is_probe);
                        return 0;
                }
                begin_list(informer, version);
        }
        informer->reflector.continue_token = token;
        r = hf__informer_store_replace_page(informer, body->data, body->n);
        /* Some objects of the probe may be stored, and watch_floor is not set. */
        if (r != 0 && !informer->reflector.need_list)
                hf__reflector_relist(informer);
        if (r != 0 || token)
                return r;
        end_list(informer);
        record_list_success(informer, is_probe);
        return 0;
}

void hf__reflector_list_ended(struct hf_informer *informer,
                              const struct hf__reflector_source *source) {
        struct hf__reflector *reflector = &informer->reflector;
        int r = source->error;

        assert(source == reflector->list);
        reflector->list = NULL;
        if (source->is_probe && reflector->need_list)
                return; /* a list before the next watch became necessary in the meantime */
        if (r == 0)
                r = store_page(informer, source->last.object, source->is_probe);
        if (r != 0)
                list_failed(informer, r, source->error ? &source->status : NULL);
}

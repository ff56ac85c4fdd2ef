/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the CAs and addresses in the identity Leases of the other instances.
 *
 * Invariants. Only an address of the form that holdfastd itself writes is used: any client that may
 * write Leases chooses this text, and another form could make the kubeconfig useless. `changed` is
 * called only when the list differs from the list at the previous call, so an ordinary renewal does
 * not call it.
 *
 * Instances that crashed leave Leases behind, which must not take the places of live instances. A
 * Lease is live while this process sees it renewed in time, by this machine's boot clock; clocks of
 * two machines are never compared.
 *
 *      FOUND --renewTime changes--> LIVE
 *      FOUND, LIVE --no change for its duration--> EXPIRED --renewTime changes--> LIVE
 */
#include "server/controllers/instances/peers.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/thread.h"
#include "server/controllers/instances/identity.h"

/* A further Lease takes the place of an expired one. If none has expired, the further one is
 * ignored until its next change. */
#define ENTRIES_MAX 128
#define ENTRIES_MIN 4

/* In the order of preference. FOUND: the Lease was not seen to be renewed yet, so its instance may
 * be alive or not. */
enum state { LIVE, FOUND, EXPIRED };

struct entry {
        char lease[64]; /* its name */
        char ca[HFD_PEERS_CA_MAX];
        char renew_time[40]; /* as the Lease has it */
        hf_nsec duration;
        struct hfd_peer peer;
        hf_nsec seen; /* boot time when this renew_time was first seen */
        bool renewed; /* renew_time was seen to change */
};

struct hfd_peers {
        const struct hfd_identity *own; /* borrowed */
        const struct hf_clock *clock;   /* borrowed */
        void (*changed)(void *ctx);
        void *ctx;
        pthread_mutex_t mu;
        /* guarded by mu */
        char ca[HFD_PEERS_CA_MAX]; /* of this instance */
        bool serves;
        struct entry *entries; /* owned; n of `space` are in use */
        size_t n, space;
        struct hfd_peer_list notified; /* the list when `changed` was last called */
};

int hfd_peers_new(const struct hfd_identity *own, const struct hf_clock *clock,
                  void (*changed)(void *ctx), void *ctx, struct hfd_peers **ret_peers) {
        struct hfd_peers *peers = calloc(1, sizeof *peers);
        int r = peers ? hf__mutex_init(&peers->mu) : -ENOMEM;

        if (r != 0) {
                free(peers);
                return r;
        }
        peers->own = own;
        peers->clock = clock;
        peers->changed = changed;
        peers->ctx = ctx;
        *ret_peers = peers;
        return 0;
}

struct hfd_peers *hfd_peers_free(struct hfd_peers *peers) {
        if (!peers)
                return NULL;
        assert(peers->n <= peers->space && peers->space <= ENTRIES_MAX);
        (void)pthread_mutex_destroy(&peers->mu);
        free(peers->entries);
        free(peers);
        return NULL;
}

void hfd_peers_set_ca(struct hfd_peers *peers, const char *ca, bool serves) {
        (void)pthread_mutex_lock(&peers->mu);
        (void)snprintf(peers->ca, sizeof peers->ca, "%s", ca);
        peers->serves = serves;
        (void)pthread_mutex_unlock(&peers->mu);
}

void hfd_peers_own_ca(struct hfd_peers *peers, char ca[HFD_PEERS_CA_MAX]) {
        (void)pthread_mutex_lock(&peers->mu);
        (void)snprintf(ca, HFD_PEERS_CA_MAX, "%s", peers->serves ? peers->ca : "");
        (void)pthread_mutex_unlock(&peers->mu);
}

/* ---- Leases ---- */

/* Whether url is https://<IPv4 address>:<port> or https://[<IPv6 address>]:<port>. */
static bool is_endpoint(const char *url) {
        static const char scheme[] = "https://";
        unsigned char address[sizeof(struct in6_addr)];
        char host[INET6_ADDRSTRLEN] = "";

        if (strncmp(url, scheme, strlen(scheme)) != 0)
                return false;
        const char *start = url + strlen(scheme);
        bool v6 = start[0] == '[';
        start += v6;
        size_t n_host = strcspn(start, v6 ? "]" : ":");
        const char *port = start + n_host + v6;
        if (n_host >= sizeof host || !start[n_host] || port[0] != ':')
                return false;
        memcpy(host, start, n_host);
        size_t n_port = strspn(port + 1, "0123456789");
        return inet_pton(v6 ? AF_INET6 : AF_INET, host, address) == 1 && n_port > 0 &&
               n_port <= 5 && port[1 + n_port] == '\0' && atoi(port + 1) <= 65535;
}

/* Copies the annotation if it consists of lower-case letters, digits, '-' and ':' and fits. `to` is
 * zeroed before, and stays so otherwise. */
static void copy_annotation(char *to, size_t size, const struct hf__json *annotations,
                            const char *key) {
        const struct hf__json *value = hf__json_get(annotations, key);
        const char *text = hf__json_is_string(value) ? hf__json_text(value) : "";
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-:");

        if (text[n] == '\0' && n < size)
                memcpy(to, text, n);
}

/* A duration of more than a day is not believed: any client that may write Leases chooses it, and
 * its entry would hold a place for that long. */
static void read_spec(const struct hf__json *lease, struct entry *entry) {
        const char *renew_time = hf__json_string(lease, "spec.renewTime");
        int64_t seconds = 0;

        (void)snprintf(entry->renew_time, sizeof entry->renew_time, "%s",
                       renew_time ? renew_time : "");
        if (!hf__json_i64(lease, "spec.leaseDurationSeconds", &seconds) || seconds <= 0 ||
            seconds > 86400)
                seconds = HFD_IDENTITY_SECONDS;
        entry->duration = seconds * HF_NSEC_PER_SEC;
}

/* Fills a zeroed entry. False: the Lease is malformed, its name is too long, it has no usable CA or
 * address, or memory has run out. */
static bool read_entry(const char *name, const char *object, size_t n, struct entry *entry) {
        struct hf__json *lease = NULL;

        if (hf__json_parse(object, n, &lease, NULL) != 0)
                return false;
        const struct hf__json *annotations = hf__json_path(lease, "metadata.annotations");
        const struct hf__json *url = hf__json_get(annotations, "holdfast.dev/endpoint");
        bool ok = strlen(name) < sizeof entry->lease && hf__json_is_string(url) &&
                  strlen(hf__json_text(url)) < sizeof entry->peer.url &&
                  is_endpoint(hf__json_text(url));
        if (ok) {
                memcpy(entry->lease, name, strlen(name));
                memcpy(entry->peer.url, hf__json_text(url), strlen(hf__json_text(url)));
                copy_annotation(entry->ca, sizeof entry->ca, annotations, HFD_PEERS_ANNOTATION);
                copy_annotation(entry->peer.instance, sizeof entry->peer.instance, annotations,
                                "holdfast.dev/instance");
                copy_annotation(entry->peer.host, sizeof entry->peer.host, annotations,
                                "holdfast.dev/host");
                read_spec(lease, entry);
        }
        hf__json_free(lease);
        return ok && entry->ca[0];
}

/* The functions with _locked are called under mu. */

static enum state state_of(const struct entry *entry, hf_nsec now) {
        if (now - entry->seen >= entry->duration)
                return EXPIRED;
        return entry->renewed ? LIVE : FOUND;
}

static struct entry *find_entry_locked(struct hfd_peers *peers, const char *name) {
        hf__mutex_assert_held(&peers->mu);
        for (size_t i = 0; i < peers->n; i++)
                if (strcmp(peers->entries[i].lease, name) == 0)
                        return &peers->entries[i];
        return NULL;
}

/* Makes room for another entry, up to the limit. If memory runs out, the room stays as it is. */
static void grow_locked(struct hfd_peers *peers) {
        size_t space = peers->space == 0 ? ENTRIES_MIN : peers->space * 2;

        hf__mutex_assert_held(&peers->mu);
        if (peers->n < peers->space || space > ENTRIES_MAX)
                return;
        struct entry *entries = realloc(peers->entries, space * sizeof *entries);
        if (!entries)
                return;
        peers->entries = entries;
        peers->space = space;
}

/* A place for another entry: a free one, or that of a Lease that has expired. NULL: none. */
static struct entry *find_place_locked(struct hfd_peers *peers, hf_nsec now) {
        hf__mutex_assert_held(&peers->mu);
        grow_locked(peers);
        if (peers->n < peers->space)
                return &peers->entries[peers->n++];
        for (size_t i = 0; i < peers->n; i++)
                if (state_of(&peers->entries[i], now) == EXPIRED)
                        return &peers->entries[i];
        return NULL;
}

static void put_entry_locked(struct hfd_peers *peers, struct entry *entry, hf_nsec now) {
        struct entry *found = find_entry_locked(peers, entry->lease);
        bool same = found && strcmp(found->renew_time, entry->renew_time) == 0;

        hf__mutex_assert_held(&peers->mu);
        assert(!found || found < peers->entries + peers->n);
        entry->seen = same ? found->seen : now;
        entry->renewed = found && (!same || found->renewed);
        if (!found)
                found = find_place_locked(peers, now);
        if (found)
                *found = *entry;
}

static void remove_entry_locked(struct hfd_peers *peers, const char *name) {
        struct entry *found = find_entry_locked(peers, name);

        hf__mutex_assert_held(&peers->mu);
        assert(!found || peers->n > 0);
        if (found)
                *found = peers->entries[--peers->n];
}

/* ---- the list ---- */

struct candidate {
        const struct hfd_peer *peer; /* borrowed */
        enum state state;
};

static int compare_names(const struct hfd_peer *left, const struct hfd_peer *right) {
        int order = strcmp(left->instance, right->instance);

        return order != 0 ? order : strcmp(left->host, right->host);
}

/* The order of preference: live instances first. */
static int compare_states(const void *a, const void *b) {
        const struct candidate *left = a, *right = b;

        if (left->state != right->state)
                return left->state < right->state ? -1 : 1;
        int order = compare_names(left->peer, right->peer);
        return order != 0 ? order : strcmp(left->peer->url, right->peer->url);
}

/* The order in the list. Of two with the same name, the live one is first. */
static int compare_candidates(const void *a, const void *b) {
        const struct candidate *left = a, *right = b;
        int order = compare_names(left->peer, right->peer);

        return order != 0 ? order : compare_states(a, b);
}

static bool has_url(const struct candidate *candidates, size_t n, const char *url) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(candidates[i].peer->url, url) == 0)
                        return true;
        return false;
}

static bool is_loopback(const char *url) {
        return strncmp(url, "https://127.", strlen("https://127.")) == 0 ||
               strncmp(url, "https://[::1]", strlen("https://[::1]")) == 0;
}

/* Whether this instance's clients can use the peer. */
static bool is_usable_locked(const struct hfd_peers *peers, const struct entry *entry) {
        const struct hfd_identity *own = peers->own;

        hf__mutex_assert_held(&peers->mu);
        return strcmp(entry->ca, peers->ca) == 0 && strcmp(entry->peer.url, own->endpoint) != 0 &&
               (!is_loopback(entry->peer.url) || strcmp(entry->peer.host, own->host) == 0);
}

static void list_locked(const struct hfd_peers *peers, struct hfd_peer_list *ret_list) {
        struct candidate all[ENTRIES_MAX];
        hf_nsec now = hf_now(peers->clock);
        size_t n = 0, n_listed = 0;

        hf__mutex_assert_held(&peers->mu);
        assert(peers->n <= ENTRIES_MAX);
        memset(ret_list, 0, sizeof *ret_list);
        for (size_t i = 0; i < peers->n; i++)
                if (is_usable_locked(peers, &peers->entries[i]))
                        all[n++] = (struct candidate){.peer = &peers->entries[i].peer,
                                                      .state = state_of(&peers->entries[i], now)};
        qsort(all, n, sizeof all[0], compare_states);
        for (size_t i = 0; i < n && n_listed < HFD_PEERS_MAX; i++)
                if (!has_url(all, n_listed, all[i].peer->url))
                        all[n_listed++] = all[i];
        qsort(all, n_listed, sizeof all[0], compare_candidates);
        for (size_t i = 0; i < n_listed; i++)
                ret_list->peers[i] = *all[i].peer;
        ret_list->n = n_listed;
}

void hfd_peers_list(struct hfd_peers *peers, struct hfd_peer_list *ret_list) {
        (void)pthread_mutex_lock(&peers->mu);
        list_locked(peers, ret_list);
        (void)pthread_mutex_unlock(&peers->mu);
}

void hfd_peers_on_lease(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                        const char *object, size_t n) {
        struct hfd_peers *peers = ctx;
        struct hfd_peer_list list;
        struct entry entry = {0};
        bool listed = strcmp(name, peers->own->lease_name) != 0 && type != HF_EVENT_DELETED &&
                      read_entry(name, object, n, &entry);

        (void)pthread_mutex_lock(&peers->mu);
        if (listed)
                put_entry_locked(peers, &entry, hf_now(peers->clock));
        else
                remove_entry_locked(peers, name);
        /* Make the list even after a mere renewal: another Lease may have expired meanwhile. */
        list_locked(peers, &list);
        bool changed = memcmp(&list, &peers->notified, sizeof list) != 0;
        peers->notified = list;
        (void)pthread_mutex_unlock(&peers->mu);
        if (changed)
                peers->changed(peers->ctx);
}

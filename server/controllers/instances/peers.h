/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The other instances that have the same CA, by their identity Leases: a client that trusts the CA
 * can use them too. An identity Lease has the address of its instance, and the fingerprint of the
 * CA that its certificates come from in the annotation HFD_PEERS_ANNOTATION.
 *
 * Threads: any. A lock guards the list; it is not held while `changed` is called.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/client.h>
#include <holdfast/clock.h>

#define HFD_PEERS_ANNOTATION "holdfast.dev/ca"

#define HFD_PEERS_MAX    15 /* a REST client has at most 16 servers */
#define HFD_PEERS_CA_MAX 72 /* bytes of a fingerprint, with its NUL */

struct hfd_peer {
        char url[64]; /* https://<IP address>:<port> */
        char instance[64], host[128];
};

/* All bytes after the texts are zero, so that lists can be compared by memcmp. */
struct hfd_peer_list {
        size_t n;
        struct hfd_peer peers[HFD_PEERS_MAX]; /* sorted by instance, host and URL */
};

struct hfd_identity;
struct hfd_peers;

/* own: this instance; borrowed, as clock is. changed: the list has changed; it is called on the
 * thread that calls hfd_peers_on_lease, and must not block. 0 or -errno. */
int hfd_peers_new(const struct hfd_identity *own, const struct hf_clock *clock,
                  void (*changed)(void *ctx), void *ctx, struct hfd_peers **ret_peers);
struct hfd_peers *hfd_peers_free(struct hfd_peers *peers); /* accepts NULL, returns NULL */

/* Sets the fingerprint of this instance's CA. serves: clients that trust this CA, and have a
 * certificate of it, can use this instance. */
void hfd_peers_set_ca(struct hfd_peers *peers, const char *ca, bool serves);
/* The CA for this instance's identity Lease; "" = none. */
void hfd_peers_own_ca(struct hfd_peers *peers, char ca[HFD_PEERS_CA_MAX]);

/* A handler of an informer of the identity Leases; ctx is a struct hfd_peers. */
void hfd_peers_on_lease(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                        const char *object, size_t n);

/* The other instances of the CA. The address of this instance is left out, as an earlier process
 * may have left its Lease behind, and so are loopback addresses of other hosts. Instances whose
 * Leases are renewed are preferred: they are listed if there are too many instances, and come first
 * among instances of the same name. Call it when own has its endpoint. */
void hfd_peers_list(struct hfd_peers *peers, struct hfd_peer_list *ret_list);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The other instances whose certificates come from the same CA: a client that trusts the CA can use
 * them too. They are known from their identity Leases. An identity Lease has the address of its
 * instance, and in the annotation HFD_PEERS_ANNOTATION the fingerprint of the CA that has issued
 * the instance's certificates.
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

/* own: this instance; borrowed, as clock is. `changed` is called when the list has changed, on the
 * thread that calls hfd_peers_on_lease, and must not block. 0 or -errno. */
int hfd_peers_new(const struct hfd_identity *own, const struct hf_clock *clock,
                  void (*changed)(void *ctx), void *ctx, struct hfd_peers **ret_peers);
struct hfd_peers *hfd_peers_free(struct hfd_peers *peers); /* accepts NULL, returns NULL */

/* Sets the fingerprint of this instance's CA. serves: this instance has a certificate of the CA and
 * accepts clients with certificates of it, so others may list it as a peer. */
void hfd_peers_set_ca(struct hfd_peers *peers, const char *ca, bool serves);
/* The fingerprint of the CA for this instance's identity Lease; "" = none. */
void hfd_peers_own_ca(struct hfd_peers *peers, char ca[HFD_PEERS_CA_MAX]);

/* A handler of an informer of the identity Leases; ctx is a struct hfd_peers. */
void hfd_peers_on_lease(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                        const char *object, size_t n);

/* Lists the other instances of the CA. Leaves out Leases with the address of this instance, which
 * an earlier process may have left behind, and loopback addresses of other hosts. If there are more
 * than HFD_PEERS_MAX, instances whose Leases are renewed are preferred; they also come first among
 * instances of the same name. Call it only when own->endpoint is set. */
void hfd_peers_list(struct hfd_peers *peers, struct hfd_peer_list *ret_list);

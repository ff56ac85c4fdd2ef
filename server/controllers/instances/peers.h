/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The other instances whose certificates come from this instance's CA. A client that trusts the CA
 * can use them too, so the kubeconfig that this instance writes names them as further contexts.
 *
 * The instances are known from their identity Leases. An identity Lease has the address of its
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

#define HFD_PEERS_MAX    15 /* a REST client has at most 16 servers, one of them this instance */
#define HFD_PEERS_CA_MAX 72 /* bytes of a fingerprint, with its NUL */

struct hfd_peer {
        char url[64]; /* https://<IP address>:<port> */
        char instance[64], host[128];
};

/* All bytes after the texts are zero, so that lists can be compared by memcmp. */
struct hfd_peer_list {
        size_t n;
        struct hfd_peer peers[HFD_PEERS_MAX]; /* by instance and host; then live ones first */
};

struct hfd_identity;
struct hfd_peers;

/* own: this instance; borrowed, as clock is. hfd_peers_on_lease calls `changed` if the list differs
 * from the one at the previous call; `changed` must not block. Time alone also changes the list,
 * but that is noticed only with the next event of a Lease. 0 or -errno. */
int hfd_peers_new(const struct hfd_identity *own, const struct hf_clock *clock,
                  void (*changed)(void *ctx), void *ctx, struct hfd_peers **ret_peers);
struct hfd_peers *hfd_peers_free(struct hfd_peers *peers); /* accepts NULL, returns NULL */

/* Sets the fingerprint of this instance's CA. serves: the CA has issued this instance's serving
 * certificate, and the instance accepts client certificates that the CA has issued. So the other
 * instances may list it as a peer. */
void hfd_peers_set_ca(struct hfd_peers *peers, const char *ca, bool serves);
/* Copies the fingerprint for this instance's identity Lease; "" = others must not list it. */
void hfd_peers_own_ca(struct hfd_peers *peers, char ca[HFD_PEERS_CA_MAX]);

/* A handler of an informer of the identity Leases; ctx is a struct hfd_peers. May be called only
 * when own->endpoint is set. */
void hfd_peers_on_lease(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                        const char *object, size_t n);

/* Lists the other instances of the CA. Leaves out Leases with the address of this instance, which
 * an earlier process may have left behind, and loopback addresses of other hosts. If there are more
 * than HFD_PEERS_MAX, live instances are preferred. An instance is live while its Lease is being
 * renewed. Call it only when own->endpoint is set. */
void hfd_peers_list(struct hfd_peers *peers, struct hfd_peer_list *ret_list);

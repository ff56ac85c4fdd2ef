/* SPDX-License-Identifier: Apache-2.0 */
/* Which other instances have the same CA, by their identity Leases. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/controllers/instances/identity.h"
#include "server/controllers/instances/peers.h"

#define OWN_URL "https://10.0.0.1:6443"

static const struct hfd_identity own = {.lease_name = "holdfastd-own",
                                        .host = "vm",
                                        .endpoint = OWN_URL};
static hf_nsec boot_time;
static hf_nsec read_boot_time(void *ctx) { return boot_time; }
static const struct hf_clock test_clock = {.boot = read_boot_time};
static struct hfd_peers *peers;
static int n_changed;

static void changed(void *ctx) { n_changed++; }

static int set_up(void **state) {
        n_changed = 0;
        boot_time = 1000 * HF_NSEC_PER_SEC;
        if (hfd_peers_new(&own, &test_clock, changed, NULL, &peers) != 0)
                return -1;
        hfd_peers_set_ca(peers, "sha256:aa", true);
        return 0;
}

static int tear_down(void **state) {
        peers = hfd_peers_free(peers);
        return 0;
}

/* The renewTime of the next Leases. */
static int renew_time;

static void lease(enum hf_event_type type, const char *name, const char *url, const char *instance,
                  const char *ca) {
        char object[512];
        int n = snprintf(object, sizeof object,
                         "{\"metadata\":{\"annotations\":{\"holdfast.dev/endpoint\":\"%s\","
                         "\"holdfast.dev/instance\":\"%s\",\"holdfast.dev/host\":\"vm\","
                         "\"holdfast.dev/ca\":\"%s\"}},"
                         "\"spec\":{\"leaseDurationSeconds\":40,\"renewTime\":\"%d\"}}",
                         url, instance, ca, renew_time);
        hfd_peers_on_lease(peers, type, "kube-system", name, object, (size_t)n);
}

/* Asserts the instances of the list, each followed by a space. */
static void expect(const char *expected) {
        struct hfd_peer_list list;
        char text[1024] = "";

        hfd_peers_list(peers, &list);
        for (size_t i = 0; i < list.n; i++)
                strcat(strcat(text, list.peers[i].instance), " ");
        assert_string_equal(text, expected);
}

static void test_instances_of_the_same_ca_are_listed(void **state) {
        struct hfd_peer_list list;

        lease(HF_EVENT_ADDED, "l-c", "https://[fd00::1]:6443", "c", "sha256:aa");
        lease(HF_EVENT_ADDED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        lease(HF_EVENT_ADDED, "l-d", "https://10.0.0.3:6443", "d", "sha256:bb");
        lease(HF_EVENT_ADDED, "l-e", "https://10.0.0.4:6443", "e", "");
        expect("b c ");
        hfd_peers_list(peers, &list);
        assert_string_equal(list.peers[1].url, "https://[fd00::1]:6443");
        assert_string_equal(list.peers[1].host, "vm");
        lease(HF_EVENT_MODIFIED, "l-d", "https://10.0.0.3:6443", "d", "sha256:aa");
        expect("b c d ");
        lease(HF_EVENT_DELETED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        expect("c d ");
        hfd_peers_set_ca(peers, "sha256:bb", true);
        expect("");
}

static void test_this_instance_is_not_listed(void **state) {
        lease(HF_EVENT_ADDED, "holdfastd-own", "https://10.0.0.9:6443", "own", "sha256:aa");
        lease(HF_EVENT_ADDED, "holdfastd-old", OWN_URL, "own", "sha256:aa"); /* it crashed */
        expect("");
}

static void test_loopback_addresses_are_of_use_on_their_host_only(void **state) {
        static const char elsewhere[] =
                "{\"metadata\":{\"annotations\":{\"holdfast.dev/endpoint\":"
                "\"https://127.0.0.1:6444\",\"holdfast.dev/instance\":\"b\","
                "\"holdfast.dev/host\":\"other\",\"holdfast.dev/ca\":\"sha256:aa\"}}}";

        hfd_peers_on_lease(peers, HF_EVENT_ADDED, "kube-system", "l-b", elsewhere,
                           strlen(elsewhere));
        expect("");
        lease(HF_EVENT_ADDED, "l-b", "https://127.0.0.1:6444", "b", "sha256:aa");
        lease(HF_EVENT_ADDED, "l-c", "https://[::1]:6445", "c", "sha256:aa");
        expect("b c ");
}

static void test_a_restarted_instance_is_listed_once(void **state) {
        lease(HF_EVENT_ADDED, "l-b1", "https://10.0.0.2:6443", "b", "sha256:aa");
        lease(HF_EVENT_ADDED, "l-b2", "https://10.0.0.2:6443", "b", "sha256:aa");
        expect("b ");
        lease(HF_EVENT_DELETED, "l-b1", "https://10.0.0.2:6443", "b", "sha256:aa");
        expect("b ");
}

static void test_a_renewal_changes_nothing(void **state) {
        lease(HF_EVENT_ADDED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        assert_int_equal(n_changed, 1);
        lease(HF_EVENT_MODIFIED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        assert_int_equal(n_changed, 1);
        lease(HF_EVENT_MODIFIED, "l-b", "https://10.0.0.2:6444", "b", "sha256:aa");
        assert_int_equal(n_changed, 2);
        lease(HF_EVENT_DELETED, "l-b", "https://10.0.0.2:6444", "b", "sha256:aa");
        lease(HF_EVENT_DELETED, "l-b", "https://10.0.0.2:6444", "b", "sha256:aa");
        assert_int_equal(n_changed, 3);
}

static void test_other_addresses_are_ignored(void **state) {
        static const char *const urls[] = {"",
                                           "http://10.0.0.2:6443",
                                           "https://10.0.0.2",
                                           "https://10.0.0.2:",
                                           "https://10.0.0.2:65536",
                                           "https://10.0.0.2:6443/path",
                                           "https://b.example:6443",
                                           "https://user@10.0.0.2:6443",
                                           "https://fd00::1:6443",
                                           "https://[fd00::1]6443",
                                           "https://[fd00::1",
                                           "https://[10.0.0.2]:6443"};

        for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
                lease(HF_EVENT_ADDED, "l-b", urls[i], "b", "sha256:aa");
        hfd_peers_on_lease(peers, HF_EVENT_ADDED, "kube-system", "l-c", "{", 1);
        hfd_peers_on_lease(peers, HF_EVENT_ADDED, "kube-system", "l-c", "{}", 2);
        expect("");
        assert_int_equal(n_changed, 0);
        lease(HF_EVENT_ADDED, "l-b", "https://10.0.0.2:6443", "b\\n", "sha256:aa");
        expect(" "); /* an invalid name is left out, but its instance is listed */
}

static void test_there_are_limits(void **state) {
        struct hfd_peer_list list;
        char name[32], url[64];

        for (int i = 0; i < 300; i++) {
                snprintf(name, sizeof name, "l-%d", i);
                snprintf(url, sizeof url, "https://10.0.1.2:%d", i + 1);
                lease(HF_EVENT_ADDED, name, url, name, "sha256:aa");
        }
        hfd_peers_list(peers, &list);
        assert_int_equal(list.n, HFD_PEERS_MAX);
}

static void test_an_instance_that_serves_with_other_certificates_names_no_ca(void **state) {
        char ca[HFD_PEERS_CA_MAX];

        hfd_peers_own_ca(peers, ca);
        assert_string_equal(ca, "sha256:aa");
        hfd_peers_set_ca(peers, "sha256:aa", false);
        hfd_peers_own_ca(peers, ca);
        assert_string_equal(ca, "");
        lease(HF_EVENT_ADDED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        expect("b "); /* the kubeconfig of this instance trusts the CA all the same */
}

/* The Leases of crashed instances are not renewed. There are more of them than the list holds, and
 * their names sort first. */
static void test_live_instances_are_listed_first(void **state) {
        char name[32], url[64];

        for (int i = 0; i < 40; i++) {
                snprintf(name, sizeof name, "stale-%d", i);
                snprintf(url, sizeof url, "https://10.0.1.2:%d", i + 1);
                lease(HF_EVENT_ADDED, name, url, "a-stale", "sha256:aa");
        }
        lease(HF_EVENT_ADDED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        boot_time += 10 * HF_NSEC_PER_SEC;
        renew_time++;
        n_changed = 0;
        lease(HF_EVENT_MODIFIED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        assert_int_equal(n_changed, 1);
        expect("a-stale a-stale a-stale a-stale a-stale a-stale a-stale a-stale a-stale a-stale "
               "a-stale a-stale a-stale a-stale b ");
        /* The Lease of c is new, so c is listed in place of an instance whose Lease has expired. */
        boot_time += 31 * HF_NSEC_PER_SEC;
        lease(HF_EVENT_ADDED, "l-c", "https://10.0.0.3:6443", "c", "sha256:aa");
        expect("a-stale a-stale a-stale a-stale a-stale a-stale a-stale a-stale a-stale a-stale "
               "a-stale a-stale a-stale b c ");
}

/* Even without other events, a renewal of any Lease, also of this instance's own, is enough
 * to notice. */
static void test_an_expiry_changes_the_list(void **state) {
        char name[32], url[64];

        for (int i = 0; i < HFD_PEERS_MAX; i++) {
                snprintf(name, sizeof name, "a-%d", i);
                snprintf(url, sizeof url, "https://10.0.1.2:%d", i + 1);
                lease(HF_EVENT_ADDED, name, url, "a", "sha256:aa");
        }
        boot_time += 30 * HF_NSEC_PER_SEC;
        lease(HF_EVENT_ADDED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        expect("a a a a a a a a a a a a a a a ");
        boot_time += 11 * HF_NSEC_PER_SEC;
        n_changed = 0;
        lease(HF_EVENT_MODIFIED, "holdfastd-own", OWN_URL, "own", "sha256:aa");
        assert_int_equal(n_changed, 1);
        expect("a a a a a a a a a a a a a a b ");
}

static void test_of_two_with_one_name_the_live_one_is_first(void **state) {
        struct hfd_peer_list list;

        lease(HF_EVENT_ADDED, "l-b1", "https://10.0.0.2:1000", "b", "sha256:aa");
        lease(HF_EVENT_ADDED, "l-b2", "https://10.0.0.2:2000", "b", "sha256:aa");
        renew_time++;
        lease(HF_EVENT_MODIFIED, "l-b2", "https://10.0.0.2:2000", "b", "sha256:aa");
        hfd_peers_list(peers, &list);
        assert_string_equal(list.peers[0].url, "https://10.0.0.2:2000");
        assert_string_equal(list.peers[1].url, "https://10.0.0.2:1000");
}

static void test_an_expired_lease_gives_its_place_to_another(void **state) {
        char name[32], url[64];

        for (int i = 0; i < 300; i++) {
                snprintf(name, sizeof name, "stale-%d", i);
                snprintf(url, sizeof url, "https://10.0.1.2:%d", i + 1);
                lease(HF_EVENT_ADDED, name, url, "stale", "sha256:bb");
        }
        lease(HF_EVENT_ADDED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        expect("");
        boot_time += 41 * HF_NSEC_PER_SEC;
        lease(HF_EVENT_MODIFIED, "l-b", "https://10.0.0.2:6443", "b", "sha256:aa");
        expect("b ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_instances_of_the_same_ca_are_listed),
                TEST(test_this_instance_is_not_listed),
                TEST(test_loopback_addresses_are_of_use_on_their_host_only),
                TEST(test_a_restarted_instance_is_listed_once),
                TEST(test_a_renewal_changes_nothing),
                TEST(test_other_addresses_are_ignored),
                TEST(test_there_are_limits),
                TEST(test_live_instances_are_listed_first),
                TEST(test_an_expiry_changes_the_list),
                TEST(test_of_two_with_one_name_the_live_one_is_first),
                TEST(test_an_expired_lease_gives_its_place_to_another),
                TEST(test_an_instance_that_serves_with_other_certificates_names_no_ca),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

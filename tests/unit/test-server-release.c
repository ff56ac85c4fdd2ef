/* SPDX-License-Identifier: Apache-2.0 */
/* `holdfastd release` over a memory store, also when memory runs out. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/process/runfile.h"
#include "server/release/release.h"
#include "server/storage/memory/store.h"
#include "server/store/configured_store.h"
#include "store_client.h"

static const char *lease;
static bool out_of_memory;

/* The linker redirects hfd_configured_store_new and hf__json_set_i64 here. */
int __wrap_hfd_configured_store_new(const struct hf_host *host, const struct hfd_config *config,
                                    struct hfd_store **ret_store, struct hf_status *reterr_status);
int __wrap_hfd_configured_store_new(const struct hf_host *host, const struct hfd_config *config,
                                    struct hfd_store **ret_store, struct hf_status *reterr_status) {
        int r = hfd_memory_store_new(host, ret_store);

        assert(r == 0);
        assert(store_client_put(*ret_store, "/registry/leases/kube-system/holdfast", lease) > 0);
        return 0;
}

int __real_hf__json_set_i64(struct hf__json *object, const char *path, int64_t value);
int __wrap_hf__json_set_i64(struct hf__json *object, const char *path, int64_t value);
int __wrap_hf__json_set_i64(struct hf__json *object, const char *path, int64_t value) {
        return out_of_memory ? -ENOMEM : __real_hf__json_set_i64(object, path, value);
}

/* Runs the command for a dead instance that led. Returns the exit status. */
static int run_release(bool *ret_still_leads) {
        static const struct hf_fence leads = {.ns = "kube-system",
                                              .name = "holdfast",
                                              .term = 7,
                                              .identity = "host_a;1"};
        char dir[] = "/tmp/release-XXXXXX", instance[] = "a", prefix[] = "/registry", command[64];
        struct hfd_config config = {.runtime_dir = dir,
                                    .instance = instance,
                                    .etcd_prefix = prefix};
        struct hfd_runfile *runfile;
        struct hf_fence found;

        assert_non_null(mkdtemp(dir));
        assert_int_equal(hfd_runfile_lock(dir, "a", &runfile, NULL), 0);
        assert_int_equal(hfd_runfile_write(runfile, &leads), 0);
        hfd_runfile_free(runfile);
        int exit_status = hfd_release_main(&config);
        int r = hfd_runfile_read_if_dead(dir, "a", &found, &runfile, NULL);
        *ret_still_leads = r == 0;
        if (r == 0)
                hfd_runfile_free(runfile);
        else
                assert_int_equal(r, HF_E_NOT_FOUND);
        (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
        assert_int_equal(system(command), 0);
        return exit_status;
}

static void test_the_lease_of_another_holder_is_left_alone(void **state) {
        bool still_leads;

        lease = "{\"spec\":{\"holderIdentity\":\"host_b;1\"}}";
        assert_int_equal(run_release(&still_leads), 0);
        assert_false(still_leads);
}

/* It must be possible to try again, so the run file still names the Lease. */
static void test_without_memory_the_release_fails(void **state) {
        bool still_leads;

        lease = "{\"spec\":{\"holderIdentity\":\"host_a;1\"}}";
        out_of_memory = true;
        assert_int_equal(run_release(&still_leads), 1);
        assert_true(still_leads);
        out_of_memory = false;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_lease_of_another_holder_is_left_alone),
                cmocka_unit_test(test_without_memory_the_release_fails),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

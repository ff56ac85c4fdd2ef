/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes kubeconfigs, YAML and JSON. What is accepted names a server, and all of it is freed; what
 * is refused says why. The files that a text names are looked for in a directory that does not
 * exist.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Reading a device could block the test. A backslash may spell such a name. */
static bool names_a_device(const uint8_t *data, size_t n) {
        return memmem(data, n, "/dev", 4) || memmem(data, n, "/proc", 5) ||
               memmem(data, n, "\\", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct hf__kubeconfig config = {0};
        struct hf_status status = {0};

        if (names_a_device(data, n))
                return 0;
        int r = hf__kubeconfig_parse((const char *)data, n, "/nonexistent", "fuzz", &config,
                                     &status);
        if (r == 0) {
                assert(config.rest.server && *config.rest.server);
                hf__kubeconfig_done(&config);
                assert(!config.server && !config.key_pem && !config.bearer_token);
        } else {
                assert(status.message[0]);
        }
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the identity of one incarnation of a process.
 *
 * Invariant: the random part alone makes an identity unique. Host, instance and boot id make it
 * readable. `holdfastd status` parses the format (status/render.c).
 */
#include "server/controllers/instances/identity.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BOOT_ID_MAX 40 /* bytes, with the NUL: a UUID has 36 characters */

/* Makes text valid in an object name, in place: lower-case letters, digits and '-' only. */
static void sanitize_name(char *text) {
        for (; *text; text++) {
                if (*text >= 'A' && *text <= 'Z')
                        *text = (char)(*text - 'A' + 'a');
                else if (!((*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9')))
                        *text = '-';
        }
}

/* Reads the first part of the boot id; "noboot" if the kernel provides none, e.g. without /proc. */
static void read_boot_id(char *text, size_t n) {
        FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

        (void)snprintf(text, n, "noboot");
        if (!file)
                return;
        /* The first group of the UUID is enough for a reader to distinguish two boots. */
        if (fgets(text, (int)n, file))
                text[strcspn(text, "\n-")] = '\0';
        (void)fclose(file);
}

/* An identity that is cut would lose its end, which is the random part. */
static_assert(sizeof((struct hfd_identity *)NULL)->host +
                              sizeof((struct hfd_identity *)NULL)->instance + BOOT_ID_MAX +
                              sizeof "___0123456789abcdef" <=
                      HF_IDENTITY_MAX + 1,
              "an identity fits");

int hfd_identity_make(const char *instance, struct hfd_identity *ret_identity) {
        struct hfd_identity identity = {0};
        unsigned long long random;
        char boot[BOOT_ID_MAX];

        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
                return errno ? -errno : -EIO;
        /* - 1: gethostname need not add a NUL to a name that it cuts. */
        if (gethostname(identity.host, sizeof identity.host - 1) < 0)
                return -errno;
        sanitize_name(identity.host);
        (void)snprintf(identity.instance, sizeof identity.instance, "%s", instance);
        sanitize_name(identity.instance);
        read_boot_id(boot, sizeof boot);
        (void)snprintf(identity.identity, sizeof identity.identity, "%s_%s_%s_%016llx",
                       identity.host, identity.instance, boot, random);
        (void)snprintf(identity.lease_name, sizeof identity.lease_name, "holdfastd-%.32s-%016llx",
                       identity.instance, random);
        *ret_identity = identity;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of one incarnation: host, instance, boot and sixteen random hex digits, so that
 * neither a restart nor a second process on the same host with the same instance name ever takes
 * its predecessor's record for its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "server/controllers/controllers.h"

/* Keeps what a name of the API may hold: lower-case letters, digits, '-'. */
static void tame(char *text) {
        for (; *text; text++) {
                if (*text >= 'A' && *text <= 'Z')
                        *text = (char)(*text - 'A' + 'a');
                else if (!((*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9')))
                        *text = '-';
        }
}

static void read_boot_id(char *text, size_t n) {
        FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

        (void)snprintf(text, n, "noboot");
        if (!file)
                return;
        if (fgets(text, (int)n, file))
                text[strcspn(text, "\n-")] = '\0'; /* the first group tells boots apart well enough
                                                      beside the random part */
        (void)fclose(file);
}

int hfd_identity_make(const char *instance, struct hfd_identity *ret_identity) {
        struct hfd_identity me = {0};
        unsigned long long random;
        char boot[40];

        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
                return errno ? -errno : -EIO;
        if (gethostname(me.host, sizeof me.host - 1) < 0)
                return -errno;
        tame(me.host);
        (void)snprintf(me.instance, sizeof me.instance, "%s", instance);
        tame(me.instance);
        read_boot_id(boot, sizeof boot);
        (void)snprintf(me.identity, sizeof me.identity, "%s_%s_%s_%016llx", me.host, me.instance,
                       boot, random);
        (void)snprintf(me.lease_name, sizeof me.lease_name, "holdfastd-%.32s-%016llx", me.instance,
                       random);
        *ret_identity = me;
        return 0;
}

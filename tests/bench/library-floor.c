/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the libraries of holdfastd need by themselves. This program links them
 * all, and initializes those that have state as every server has to. It prints its resident
 * memory in KiB twice: after the libraries are loaded, and after they are initialized.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <nghttp2/nghttp2.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <protobuf-c/protobuf-c.h>

#include "server/systemd/sdnotify.h"

static long resident_kib(void) {
        FILE *status = fopen("/proc/self/status", "re");
        char line[256];
        long kib = -1;

        while (status && kib < 0 && fgets(line, sizeof line, status))
                if (strncmp(line, "VmRSS:", 6) == 0)
                        kib = strtol(line + 6, NULL, 10);
        if (status)
                (void)fclose(status);
        return kib;
}

int main(void) {
        long loaded = resident_kib();
        SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
        EVP_PKEY *key = EVP_EC_gen("P-256");

        hfd_sdnotify_ready();
        /* Used, so that the linker keeps them. */
        if (!tls || !key || !cJSON_Version() || !protobuf_c_version() || !nghttp2_version(0))
                return 1;
        printf("%ld %ld\n", loaded, resident_kib());
        EVP_PKEY_free(key);
        SSL_CTX_free(tls);
        return 0;
}

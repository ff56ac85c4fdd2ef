/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the expiry of the certificates in use.
 *
 * Invariant: server->renew_certificates_at is atomic, because the thread that reads certificates
 * writes it and main reads it. 0 = nothing is to be renewed, or nothing was read yet.
 */
#include "server/certificates/certificate_expiry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/metrics.h>

#include "base/time_format.h"
#include "server/auth/pki/pki_cert.h"
#include "server/server.h"

/* The time between two attempts. Near the end of the CA a renewal gives no certificate that is
 * valid for longer, so without a pause one renewal would follow the other. */
#define RETRY_INTERVAL (24 * 3600 * HF_NSEC_PER_SEC)
/* A certificate may be valid until the year 9999, which is too far away for nanoseconds. */
#define FAR_AWAY_SECONDS (INT64_C(100) * 365 * 24 * 3600)

static int64_t now_unix(const struct hfd_server *server) {
        const struct hf_clock *clock = hf_host_clock(&server->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC;
}

/* Publishes when a certificate expires. Warns if that is near: a certificate that holdfastd can
 * renew has just been renewed, so this one is not renewed. */
static void publish_expiry(struct hfd_server *server, const char *which, int64_t until) {
        char text[HF__MICROTIME_MAX], label[64];

        (void)snprintf(label, sizeof label, "certificate=\"%s\"", which);
        struct hf_metric *metric =
                hf_metrics_get(server->host.metrics, HF_METRIC_GAUGE,
                               "holdfast_certificate_expiry_seconds",
                               "When a certificate in use expires, in seconds since 1970.", label);
        if (metric)
                hf_metric_set(metric, (double)until);
        if (until - now_unix(server) >= HFD_PKI_RENEW_SECONDS)
                return;
        hf__time_format(until, text);
        hf_log(&server->host.log, HF_LOG_WARNING, "holdfastd",
               "the %s certificate expires at %s and is not renewed by holdfastd: replace it "
               "and reload",
               which, text);
}

void hfd_certificate_expiry_note(struct hfd_server *server) {
        const struct hfd_config *config = server->config;
        int64_t admin = hfd_pki_valid_until(server->pki.admin_cert_pem);
        int64_t generated = hfd_pki_valid_until(server->pki.server_cert_pem);
        int64_t first = admin < generated ? admin : generated;
        /* Parsing takes OpenSSL a while, and usually the generated certificate is the one that is
         * served. */
        bool is_generated = strcmp(server->server_cert_pem, server->pki.server_cert_pem) == 0;

        publish_expiry(server, "serving",
                       is_generated ? generated : hfd_pki_valid_until(server->server_cert_pem));
        publish_expiry(server, "client CA", hfd_pki_valid_until(server->client_ca_pem));
        publish_expiry(server, "admin", admin);
        /* Certificates that are in memory only are never renewed: the set is made once. */
        atomic_store(&server->renew_certificates_at,
                     config->cert_dir[0] ? first - HFD_PKI_RENEW_SECONDS : 0);
}

hf_nsec hfd_certificate_expiry_next(struct hfd_server *server, hf_nsec now, hf_nsec next_try) {
        int64_t at = atomic_load(&server->renew_certificates_at);
        int64_t left = at - now_unix(server) + 1; /* now_unix has cut off a part of a second */

        if (at == 0 || left > FAR_AWAY_SECONDS)
                return HF_NSEC_NEVER;
        hf_nsec due = now + left * HF_NSEC_PER_SEC;
        return due > next_try ? due : next_try;
}

bool hfd_certificate_expiry_is_due(struct hfd_server *server, hf_nsec now, hf_nsec *next_try) {
        assert(next_try);
        if (now < hfd_certificate_expiry_next(server, now, *next_try))
                return false;
        *next_try = now + RETRY_INTERVAL;
        return true;
}

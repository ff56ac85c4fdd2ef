/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when a certificate request is signed, marked as failed or deleted. The rules are those of
 * Kubernetes' own controllers for these requests, because programs rely on them.
 *
 * Invariant: a request that has a certificate, or the condition Denied or Failed, is never signed.
 */
#include "server/controllers/certificates/request_core.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"

/* How long requests are kept, in seconds: those that were denied, have failed or got their
 * certificate, and those that still wait. */
#define DONE_KEPT    3600
#define PENDING_KEPT (24 * 3600)

static const struct hf__json *find_condition(const struct hf__json *request, const char *type) {
        return hf__json_element_with(hf__json_path(request, "status.conditions"), "type", type);
}

static bool has_certificate(const struct hf__json *request) {
        const char *certificate = hf__json_string(request, "status.certificate");

        return certificate && *certificate;
}

/* ---- signing ---- */

enum hfd_request_step hfd_request_next(const struct hf__json *request,
                                       char why[HFD_REQUEST_WHY_MAX]) {
        bool has_client_auth = false;

        if (!hf__json_has_text(request, "spec.signerName", HFD_CLIENT_SIGNER) ||
            !find_condition(request, "Approved") || find_condition(request, "Denied") ||
            find_condition(request, "Failed") || has_certificate(request) ||
            hf__json_string(request, "metadata.deletionTimestamp"))
                return HFD_REQUEST_NOTHING;
        for (const struct hf__json *m = hf__json_first(hf__json_path(request, "spec.usages")); m;
             m = hf__json_next(m)) {
                const char *usage = hf__json_is_string(m) ? hf__json_text(m) : "";
                if (strcmp(usage, "client auth") == 0) {
                        has_client_auth = true;
                } else if (strcmp(usage, "digital signature") != 0 &&
                           strcmp(usage, "key encipherment") != 0) {
                        (void)snprintf(why, HFD_REQUEST_WHY_MAX,
                                       "invalid usage for client certificate: %s", usage);
                        return HFD_REQUEST_FAIL;
                }
        }
        (void)snprintf(why, HFD_REQUEST_WHY_MAX,
                       "missing required usage for client certificate: client auth");
        return has_client_auth ? HFD_REQUEST_SIGN : HFD_REQUEST_FAIL;
}

int64_t hfd_request_seconds(const struct hf__json *request) {
        int64_t seconds;

        if (!hf__json_i64(request, "spec.expirationSeconds", &seconds) ||
            seconds > HFD_REQUEST_SECONDS_MAX)
                return HFD_REQUEST_SECONDS_MAX;
        return seconds < HFD_REQUEST_SECONDS_MIN ? HFD_REQUEST_SECONDS_MIN : seconds;
}

int hfd_request_fail(struct hf__json *request, const char *why, const char *now) {
        struct hf__json *condition;
        int r = hf__json_find_or_append(request, "status.conditions", "type", "Failed", &condition);

        assert(request && why && now);
        if (r == 0)
                r = hf__json_put_string(condition, "type", "Failed");
        if (r == 0)
                r = hf__json_put_string(condition, "status", "True");
        if (r == 0)
                r = hf__json_put_string(condition, "reason", "SignerValidationFailure");
        if (r == 0)
                r = hf__json_put_string(condition, "message", why);
        return r == 0 ? hf__json_put_string(condition, "lastUpdateTime", now) : r;
}

/* ---- deleting ---- */

/* The seconds until the time at `path` is `age` seconds old; HFD_REQUEST_KEPT if there is no time.
 */
static int64_t seconds_left(const struct hf__json *object, const char *path, int64_t age,
                            int64_t now) {
        const char *text = hf__json_string(object, path);
        int64_t then;

        if (!text || hf__time_parse(text, &then) != 0)
                return HFD_REQUEST_KEPT;
        return then + age - now;
}

static int64_t earlier_time(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t hfd_request_time_left(const struct hf__json *request, int64_t now, int64_t valid_until) {
        const struct hf__json *approved = find_condition(request, "Approved");
        int64_t left =
                seconds_left(find_condition(request, "Denied"), "lastUpdateTime", DONE_KEPT, now);

        left = earlier_time(left, seconds_left(find_condition(request, "Failed"), "lastUpdateTime",
                                               DONE_KEPT, now));
        if (hf__json_count(hf__json_path(request, "status.conditions")) == 0)
                left = earlier_time(left, seconds_left(request, "metadata.creationTimestamp",
                                                       PENDING_KEPT, now));
        if (!approved)
                return left;
        if (!has_certificate(request))
                return earlier_time(left,
                                    seconds_left(approved, "lastUpdateTime", PENDING_KEPT, now));
        left = earlier_time(left, seconds_left(approved, "lastUpdateTime", DONE_KEPT, now));
        return valid_until > 0 ? earlier_time(left, valid_until - now) : left;
}

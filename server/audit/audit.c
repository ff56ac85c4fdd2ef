/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the parts of the audit log.
 *
 * Invariant: a reload replaces the policy as a whole, and does not change the decision about a
 * request that has begun, because the request's record has a copy of the decision.
 */
#include "server/audit/audit.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/auth/files.h"

#define CLIENT_ID_MAX 64

struct hfd_audit {
        /* Immutable after new, except for n_ids. */
        const struct hf_host *host;      /* borrowed */
        char *policy_file;               /* owned */
        struct hfd_audit_writer *writer; /* owned */
        uint64_t seed[2];                /* random; of the IDs */
        /* The number of IDs made so far, and the number of the next ID. */
        _Atomic uint64_t n_ids;
        /* Guarded by mu. */
        pthread_mutex_t mu;
        struct hfd_audit_policy *policy; /* owned reference */
};

int hfd_audit_read_policy(const char *path, struct hfd_audit_policy **ret_policy,
                          struct hf_status *reterr_status) {
        struct hf_status why = {0};
        char *text = NULL;

        int r = hfd_read_file(path, &text, reterr_status);
        if (r != 0)
                return r;
        r = hfd_audit_policy_parse(text, strlen(text), ret_policy, &why);
        free(text);
        return r != 0 ? hf_fail(reterr_status, r, "%s: %s", path, why.message) : 0;
}

/* The lock keeps a reload from dropping audit's reference before the caller has its own. */
struct hfd_audit_policy *hfd_audit_get_policy(struct hfd_audit *audit) {
        pthread_mutex_lock(&audit->mu);
        struct hfd_audit_policy *policy = hfd_audit_policy_ref(audit->policy);
        pthread_mutex_unlock(&audit->mu);
        return policy;
}

struct hfd_audit_writer *hfd_audit_get_writer(struct hfd_audit *audit) {
        return audit->writer;
}

int64_t hfd_audit_now(const struct hfd_audit *audit) {
        const struct hf_clock *clock = hf_host_clock(audit->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_USEC;
}

int hfd_audit_reload(struct hfd_audit *audit, struct hf_status *reterr_status) {
        struct hfd_audit_policy *policy = NULL;

        hfd_audit_writer_reopen(audit->writer);
        int r = hfd_audit_read_policy(audit->policy_file, &policy, reterr_status);
        if (r != 0)
                return r;
        pthread_mutex_lock(&audit->mu);
        struct hfd_audit_policy *old = audit->policy;
        audit->policy = policy;
        pthread_mutex_unlock(&audit->mu);
        hfd_audit_policy_unref(old);
        return 0;
}

void hfd_audit_add_event(struct hfd_audit *audit, struct hfd_audit_record *record,
                         enum hfd_audit_stage stage, int code, bool complete) {
        int64_t at =
                stage == HFD_AUDIT_REQUEST_RECEIVED ? record->received_at : hfd_audit_now(audit);

        assert(stage != HFD_AUDIT_PANIC); /* it is never recorded */
        if (!(record->decision.omitted & 1u << stage))
                hfd_audit_writer_put(audit->writer,
                                     hfd_audit_event_new(record, stage, at, code, complete));
}

/* ---- IDs ---- */

/* Mixes the bits of a number (the finalizer of splitmix64). Different numbers stay different. */
static uint64_t mix_bits(uint64_t x) {
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

void hfd_audit_make_id(struct hfd_audit *audit, char id[HFD_AUDIT_ID_MAX]) {
        uint64_t n = atomic_fetch_add_explicit(&audit->n_ids, 1, memory_order_relaxed);
        uint64_t a = mix_bits(audit->seed[0] + n), b = mix_bits(audit->seed[1] ^ n);

        /* The fixed bits are those of a random UUID: version 4, variant 1. */
        (void)snprintf(id, HFD_AUDIT_ID_MAX, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
                       (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
                       (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
                       (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

bool hfd_audit_is_id(const char *text) {
        size_t n = 0;

        while (n <= CLIENT_ID_MAX && text[n] > ' ' && text[n] < 0x7f)
                n++;
        return n > 0 && n <= CLIENT_ID_MAX && text[n] == '\0';
}

/* ---- the object ---- */

HF__CLEANUP_DEFINE(audit_cleanup, struct hfd_audit *, hfd_audit_free)

/* If r is an error, puts the flag in front of its message. Returns r. */
static int name_flag(const char *flag, int r, struct hf_status *reterr_status) {
        struct hf_status why = *reterr_status;

        return r == 0 ? 0 : hf_fail(reterr_status, r, "flag --%s: %s", flag, why.message);
}

int hfd_audit_new(const struct hf_host *host, const struct hfd_audit_config *config,
                  struct hfd_audit **ret_audit, struct hf_status *reterr_status) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_audit *memory = calloc(1, sizeof *memory);

        assert(config->policy_file && config->log.path);
        if (!memory)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        HF__CLEANUP(audit_cleanup) struct hfd_audit *audit = HF__TAKE(memory);
        audit->host = host;
        audit->policy_file = strdup(config->policy_file);
        if (!audit->policy_file)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        if (getrandom(audit->seed, sizeof audit->seed, 0) != (ssize_t)sizeof audit->seed)
                return hf_fail(reterr_status, -EIO,
                               "cannot set up the audit log: the kernel gives no random bytes");
        r = name_flag("audit-policy-file",
                      hfd_audit_read_policy(config->policy_file, &audit->policy, reterr_status),
                      reterr_status);
        if (r != 0)
                return r;
        r = name_flag("audit-log-path",
                      hfd_audit_writer_new(host, &config->log, &audit->writer, reterr_status),
                      reterr_status);
        if (r != 0)
                return r;
        *ret_audit = HF__TAKE(audit);
        return 0;
}

struct hfd_audit *hfd_audit_free(struct hfd_audit *audit) {
        if (!audit)
                return NULL;
        hfd_audit_writer_free(audit->writer);
        hfd_audit_policy_unref(audit->policy);
        pthread_mutex_destroy(&audit->mu);
        free(audit->policy_file);
        free(audit);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The interface between holdfastd and its module holdfastd-outbound.so, which has libcurl. Both are
 * built from one source tree and installed together; `version` detects a module of another version.
 */
#include "server/outbound/outbound.h"

#define HFD_OUTBOUND_MODULE_FILE   "holdfastd-outbound.so"
#define HFD_OUTBOUND_MODULE_SYMBOL "hfd_outbound_module"

struct hfd_outbound_engine;

struct hfd_outbound_module {
        const char *version; /* HFD_VERSION of the module */
        /* Initialises libcurl and starts the thread. host is borrowed. Not called again after a
         * success. 0 or -errno. */
        int (*start)(const struct hf_host *host, struct hfd_outbound_engine **ret_engine);
        /* As hfd_outbound_send, but only the struct is copied: all that it points to is borrowed
         * until done returns. And a URL that cannot be used is -EINVAL, not HF_E_INVALID. */
        int (*send)(struct hfd_outbound_engine *engine, const struct hfd_outbound_request *request,
                    uint64_t *ret_id);
        /* As hf__http_cancel, hf__http_engine_stop and hf__http_engine_free (base/http/engine.h),
         * but free does not accept NULL. */
        void (*cancel)(struct hfd_outbound_engine *engine, uint64_t id);
        void (*stop)(struct hfd_outbound_engine *engine);
        struct hfd_outbound_engine *(*free)(struct hfd_outbound_engine *engine);
};

/* The only symbol that the module exports. */
extern const struct hfd_outbound_module hfd_outbound_module;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the prefixes of keys (key_prefixes.h).
 *
 * Invariant: all prefixes below 64 bytes are found, up to HFD_KEY_PREFIXES_MAX, because every
 * instance writes keys that begin with its prefix and ".holdfast/". The key of an object contains
 * this text only if it is a custom resource whose group ends in ".holdfast": namespaces and plurals
 * have no dots. Then the message names one wrong prefix, too.
 */
#include "server/storage/key_prefixes.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

#define OWN ".holdfast/"

static void remember_prefix(struct hfd_key_prefixes *prefixes, const char *key, size_t n) {
        size_t space = sizeof prefixes->found[0];

        for (size_t i = 0; i < prefixes->n; i++)
                if (strlen(prefixes->found[i]) == n && strncmp(prefixes->found[i], key, n) == 0)
                        return;
        prefixes->has_more = prefixes->has_more || prefixes->n == HFD_KEY_PREFIXES_MAX;
        if (prefixes->n < HFD_KEY_PREFIXES_MAX && n < space)
                (void)snprintf(prefixes->found[prefixes->n++], space, "%.*s", (int)n, key);
}

void hfd_key_prefixes_add(struct hfd_key_prefixes *prefixes, const char *key) {
        size_t n = strlen(prefixes->wanted);
        const char *own = strstr(key, OWN);

        if (!prefixes->first[0])
                (void)snprintf(prefixes->first, sizeof prefixes->first, "%s", key);
        if (strncmp(key, prefixes->wanted, n) == 0 &&
            (key[n] == '/' || strncmp(key + n, OWN, strlen(OWN)) == 0))
                prefixes->has_wanted = true;
        if (own)
                remember_prefix(prefixes, key, (size_t)(own - key));
}

int hfd_key_prefixes_check(const struct hfd_key_prefixes *prefixes, const char *backup,
                           struct hf_status *reterr_status) {
        struct hf__strbuf names = {0};

        if (prefixes->has_wanted || !prefixes->first[0])
                return 0;
        for (size_t i = 0; i < prefixes->n; i++)
                hf__strbuf_printf(&names, "%s%s", i > 0 ? ", " : ", but keys of ",
                                  prefixes->found[i]);
        if (prefixes->n == 0)
                hf__strbuf_printf(&names, "; its first key is %s", prefixes->first);
        else if (prefixes->has_more)
                hf__strbuf_puts(&names, " and others");
        int r = names.error ? hf_fail(reterr_status, names.error, "%s", hf_strerror(names.error))
                            : hf_fail(reterr_status, HF_E_NOT_FOUND,
                                      "%s has no keys of --etcd-prefix=%s%s", backup,
                                      prefixes->wanted, names.data);
        hf__strbuf_done(&names);
        return r;
}

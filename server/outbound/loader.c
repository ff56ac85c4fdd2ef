/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the module that calls webhooks (loader.h).
 *
 * Invariants: the module's symbols stay local (RTLD_LOCAL), so that its copy of libholdfast and the
 * program's copy do not mix. The module is never unloaded, and has the version of the program.
 */
#include "server/outbound/loader.h"

#include <dlfcn.h>
#include <string.h>

#include "base/program_file.h"
#include "server/tls/reasons.h"

#define INSTALLED HFD_LIBEXECDIR "/" HFD_OUTBOUND_MODULE_FILE

int hfd_outbound_load(const char *path, const struct hfd_outbound_module **ret_module,
                      struct hf_status *reterr_status) {
        char beside[PATH_MAX];

        if (!path)
                path = hf__program_file_find(HFD_OUTBOUND_MODULE_FILE, beside) ? beside : INSTALLED;
        hfd_tls_reasons_load(); /* for libcurl, which asks OpenSSL for the texts of errors itself */
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library) {
                const char *reason = dlerror();
                return hf_fail(reterr_status, HF_E_NOT_FOUND,
                               "cannot load %s, which calls webhooks: %s; it is installed together "
                               "with holdfastd and needs libcurl",
                               path, reason ? reason : "unknown error");
        }
        const struct hfd_outbound_module *module = dlsym(library, HFD_OUTBOUND_MODULE_SYMBOL);
        if (!module || strcmp(module->version, HFD_VERSION) != 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is of version %s, and holdfastd of version " HFD_VERSION
                               "; install both from one package",
                               path, module ? module->version : "unknown");
        *ret_module = module;
        return 0;
}

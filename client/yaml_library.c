/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libyaml with dlopen. Invariant: after a successful open all functions of the struct are
 * set, so callers need not check them. */
#include "client/yaml_library.h"

#include <dlfcn.h>

#include <holdfast/error.h>

#define LIBRARY "libyaml-0.so.2"

/* Stores the addresses through void pointers, as POSIX recommends for dlsym. */
int hf__yaml_library_open(struct hf__yaml_library *lib, struct hf_status *reterr_status) {
        lib->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (!lib->handle)
                return hf_fail(reterr_status, HF_E_UNAVAILABLE,
                               "YAML needs %s, which cannot be loaded: install the package "
                               "libyaml-0-2, or use JSON",
                               LIBRARY);
        *(void **)&lib->initialize = dlsym(lib->handle, "yaml_parser_initialize");
        *(void **)&lib->set_input = dlsym(lib->handle, "yaml_parser_set_input_string");
        *(void **)&lib->parse = dlsym(lib->handle, "yaml_parser_parse");
        *(void **)&lib->event_delete = dlsym(lib->handle, "yaml_event_delete");
        *(void **)&lib->parser_delete = dlsym(lib->handle, "yaml_parser_delete");
        if (lib->initialize && lib->set_input && lib->parse && lib->event_delete &&
            lib->parser_delete)
                return 0;
        return hf_fail(reterr_status, HF_E_UNAVAILABLE,
                       "YAML needs %s of the package libyaml-0-2, but the library that was found "
                       "lacks some of its functions",
                       LIBRARY);
}

void hf__yaml_library_close(struct hf__yaml_library *lib) {
        if (lib->handle)
                (void)dlclose(lib->handle);
        *lib = (struct hf__yaml_library){0};
}

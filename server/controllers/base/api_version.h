/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Group versions for which the server maintains an APIService: those of its built-in resources, and
 * those of CustomResourceDefinitions. Immutable. Thread: any. */
#include <stdbool.h>

/* A group version that this server serves. The strings are static, or those of a definition. */
struct hfd_api_version {
        const char *group, *version;
        int group_priority, version_priority;
        bool is_custom; /* the APIService is deleted when no definition has the version any more */
};

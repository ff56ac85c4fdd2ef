/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A group version that has an APIService. The server names its own, definitions add others. */
#include <stdbool.h>

/* A group version that this server serves. The strings are static, or those of a definition. */
struct hfd_api_version {
        const char *group, *version;
        int group_priority, version_priority;
        bool is_custom; /* of definitions: its APIService goes when no definition has the version */
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the values of a JSON text without parsing it. Each value but the first, or the key before
 * it, follows a comma or an opening bracket outside of strings. So the result is never too low. */
#include <string.h>

#include "base/json.h"

size_t hf__json_count_values(const char *data, size_t n) {
        size_t count = 1;

        for (size_t i = 0; i < n; i++) {
                if (data[i] == ',' || data[i] == '[' || data[i] == '{')
                        count++;
                if (data[i] != '"')
                        continue;
                for (i++; i < n && data[i] != '"'; i++)
                        if (data[i] == '\\')
                                i++;
        }
        return count;
}

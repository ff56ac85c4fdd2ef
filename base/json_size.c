/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the values of a JSON text without parsing it. Outside of strings, a comma, a [ or a {
 * stands before every value except the first; if the value has a key, it stands before the key. So
 * the result is never too low. */
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

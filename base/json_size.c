/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the values of a JSON text without parsing it: 1 for the outermost value, and 1 for each
 * comma and each opening bracket outside of strings. One of these precedes each element of an array
 * and each key of an object, so the result is never too low. */
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

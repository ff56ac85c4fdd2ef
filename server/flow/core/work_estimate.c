/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The width of a request.
 *
 * Invariant: a width is at least 1, so that every request counts, and never more than max_width, if
 * there is one.
 */
#include "server/flow/core/work_estimate.h"

unsigned hfd_work_width(size_t n_objects, size_t limit, unsigned max_width) {
        size_t n = limit > 0 && limit < n_objects ? limit : n_objects,
               width = n / HFD_WIDTH_OBJECTS + (n % HFD_WIDTH_OBJECTS != 0 ? 1 : 0);

        if (width > HFD_WIDTH_MAX)
                width = HFD_WIDTH_MAX;
        if (max_width > 0 && width > max_width)
                width = max_width;
        return width > 0 ? (unsigned)width : 1;
}

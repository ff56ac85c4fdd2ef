/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The words after a status code in HTTP/1.1's status line. Thread: any. */

/* "Not Found" for 404; "Status" for a code that is not listed. Static text. */
const char *hfd_reason_phrase(int code);

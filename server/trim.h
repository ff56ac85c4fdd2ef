/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Memory that only the start needed: of the libraries that come with libcurl and OpenSSL most code
 * runs once, to set them up or to make certificates, and stays resident for it. Given back, it is
 * mapped again, page by page from the file cache, when it is run.
 *
 * Called once, when the instance is ready. Thread: any. Blocks for about a millisecond. Failure
 * changes nothing.
 */
void hfd_trim_after_start(void);

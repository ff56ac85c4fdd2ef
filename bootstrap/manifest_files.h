/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads manifests from directories. Thread: owner only. */
#include "bootstrap/steps.h"

/*
 * Reads the files *.yaml, *.yml and *.json of a directory, in the order of their names, and appends
 * their steps. Errors are as for hf__manifest_read_text, and -errno: the directory or a file cannot
 * be read. Blocks for the file system, but never on a FIFO or a device.
 */
int hf__manifest_read_directory(struct hf__steps *steps, const struct hf__manifest_kinds *kinds,
                                const char *path, struct hf_status *reterr_status);

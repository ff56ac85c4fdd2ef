/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The commands `holdfastd pki ...`: make, show and hand over the CA of --cert-dir.
 *
 * They print the result, or one line to stderr that says why they failed; show, and a command whose
 * output fails, may have printed a part of the result before that. They return the exit status: 0
 * or 1. They block on files and on the standard streams; init and join also wait up to 30 s for the
 * lock of --cert-dir. Thread: main.
 */
struct hfd_config;

int hfd_pki_init_main(const struct hfd_config *config);
int hfd_pki_show_main(const struct hfd_config *config);
/* config->arguments[0]: the new file, or "-" for the standard output. */
int hfd_pki_export_main(const struct hfd_config *config);
/* config->arguments[0]: the file that another host has exported, or "-" for the standard input. */
int hfd_pki_join_main(const struct hfd_config *config);

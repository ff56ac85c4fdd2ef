/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sub-commands `holdfastd store backup`, `restore`, `check` and `compact`. They read the names
 * of files and stores from config->arguments; the parser of the command line has checked that none
 * is missing. They block, and print their result. They return the exit status: 0 = done, or nothing
 * is wrong with the file; 2 = a mistake on the command line; 1 = anything else. Thread: main.
 */
struct hfd_config;

int hfd_store_backup_main(const struct hfd_config *config);
int hfd_store_restore_main(const struct hfd_config *config);
int hfd_store_check_main(const struct hfd_config *config);
int hfd_store_compact_main(const struct hfd_config *config);

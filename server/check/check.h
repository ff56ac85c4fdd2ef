/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `holdfastd --check`: checks what the flags name, as the start of the server would. It writes no
 * file, takes no lock, accepts no connection and sends the store no request, so it may run beside a
 * server with the same flags. It does not load the files of --admission-plugin, because that runs
 * their code. Nor does it check what only a running server can find out: whether the port is free,
 * whether the store responds, whether another process uses the data directory.
 *
 * Thread: main, before there are others. Blocks on files.
 */
struct hfd_config;
struct hfd_extra;

/* Prints "ok" to stdout, or a line to stderr for each fault that it finds. Some checks, such as the
 * one of the manifests, end at their first fault. Returns the exit status: 0; 2: there is a fault;
 * 1: "ok" cannot be written. config is checked already (hfd_flags_parse). Both arguments are
 * borrowed until the call returns. */
int hfd_check_main(const struct hfd_config *config, const struct hfd_extra *extra);

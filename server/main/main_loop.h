/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The main thread of a server: signals, the watchdog, the status line, reloads. */
struct hfd_config;
struct hfd_extra;

/*
 * Creates one server, runs it to its end, and returns the exit status of the process. extra may be
 * NULL. Reports a failure of the start. Ends the process itself on a second stop signal, if a
 * controller or another hook does not stop, or if a reload hangs at the end.
 *
 * Blocks SIGTERM, SIGINT and SIGHUP in the calling thread and receives them through a descriptor.
 * The calling thread must be the only thread of the process.
 */
int hfd_main_loop_run(const struct hfd_config *config, const struct hfd_extra *extra);

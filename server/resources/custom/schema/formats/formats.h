/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The formats of strings that Kubernetes checks in custom resources (`format` in a schema). A
 * format that Kubernetes does not know is ignored. Each check takes linear time. Pure. Thread: any.
 */
#include <stdbool.h>

/* Whether Kubernetes checks strings of this format. */
bool hfd_custom_format_is_known(const char *format);
/* Whether the text has the format; true if Kubernetes does not check the format. */
bool hfd_custom_format_matches(const char *format, const char *text);

/* ---- formats of the network (network_formats.c) ----
 * Other rules use those of IP addresses, too. As in Kubernetes, an IPv4 address within IPv6
 * ("::ffff:10.0.0.1") counts both as IPv4 and as IPv6, and the numbers of an IPv4 address that
 * stands alone may begin with zeros. */
bool hfd_is_request_uri(const char *text);
bool hfd_is_email(const char *text);
bool hfd_is_internet_host(const char *text);
bool hfd_is_ipv4(const char *text);
bool hfd_is_ipv6(const char *text);
bool hfd_is_cidr(const char *text);
bool hfd_is_mac(const char *text);

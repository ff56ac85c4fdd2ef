/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Continue tokens in Kubernetes' format: unpadded base64url of
 * {"v":"meta.k8s.io/v1","rv":N,"start":"path\0"}. The next page begins after path, at revision N.
 * Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__strbuf;

/* A token with this revision, which is written as -1, continues with the current state: that of the
 * first page is gone. hfd_continue_token_parse gives the revision 0 for it. */
#define HFD_CONTINUE_CURRENT UINT64_MAX

/* Appends a token. A failure sets out->error. */
void hfd_continue_token_append(struct hf__strbuf *out, uint64_t revision, const char *path);
/*
 * *ret_revision: 0 = the current state. path has space bytes. False: the token does not have this
 * format, the token or its path is too long, the path could leave the resource, or memory ran out.
 */
bool hfd_continue_token_parse(const char *token, uint64_t *ret_revision, char *path, size_t space);

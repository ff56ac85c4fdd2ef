/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Base64 (RFC 4648): the standard alphabet with padding (section 4), and the URL-safe alphabet
 * without padding (section 5).
 *
 * The decoders differ in strictness, because Kubernetes' clients expect different rules in
 * different places; see each function. All decoders ignore bits after the last whole byte, as Go's
 * encoding/base64 does. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__strbuf;

/* Appends the padded standard form of n bytes. An error is kept in out->error. */
void hf__base64_encode(struct hf__strbuf *out, const void *data, size_t n);

/*
 * Decodes n bytes of padded standard base64. White space (space, tab, CR, LF) is skipped, because
 * kubeconfig files wrap and indent their certificates. *ret_data is malloc'ed and ends with a NUL
 * that *ret_n does not count; the caller frees it. 0, -ENOMEM, HF_E_INVALID.
 */
int hf__base64_decode(const char *text, size_t n, char **ret_data, size_t *ret_n);

/*
 * Whether Go's decoder, and so Kubernetes, accepts text as the base64 of a []byte in JSON: padded,
 * with CR and LF skipped and no other white space. true: *ret_n is the decoded length. false:
 * *ret_n is the offset in the message of Go's decoder ("illegal base64 data at input byte N"):
 *
 *      a byte stands where a second "=" belongs    the offset of the byte before it
 *      any other byte does not fit                 its offset
 *      the text ends where a second "=" belongs    the length of the text
 *      the text ends early otherwise               its length minus the digits of the last group
 */
bool hf__base64_check(const char *text, size_t *ret_n);

/* Appends the unpadded URL-safe form of n bytes. An error is kept in out->error. */
void hf__base64url_encode(struct hf__strbuf *out, const void *data, size_t n);

/*
 * Decodes n bytes of unpadded URL-safe base64 into data, which has room for
 * HF__BASE64URL_DECODED_MAX(n) bytes. No NUL is appended. false: a byte is not in the alphabet. A
 * single digit after the last group contains no whole byte and is ignored.
 */
bool hf__base64url_decode(const char *text, size_t n, void *data, size_t *ret_n);
#define HF__BASE64URL_DECODED_MAX(n) ((n) / 4 * 3 + 2)

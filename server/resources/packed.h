/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compresses the bytes of objects that are large and seldom read. A definition of a custom resource
 * consists mostly of descriptions, and is packed into a tenth of its size.
 *
 * The bytes of an object begin with '{', and packed ones do not, so the two cannot be confused.
 * Pure. Thread: any. Never blocks.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* hfd_pack does not pack fewer bytes: the saving would not be worth the time. */
#define HFD_PACK_MIN 4096

/* Packs the bytes of an object, which stay as they are. Returns a new block. NULL: the bytes are
 * fewer than HFD_PACK_MIN or more than INT_MAX, they would not shrink to a half, or memory ran out;
 * then the caller keeps them unpacked. Takes about 10 ns per byte. */
struct hf__buf *hfd_pack(const struct hf__buf *bytes);
/* Whether the bytes, which hfd_pack has made or which are those of an object, are packed. */
bool hfd_is_packed(const struct hf__buf *bytes);
/* The number of bytes when they are unpacked; bytes may be packed or not. */
size_t hfd_unpacked_size(const struct hf__buf *bytes);
/* A reference to the bytes as they were, which is a new block if they are packed. NULL: out of
 * memory. Takes about 2 ns per byte. */
struct hf__buf *hfd_unpack(const struct hf__buf *bytes);

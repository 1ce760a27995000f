/* SPDX-License-Identifier: MIT */
/*
 * The Simple Symbol Query Protocol: converts paths NAME/IDENTITY/NAME to keys and back. It handles
 * the grammar of every kind of key and its rules about case, but not HTTP or percent-encoding.
 *
 *   NAME/elf-buildid-HEX40/NAME           NAME.pdb/GUID AGE/NAME.pdb (AGE ffffffff: portable)
 *   _.debug/elf-buildid-sym-HEX40/_.debug NAME.pdb/GUID AGE/msfz0/NAME.pdb
 *   NAME/elf-buildid-coreclr-HEX40/NAME   NAME/TIMESTAMP8 SIZE/NAME
 *   NAME/mach-uuid[-sym|-coreclr]-HEX32/NAME
 *   NAME/r2rmap-vN-HEX32/NAME             NAME/sha1-HEX40/NAME
 *   NAME.map/SHA256/NAME.map              NAME.wasm/BUILDID/NAME.wasm
 *
 * Specification: dotnet/symstore, Simple_Symbol_Query_Protocol.md and SSQP_Key_Conventions.md.
 */
#ifndef SYMSRV_KEY_SSQP_H
#define SYMSRV_KEY_SSQP_H

#include <stdbool.h>

#include "libsym/base/buf.h"
#include "symsrv/key/key.h"

/*
 * Parses a decoded path without its leading slash. `path` is split in place, and `room` (of the
 * same size) gets the lower-case name; both must outlive the key.
 */
bool ssqp_parse(char *path, char *room, struct key *key);

/*
 * Appends the path of `key`, percent-encoded. `as_spelt`: with the name as the client wrote it, not
 * in lower case. False when the protocol has no path for the key.
 */
bool ssqp_format(struct buf *buf, const struct key *key, bool as_spelt);

#endif

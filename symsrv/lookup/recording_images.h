/* SPDX-License-Identifier: MIT */
/*
 * Which native images a recording of dotnet-mapgen has: lines of the member names/symbols of
 * NAME.trace.zip, "I", number, process, kind, build-id, path, with tabs between. The recording is
 * foreign: sizes have limits, and nothing is kept but one line.
 */
#ifndef SYMSRV_LOOKUP_RECORDING_IMAGES_H
#define SYMSRV_LOOKUP_RECORDING_IMAGES_H

#include <stdbool.h>

#include "libsym/format/file/byte_source.h"

/*
 * Calls `visit` with the build-id of each ELF image, in hex, until it returns false. 0; -EBADMSG:
 * not a recording, or damaged; -ENOMEM.
 */
int recording_images_each(const struct byte_source *source,
			  bool (*visit)(void *context, const char *build_id), void *context);

#endif

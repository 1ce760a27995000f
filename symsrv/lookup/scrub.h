/* SPDX-License-Identifier: MIT */
/* symsrv --scrub: reads a store again and reports what it removed. */
#ifndef SYMSRV_LOOKUP_SCRUB_H
#define SYMSRV_LOOKUP_SCRUB_H

/* Returns the exit status: 0 all good, 1 failed, 3 something was removed. */
int scrub_run(const char *directory);

#endif

/* SPDX-License-Identifier: MIT */
/* symsrv --scrub: reads a store again and tells what it removed. */
#ifndef SYMSRV_SCRUB_H
#define SYMSRV_SCRUB_H

/* Exit status: 0 all good, 1 failed, 3 something was removed. */
int scrub_run(const char *directory);

#endif

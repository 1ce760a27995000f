/* SPDX-License-Identifier: MIT */
/* Preloaded into a process: it becomes `sleep` when the file named by BECOME_WHEN appears. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *wait_for_file(void *path)
{
	static char *const nothing[] = { NULL };

	while (access(path, F_OK))
		usleep(1000);
	/* The environment of this process is read by others meanwhile: what is not changed is not
	 * in their way. */
	execle("/bin/sleep", "sleep", "600", (char *)NULL, nothing);
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	char *path = getenv("BECOME_WHEN");
	pthread_t thread;

	if (path)
		pthread_create(&thread, NULL, wait_for_file, path);
}

/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a process: it becomes `sleep` when the file named by BECOME_WHEN appears. Linux
 * rejects new threads while another one is in execve() (EAGAIN), which makes .NET abort; so they
 * wait.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
		   void *argument)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");
	int failure;

	pthread_mutex_lock(&creating);
	failure = next(thread, attributes, start, argument);
	pthread_mutex_unlock(&creating);
	return failure;
}

static void *wait_for_file(void *path)
{
	static char *const nothing[] = { NULL };

	while (access(path, F_OK))
		usleep(1000);
	pthread_mutex_lock(&creating);
	/* Other threads read the environment of this process, so it must not be changed. */
	execle("/bin/sleep", "sleep", "600", (char *)NULL, nothing);
	pthread_mutex_unlock(&creating);
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	char *path = getenv("BECOME_WHEN");
	pthread_t thread;

	if (path)
		pthread_create(&thread, NULL, wait_for_file, path);
}

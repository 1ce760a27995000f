/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/wait_cause.h"

#include <stdbool.h>
#include <string.h>

/* Functions of .NET stand before those of the system, because everything ends in a futex. A part
 * that begins with '=' is the whole name. */
static const struct {
	const char *part, *text;
} causes[] = {
	{ "Thread::Sleep", "sleep" },
	{ "Thread::Join", "end of a thread" },
	{ "Monitor::Wait", "Monitor.Wait" },
	{ "Monitor::ObjWait", "Monitor.Wait" },
	{ "Monitor::Enter", "lock" },
	{ "Monitor::ReliableEnter", "lock" },
	{ "Monitor::TryEnter", "lock" },
	{ "AwareLock::Enter", "lock" },
	{ "Threading.Lock::", "lock" },
	{ "ReaderWriterLock", "reader-writer lock" },
	{ "SpinLock::", "lock" },
	{ "SemaphoreSlim::Wait", "semaphore" },
	{ "CountdownEvent::Wait", "event" },
	{ "Barrier::SignalAndWait", "barrier" },
	{ "BlockingCollection`1", "queue" },
	{ "Tasks.Task::InternalWait", "task" },
	{ "Tasks.Task::SpinThenBlockingWait", "task" },
	{ "ManualResetEventSlim::Wait", "event" },
	{ "WaitHandle::Wait", "event" },
	{ "LowLevelLifoSemaphore::Wait", "work (thread pool)" },
	{ "SocketAsyncEngine::", "network events" },
	{ "Sockets.Socket", "network" },
	{ "FileStream", "file" },
	{ "RandomAccess::", "file" },
	{ "Diagnostics.Process::WaitFor", "child process" },
	{ "SuspendEE", "GC" },
	{ "WaitUntilGCComplete", "GC" },
	{ "WaitLongerIfGC", "GC" },
	{ "gc_heap::", "GC" },
	{ "nanosleep", "sleep" },
	{ "ep_poll", "events (epoll)" },
	{ "epoll_wait", "events (epoll)" },
	{ "do_poll", "events (poll)" },
	{ "do_select", "events (select)" },
	{ "tcp_", "network" },
	{ "inet_", "network" },
	{ "unix_stream", "socket" },
	{ "sock_", "socket" },
	{ "pipe_read", "pipe" },
	{ "pipe_write", "pipe" },
	{ "=do_wait", "child process" },
	{ "io_schedule", "disk" },
	{ "folio_wait", "disk" },
	{ "jbd2_", "disk" },
	{ "n_tty_read", "terminal" },
	{ "futex", "lock or event" },
};

enum {
	CAUSES = sizeof(causes) / sizeof(*causes),
};

_Static_assert((int)CAUSES < (int)WAIT_CAUSE_UNKNOWN, "a number has one byte");

static bool matches(const char *name, const char *part)
{
	return *part == '=' ? !strcmp(name, part + 1) : strstr(name, part) != NULL;
}

uint8_t wait_cause_find(const char *function)
{
	for (uint8_t i = 0; i < CAUSES; i++)
		if (matches(function, causes[i].part))
			return i;
	return WAIT_CAUSE_UNKNOWN;
}

uint8_t wait_cause_first_of_its_text(uint8_t cause)
{
	for (uint8_t i = 0; i < cause && cause < CAUSES; i++)
		if (!strcmp(causes[i].text, causes[cause].text))
			return i;
	return cause;
}

const char *wait_cause_text(uint8_t cause)
{
	return cause < CAUSES ? causes[cause].text : "";
}

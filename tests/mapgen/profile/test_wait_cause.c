/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/wait_cause.h"

#include <criterion/criterion.h>

Test(wait_cause, knows_functions_of_dotnet_and_of_the_kernel)
{
	cr_assert_str_eq(
		wait_cause_text(wait_cause_find("bool System.Threading.Monitor::Wait(object)")),
		"Monitor.Wait");
	cr_assert_str_eq(wait_cause_text(wait_cause_find("tcp_recvmsg_locked")), "network");
	cr_assert_str_eq(wait_cause_text(wait_cause_find("io_schedule_timeout")), "disk");
	cr_assert_eq(wait_cause_find("Store.Program::Main"), WAIT_CAUSE_UNKNOWN);
	cr_assert_str_eq(wait_cause_text(WAIT_CAUSE_UNKNOWN), "");
}

Test(wait_cause, takes_do_wait_as_a_whole_name_only)
{
	cr_assert_str_eq(wait_cause_text(wait_cause_find("do_wait")), "child process");
	cr_assert_eq(wait_cause_find("do_wait_intr"), WAIT_CAUSE_UNKNOWN);
}

Test(wait_cause, lets_dotnet_say_more_than_the_system)
{
	cr_assert_lt(wait_cause_find("SemaphoreSlim::WaitCore"),
		     wait_cause_find("futex_wait_queue"));
}

Test(wait_cause, gives_one_number_to_equal_texts)
{
	uint8_t entered = wait_cause_first_of_its_text(wait_cause_find("Monitor::Enter"));

	cr_assert_eq(wait_cause_first_of_its_text(wait_cause_find("AwareLock::Enter")), entered);
	cr_assert_eq(wait_cause_first_of_its_text(WAIT_CAUSE_UNKNOWN), WAIT_CAUSE_UNKNOWN);
}

// SPDX-License-Identifier: MIT
// Processor time of one thread for an event with about DEPTH managed frames:
//   exception    thrown and caught in one frame
//   allocation   100 KiB in arrays of 8,000 bytes: .NET 10 samples one of them
//   wait         for a lock that another thread holds
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class EventCost
{
    const int ThreadClock = 3; // CLOCK_THREAD_CPUTIME_ID
    const int SampledBytes = 102400, ArrayBytes = 8000;
    const int OtherFrames = 6; // below and above those of Deep()

    static readonly object gate = new object();
    static readonly Semaphore wanted = new Semaphore(0, 1), held = new Semaphore(0, 1);
    static byte[] kept;

    struct Time
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    static extern int GetTime(int clock, out Time time);

    static long ThreadTime()
    {
        GetTime(ThreadClock, out Time time);
        return time.Seconds * 1000000000 + time.Nanoseconds;
    }

    // A frame of about a hundred bytes, as those of a server's requests.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Deep(int depth, Func<long> what)
    {
        decimal one = depth, two = depth + 1, three = depth + 2;
        long result = depth > 0 ? Deep(depth - 1, what) : what();
        return one + two + three > 0 ? result : 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw()
    {
        try
        {
            throw new OrderException("no such order");
        }
        catch (OrderException)
        {
        }
    }

    static long Exceptions(int count)
    {
        long begin = ThreadTime();
        for (int i = 0; i < count; i++)
            Throw();
        return ThreadTime() - begin;
    }

    static long Allocations(int count)
    {
        long begin = ThreadTime();
        for (long bytes = 0; bytes < (long)count * SampledBytes; bytes += ArrayBytes)
            kept = new byte[ArrayBytes];
        return ThreadTime() - begin;
    }

    static long Waits(int count)
    {
        Thread waiter = Thread.CurrentThread;
        var owner = new Thread(() => Hold(waiter, count));
        long sum = 0;
        owner.Start();
        for (int i = 0; i < count; i++)
        {
            wanted.Release();
            held.WaitOne();
            long begin = ThreadTime();
            lock (gate)
                sum += ThreadTime() - begin;
        }
        owner.Join();
        return sum;
    }

    static void Hold(Thread waiter, int count)
    {
        for (int i = 0; i < count; i++)
        {
            wanted.WaitOne();
            lock (gate)
            {
                held.Release();
                // First the waiter leaves the semaphore: its state is the same there.
                Thread.Sleep(1);
                while ((waiter.ThreadState & ThreadState.WaitSleepJoin) == 0)
                    Thread.Sleep(1);
            }
        }
    }

    // Nanoseconds for `count` events.
    public static long Measure(string kind, int depth, int count)
    {
        Func<long> what = () => kind == "exception" ? Exceptions(count) : kind == "allocation" ? Allocations(count) : Waits(count);
        long result = 0;
        var thread = new Thread(() => result = Deep(depth - OtherFrames, what)) { Name = "worker" };
        thread.Start();
        thread.Join();
        return result;
    }
}

// SPDX-License-Identifier: MIT
// Does what a line on standard input says, and counts it: "COLLECTIONS0 COLLECTIONS1 COLLECTIONS2 EXCEPTIONS WAITS".
//   work N        N rounds in each of four threads: an exception, allocations, a collection, a lock that another thread holds
//   threads N     makes N threads, each of which throws once
//   throw N       N exceptions in one thread
//   again N       in a new thread, N times: an exception, and one more in each of two catch blocks
//   spin MS       uses the processor for so long
//   flood S       exceptions and allocations in all threads for S seconds
//   cost KIND DEPTH N   nanoseconds of one thread's processor time for N events (EventCost.cs)
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

class OrderException : Exception
{
    public OrderException(string message) : base(message) { }
}

static class Events
{
    static long exceptions, waits;
    static readonly object gate = new object();
    static byte[] kept;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Find(int depth)
    {
        if (depth > 0)
            Find(depth - 1);
        else
            throw new OrderException("no such order");
        GC.KeepAlive(gate);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw()
    {
        try
        {
            Find(3);
        }
        catch (OrderException)
        {
            Interlocked.Increment(ref exceptions);
        }
    }

    // Exceptions that are thrown in catch blocks: the frames of each stay below those of the next.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowAgain(int depth)
    {
        try
        {
            Find(3);
        }
        catch (OrderException)
        {
            Interlocked.Increment(ref exceptions);
            if (depth > 0)
                ThrowAgain(depth - 1);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        for (int i = 0; i < 100; i++)
            kept = new byte[1000];
    }

    // Holds the lock until the other thread waits for it.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Contend()
    {
        Thread waiter;
        lock (gate)
        {
            waiter = new Thread(Reserve) { Name = "waiter" };
            waiter.Start();
            while ((waiter.ThreadState & System.Threading.ThreadState.WaitSleepJoin) == 0)
                Thread.Sleep(1);
        }
        waiter.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Reserve()
    {
        lock (gate)
            Interlocked.Increment(ref waits);
    }

    static void Round(int number)
    {
        Throw();
        Allocate();
        if (number % 10 == 0)
            GC.Collect(number / 10 % 3);
    }

    static void Work(int rounds)
    {
        var threads = new Thread[4];
        for (int i = 0; i < threads.Length; i++)
        {
            threads[i] = new Thread(() =>
            {
                for (int k = 0; k < rounds; k++)
                    Round(k);
            }) { Name = "worker" };
            threads[i].Start();
        }
        foreach (var thread in threads)
            thread.Join();
        for (int i = 0; i < rounds / 4; i++)
            Contend();
    }

    static void Threads(int count)
    {
        for (int i = 0; i < count; i++)
        {
            var thread = new Thread(Throw) { Name = "short" };
            thread.Start();
            if (i % 8 == 7)
                thread.Join();
        }
        while (Interlocked.Read(ref exceptions) < count)
            Thread.Sleep(1);
    }

    static void Flood(int seconds)
    {
        var watch = Stopwatch.StartNew();
        var threads = new Thread[Environment.ProcessorCount];
        for (int i = 0; i < threads.Length; i++)
        {
            threads[i] = new Thread(() =>
            {
                while (watch.Elapsed.TotalSeconds < seconds)
                    Throw();
            });
            threads[i].Start();
        }
        foreach (var thread in threads)
            thread.Join();
    }

    static void Spin(int milliseconds)
    {
        for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;)
            Thread.SpinWait(1000);
    }

    static void Answer()
    {
        Console.WriteLine($"{GC.CollectionCount(0)} {GC.CollectionCount(1)} {GC.CollectionCount(2)} {exceptions} {waits}");
    }

    static void InThread(ThreadStart work)
    {
        Thread thread = new Thread(work);
        thread.Start();
        thread.Join();
    }

    static void Main()
    {
        Throw();
        Contend();
        exceptions = waits = 0;
        Answer();
        for (string line; (line = Console.ReadLine()) != null;)
        {
            string[] words = line.Split(' ');
            int count = words.Length == 2 ? int.Parse(words[1]) : 0;
            if (words[0] == "work")
                Work(count);
            else if (words[0] == "threads")
                Threads(count);
            else if (words[0] == "spin")
                Spin(count);
            else if (words[0] == "flood")
                Flood(count);
            else if (words[0] == "throw")
                for (int i = 0; i < count; i++)
                    Throw();
            else if (words[0] == "again")
                InThread(() => { for (int i = 0; i < count; i++) ThrowAgain(2); });
            else if (words[0] == "cost")
            {
                Console.WriteLine(EventCost.Measure(words[1], int.Parse(words[2]), int.Parse(words[3])));
                continue;
            }
            Answer();
        }
    }
}

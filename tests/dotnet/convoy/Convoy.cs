// SPDX-License-Identifier: MIT
// Threads that wait for one lock, and measure how long: "WAITS MILLISECONDS", of the function Convoy.Reserve.
using System;
using System.Diagnostics;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;

static class Convoy
{
    static readonly object gate = new();
    static long waited, waits;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Hold() => Thread.Sleep(20);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Reserve()
    {
        long begin = Stopwatch.GetTimestamp();
        lock (gate)
        {
            Interlocked.Add(ref waited, Stopwatch.GetTimestamp() - begin);
            Interlocked.Increment(ref waits);
            Hold();
        }
    }

    static void Main(string[] arguments)
    {
        int rounds = int.Parse(arguments[0]);
        var threads = Enumerable.Range(0, 4).Select(_ => new Thread(() =>
        {
            for (int i = 0; i < rounds; i++)
                Reserve();
        }) { Name = "convoy" }).ToArray();
        foreach (var thread in threads)
            thread.Start();
        Console.WriteLine("started");
        foreach (var thread in threads)
            thread.Join();
        Console.WriteLine($"{waits} {waited * 1000 / Stopwatch.Frequency}");
    }
}

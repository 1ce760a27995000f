// SPDX-License-Identifier: MIT
// Makes the events of a runtime, and counts for itself what it has made: collections by generation,
// exceptions by type, waits for a lock, bytes of known types, jitted methods, events of its own.
// Prints "ready", then works once for each line of standard input and prints what it has counted as
// one line of JSON. At the line "starve" it blocks all threads of the thread pool. Ends with its input.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Contoso.Eventful
{
    public sealed class OrderException : Exception
    {
        public OrderException(string message) : base(message) { }
    }

    public sealed class Node
    {
        public Node Next;
        public long First, Second, Third;
    }

    [EventSource(Name = "Contoso-Orders")]
    public sealed class OrdersSource : EventSource
    {
        public static readonly OrdersSource Log = new OrdersSource();
        public int Depth;
        private PollingCounter depth;

        [Event(1, Level = EventLevel.Informational)]
        public void Placed(int id, string customer, double price, bool express, Guid tag) => WriteEvent(1, id, customer, price, express, tag);

        [Event(2, Level = EventLevel.Informational)]
        public void HandleStart(int id) => WriteEvent(2, id);

        [Event(3, Level = EventLevel.Informational)]
        public void HandleStop(int id) => WriteEvent(3, id);

        protected override void OnEventCommand(EventCommandEventArgs command)
        {
            if (command.Command == EventCommand.Enable && depth == null)
                depth = new PollingCounter("queue-depth", this, () => Depth) { DisplayName = "Depth of the queue" };
        }
    }

    public static class Program
    {
        private static readonly Dictionary<string, long> thrown = new Dictionary<string, long>();
        private static readonly object theLock = new object();
        private static Node kept;
        private static byte[] bytes;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void ThrowOrder(int i) => throw new OrderException("no such order: " + i % 3);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void ThrowState() => throw new InvalidOperationException("closed\n\u001b[31m");

        private static void Throw(int orders, int states)
        {
            for (int i = 0; i < orders + states; i++)
            {
                try
                {
                    if (i < orders)
                        ThrowOrder(i);
                    else
                        ThrowState();
                }
                catch (Exception)
                {
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long AllocateBytes(long total)
        {
            const int size = 1000;
            for (long done = 0; done < total; done += size + 24)
                bytes = new byte[size];
            return (total + size + 23) / (size + 24) * (size + 24);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long AllocateNodes(long total)
        {
            const int size = 48;
            for (long done = 0; done < total; done += size)
                kept = new Node();
            return (total + size - 1) / size * size;
        }

        private static void Collect()
        {
            GC.Collect(0, GCCollectionMode.Forced, true);
            GC.Collect(0, GCCollectionMode.Forced, true);
            GC.Collect(1, GCCollectionMode.Forced, true);
            // A collection of which the runtime sends no events.
            if (GC.TryStartNoGCRegion(1 << 20))
                GC.EndNoGCRegion();
            GC.Collect(2, GCCollectionMode.Forced, true);
        }

        // Each round is one wait: the lock is held until the waiter is seen to wait for it.
        private static double Contend(int rounds)
        {
            long waited = 0;
            for (int i = 0; i < rounds; i++)
            {
                bool isHeld = false;
                var waiter = new Thread(() =>
                {
                    while (!Volatile.Read(ref isHeld))
                        Thread.Yield();
                    long start = Stopwatch.GetTimestamp();
                    lock (theLock)
                        waited += Stopwatch.GetTimestamp() - start;
                });
                waiter.Name = "waiter";
                waiter.Start();
                lock (theLock)
                {
                    long before = Monitor.LockContentionCount;
                    Volatile.Write(ref isHeld, true);
                    while (Monitor.LockContentionCount == before || waiter.ThreadState != System.Threading.ThreadState.WaitSleepJoin)
                        Thread.Yield();
                    Thread.Sleep(2);
                }
                waiter.Join();
            }
            return waited * 1000.0 / Stopwatch.Frequency;
        }

        private static void Jit(int methods)
        {
            for (int i = 0; i < methods; i++)
            {
                var method = new DynamicMethod("Generated" + i, typeof(int), Type.EmptyTypes, typeof(Program).Module);
                ILGenerator code = method.GetILGenerator();
                code.Emit(OpCodes.Ldc_I4, i);
                code.Emit(OpCodes.Ret);
                ((Func<int>)method.CreateDelegate(typeof(Func<int>)))();
            }
        }

        private static void Order(int count)
        {
            var tag = new Guid("00112233-4455-6677-8899-aabbccddeeff");
            for (int i = 0; i < count; i++)
            {
                OrdersSource.Log.Depth = i;
                OrdersSource.Log.HandleStart(i);
                OrdersSource.Log.Placed(i, "Müller & Söhne", 1.5 * i, i % 2 == 0, tag);
                OrdersSource.Log.HandleStop(i);
            }
        }

        // .NET 6 on; -1 before.
        private static long CompiledMethods()
        {
            Type type = Type.GetType("System.Runtime.JitInfo");
            MethodInfo get = type?.GetMethod("GetCompiledMethodCount");
            return get == null ? -1 : Convert.ToInt64(get.Invoke(null, new object[] { false }), CultureInfo.InvariantCulture);
        }

        private static string Work()
        {
            var before = new[] { GC.CollectionCount(0), GC.CollectionCount(1), GC.CollectionCount(2) };
            long contentions = Monitor.LockContentionCount, compiled = CompiledMethods();
            lock (thrown)
                thrown.Clear();
            Throw(200, 50);
            double waited = Contend(20);
            contentions = Monitor.LockContentionCount - contentions;
            Order(100);
            Jit(40);
            compiled = compiled < 0 ? -1 : CompiledMethods() - compiled;
            long byteBytes = AllocateBytes(200L << 20), nodeBytes = AllocateNodes(100L << 20);
            Collect();
            var after = new[] { GC.CollectionCount(0), GC.CollectionCount(1), GC.CollectionCount(2) };
            int[] counts = after.Zip(before, (a, b) => a - b).ToArray();
            string exceptions;
            lock (thrown)
                exceptions = string.Join(",", thrown.Select(pair => $"\"{pair.Key}\":{pair.Value}"));
            return string.Format(CultureInfo.InvariantCulture,
                "{{\"collections\":[{0},{1},{2}],\"exceptions\":{{{3}}},\"contentions\":{4},\"waited_ms\":{5:F3},\"bytes\":{{\"System.Byte[]\":{6},\"Contoso.Eventful.Node\":{7}}}," +
                "\"compiled\":{8},\"orders\":100,\"pid\":{9}}}",
                counts[0] - counts[1], counts[1] - counts[2], counts[2], exceptions, contentions, waited, byteBytes, nodeBytes, compiled,
                Process.GetCurrentProcess().Id);
        }

        // No work item ends, so the pool has to add threads.
        private static string Starve()
        {
            for (int i = 0; i < 4 * Environment.ProcessorCount; i++)
                ThreadPool.QueueUserWorkItem(_ => Thread.Sleep(Timeout.Infinite));
            return "";
        }

        public static void Main()
        {
            AppDomain.CurrentDomain.FirstChanceException += (sender, arguments) =>
            {
                string type = arguments.Exception.GetType().FullName;
                lock (thrown)
                    thrown[type] = (thrown.TryGetValue(type, out long count) ? count : 0) + 1;
            };
            OrdersSource.Log.Depth = 0;
            Console.WriteLine("ready");
            for (string line; (line = Console.ReadLine()) != null;)
                Console.WriteLine(line == "starve" ? Starve() : Work());
            GC.KeepAlive(kept);
            GC.KeepAlive(bytes);
        }
    }
}

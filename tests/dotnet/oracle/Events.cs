// SPDX-License-Identifier: MIT
// Events of a runtime with Microsoft's own libraries.
// oracle record PID FILE PROVIDER:KEYWORDS:LEVEL[:ARGUMENTS]... records a session (NETCore.Client) until a line comes on standard
// input; keywords in hexadecimal. oracle events FILE prints what TraceEvent makes of a nettrace file, as JSON.
using System;
using System.Collections.Generic;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text.Json;
using System.Threading.Tasks;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.Analysis.GC;
using Microsoft.Diagnostics.Tracing.Analysis.JIT;
using Microsoft.Diagnostics.Tracing.Parsers;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

namespace Oracle
{
    internal static class Events
    {
        private static EventPipeProvider ProviderOf(string word)
        {
            string[] parts = word.Split(':');
            Dictionary<string, string> arguments = parts.Length > 3
                ? parts[3].Split(';').Select(pair => pair.Split('=', 2)).ToDictionary(pair => pair[0], pair => pair[1])
                : null;
            return new EventPipeProvider(parts[0], (EventLevel)int.Parse(parts[2], CultureInfo.InvariantCulture),
                                         long.Parse(parts[1], NumberStyles.HexNumber, CultureInfo.InvariantCulture), arguments);
        }

        public static int Record(int pid, string path, IEnumerable<string> providers)
        {
            var client = new DiagnosticsClient(pid);
            using EventPipeSession session = client.StartEventPipeSession(providers.Select(ProviderOf), requestRundown: true, circularBufferMB: 256);
            using FileStream file = File.Create(path);
            Task copying = session.EventStream.CopyToAsync(file);
            Console.WriteLine("started");
            Console.ReadLine();
            session.Stop();
            copying.Wait();
            return 0;
        }

        private sealed class Sum
        {
            public long count { get; set; }
            public double weight { get; set; }

            public void Add(double more)
            {
                count++;
                weight += more;
            }
        }

        private static Sum At(SortedDictionary<string, Sum> sums, string key)
        {
            if (!sums.TryGetValue(key, out Sum sum))
                sums[key] = sum = new Sum();
            return sum;
        }

        public static int Print(string path)
        {
            var allocations = new SortedDictionary<string, Sum>(StringComparer.Ordinal);
            var sampled = new SortedDictionary<string, Sum>(StringComparer.Ordinal);
            var exceptions = new SortedDictionary<string, Sum>(StringComparer.Ordinal);
            var kinds = new SortedDictionary<string, Sum>(StringComparer.Ordinal);
            var orders = new List<object>();
            var contention = new Sum();
            var waits = new Sum();
            var begun = new Dictionary<int, double>();
            var waiting = new Dictionary<int, double>();
            using var source = new EventPipeEventSource(path);
            source.NeedLoadedDotNetRuntimes();
            source.Clr.GCAllocationTick += data => At(allocations, data.TypeName).Add(data.AllocationAmount64);
            source.Clr.AllocationSampling += data => At(sampled, data.TypeName).Add(data.ObjectSize);
            source.Clr.ExceptionStart += data => At(exceptions, data.ExceptionType).Add(1);
            source.Clr.ContentionStart += data => begun[data.ThreadID] = data.TimeStampRelativeMSec;
            source.Clr.ContentionStop += data =>
            {
                if (begun.Remove(data.ThreadID, out double begin))
                    contention.Add(data.Version >= 1 ? data.DurationNs / 1e6 : data.TimeStampRelativeMSec - begin);
            };
            source.Clr.WaitHandleWaitStart += data => waiting[data.ThreadID] = data.TimeStampRelativeMSec;
            source.Clr.WaitHandleWaitStop += data =>
            {
                if (waiting.Remove(data.ThreadID, out double begin))
                    waits.Add(data.TimeStampRelativeMSec - begin);
            };
            source.Dynamic.All += data =>
            {
                if (data.ProviderName == "Contoso-Orders" && data.EventName == "Placed")
                    orders.Add(data.PayloadNames.ToDictionary(name => name, name => data.PayloadByName(name).ToString()));
            };
            source.AllEvents += data => At(kinds, $"{data.ProviderName} {(int)data.ID}").Add(1);
            source.Process();
            var collections = new List<object>();
            var methods = new List<object>();
            foreach (TraceProcess process in source.Processes())
            {
                TraceLoadedDotNetRuntime runtime = process.LoadedDotNetRuntime();
                if (runtime == null)
                    continue;
                foreach (TraceGC gc in runtime.GC.GCs)
                    collections.Add(new
                    {
                        number = gc.Number,
                        generation = gc.Generation,
                        type = gc.Type.ToString(),
                        reason = gc.Reason.ToString(),
                        pause_ms = gc.PauseDurationMSec,
                        promoted = gc.HeapStats == null ? -1 : gc.PromotedMB * 1e6,
                        after = gc.HeapStats == null ? -1 : gc.HeapSizeAfterMB * 1e6,
                        before = gc.HeapSizeBeforeMB * 1e6,
                        complete = gc.IsComplete,
                    });
                foreach (TraceJittedMethod method in runtime.JIT.Methods)
                    methods.Add(new { name = method.MethodName, milliseconds = method.CompileCpuTimeMSec, tier = method.OptimizationTier.ToString() });
            }
            Console.WriteLine(JsonSerializer.Serialize(new
            {
                collections, methods, allocations, sampled, exceptions, contention, waits, orders, kinds,
                lost = source.EventsLost,
            }));
            return 0;
        }
    }
}

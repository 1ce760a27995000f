// SPDX-License-Identifier: MIT
// Prints what PerfView's own reader (TraceEvent, LinuxPerfScriptStackSource) makes of the perf.data.txt in a
// recording: "COUNT NAME" for all samples and for each function that is innermost, tab separated.
// Usage: oracle perfscript FILE.
using System;
using System.Collections.Generic;
using Microsoft.Diagnostics.Tracing.StackSources;

namespace Oracle
{
    internal static class PerfScript
    {
        public static int Print(string path)
        {
            var source = new LinuxPerfScriptStackSource(path, false);
            var innermost = new SortedDictionary<string, int>(StringComparer.Ordinal);
            int all = 0;
            source.ForEach(sample =>
            {
                string name = source.GetFrameName(source.GetFrameIndex(sample.StackIndex), false);
                innermost[name] = innermost.GetValueOrDefault(name) + 1;
                all++;
            });
            Console.WriteLine($"{all}\tall samples");
            foreach (KeyValuePair<string, int> pair in innermost)
                Console.WriteLine($"{pair.Value}\t{pair.Key}");
            return 0;
        }
    }
}

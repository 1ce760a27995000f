// SPDX-License-Identifier: MIT
// Asks a live .NET process over its diagnostics socket for a rundown and prints
// every method that the runtime itself names, one a line, tab separated:
//   KIND(jit|r2r|dynamic) START(hex) SIZE(hex) TYPE METHOD SIGNATURE MODULE
// Usage: oracle PID. Ends with a line "# methods N lost M".
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Threading.Tasks;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Parsers;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

namespace Oracle
{
    internal static class Rundown
    {
        // Loader (module events), JIT (jitted methods), NGEN (precompiled methods), end enumeration.
        private const long Keywords = 0x138;

        private const string Provider = "Microsoft-Windows-DotNETRuntimeRundown";

        private static int Main(string[] arguments)
        {
            if (arguments.Length == 2 && arguments[0] == "r2rmap")
                return PerfViewMap.Print(arguments[1]);
            if (arguments.Length >= 4 && arguments[0] == "record")
                return Events.Record(int.Parse(arguments[1], CultureInfo.InvariantCulture), arguments[2], arguments[3..]);
            if (arguments.Length == 2 && arguments[0] == "events")
                return Events.Print(arguments[1]);
            if (arguments.Length > 1 && arguments[0] == "names")
                return CompilerNames.Print(arguments[1..]);
            if (arguments.Length == 2 && arguments[0] == "perfscript")
                return PerfScript.Print(arguments[1]);
            if (arguments.Length != 1 || !int.TryParse(arguments[0], out int pid))
            {
                Console.Error.WriteLine("usage: oracle PID, oracle r2rmap FILE, oracle record PID FILE PROVIDER..., oracle events FILE, oracle names FILE..., oracle perfscript FILE");
                return 2;
            }
            string file = Path.GetTempFileName();
            try
            {
                Record(pid, file);
                Print(file);
                return 0;
            }
            finally
            {
                File.Delete(file);
            }
        }

        private static void Record(int pid, string file)
        {
            var provider = new EventPipeProvider(Provider, System.Diagnostics.Tracing.EventLevel.Verbose, Keywords);
            using EventPipeSession session = Start(new DiagnosticsClient(pid), provider);
            using FileStream output = File.Create(file);
            Task copying = session.EventStream.CopyToAsync(output);
            session.Stop();
            copying.GetAwaiter().GetResult();
        }

        // Up to .NET 8 the runtime cannot be told which rundown to make: it makes its own, of everything.
        private static EventPipeSession Start(DiagnosticsClient client, EventPipeProvider provider)
        {
            try
            {
                return client.StartEventPipeSession(new EventPipeSessionConfiguration(
                    new[] { provider }, circularBufferSizeMB: 512, rundownKeyword: Keywords, requestStackwalk: false));
            }
            catch (UnsupportedCommandException)
            {
                return client.StartEventPipeSession(new[] { provider }, requestRundown: true, circularBufferMB: 512);
            }
        }

        private static void Print(string file)
        {
            using var source = new EventPipeEventSource(file);
            var rundown = new ClrRundownTraceEventParser(source);
            var modules = new Dictionary<long, string>();
            var methods = new List<MethodLoadUnloadVerboseTraceData>();
            rundown.LoaderModuleDCStop += module => modules[module.ModuleID] = module.ModuleILPath;
            rundown.MethodDCStopVerbose += method => methods.Add((MethodLoadUnloadVerboseTraceData)method.Clone());
            source.Process();

            using TextWriter output = new StreamWriter(Console.OpenStandardOutput());
            output.NewLine = "\n";
            foreach (MethodLoadUnloadVerboseTraceData method in methods)
            {
                modules.TryGetValue(method.ModuleID, out string module);
                output.WriteLine(string.Join("\t", new[]
                {
                    Kind((int)method.MethodFlags),
                    method.MethodStartAddress.ToString("x", CultureInfo.InvariantCulture),
                    method.MethodSize.ToString("x", CultureInfo.InvariantCulture),
                    method.MethodNamespace,
                    method.MethodName,
                    method.MethodSignature,
                    module ?? string.Empty,
                }));
            }
            output.WriteLine("# methods " + methods.Count + " lost " + source.EventsLost);
        }

        // Precompiled methods carry no mark of their own: they are what is neither dynamic (0x1) nor jitted (0x8).
        private static string Kind(int flags) => (flags & 1) != 0 ? "dynamic" : (flags & 8) != 0 ? "jit" : "r2r";
    }
}

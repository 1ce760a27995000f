// SPDX-License-Identifier: MIT
// Has PerfView's own reader (TraceEvent, R2RPerfMapSymbolModule) open an r2rmap
// and prints what it makes of it: a line "SIGNATURE VERSION OS ARCHITECTURE ABI",
// then for each rva (hex, a line of standard input) the start and the name that it finds.
// Usage: oracle r2rmap FILE.
using System;
using System.Globalization;
using System.Reflection;
using Microsoft.Diagnostics.Symbols;

namespace Oracle
{
    internal static class PerfViewMap
    {
        public static int Print(string path)
        {
            // Internal: a change of its shape is to be a failure, not a guess.
            Type type = typeof(SymbolReader).Assembly.GetType("Microsoft.Diagnostics.Symbols.R2RPerfMapSymbolModule", throwOnError: true);
            object module = Activator.CreateInstance(type, path, 0u);
            MethodInfo find = type.GetMethod("FindNameForRva");
            object Get(string name) => type.GetProperty(name).GetValue(module);
            Console.WriteLine($"{Get("Signature"):N} {Get("Version")} {Get("TargetOS")} {Get("TargetArchitecture")} {Get("TargetABI")}");
            for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
            {
                object[] arguments = { uint.Parse(line, NumberStyles.HexNumber, CultureInfo.InvariantCulture), 0u };
                object name = find.Invoke(module, arguments);
                Console.WriteLine($"{arguments[1]:X8} {name}");
            }
            return 0;
        }
    }
}

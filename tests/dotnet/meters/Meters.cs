// SPDX-License-Identifier: MIT
// Publishes values by every kind of EventCounter and instrument, which are known beforehand. Prints "ready". For each line of
// input it publishes so many, waits until the runtime has collected them, and prints an empty line.
using System;
using System.Collections.Generic;
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;
using System.Threading;

[EventSource(Name = "Contoso-Counters")]
sealed class Counters : EventSource
{
    public static readonly Counters Log = new Counters();
    public long Bytes, Collections;
    EventCounter time;
    IncrementingEventCounter requests;
    readonly List<DiagnosticCounter> polled = new List<DiagnosticCounter>();

    public void Publish(double value)
    {
        Bytes += 10;
        time?.WriteMetric(value);
        requests?.Increment(3);
    }

    double Queue()
    {
        Interlocked.Increment(ref Collections);
        return 7;
    }

    protected override void OnEventCommand(EventCommandEventArgs command)
    {
        if (command.Command != EventCommand.Enable || time != null)
            return;
        requests = new IncrementingEventCounter("requests", this);
        polled.Add(new IncrementingPollingCounter("bytes", this, () => Bytes) { DisplayUnits = "B" });
        polled.Add(new PollingCounter("ratio", this, () => double.NaN));
        time = new EventCounter("time", this) { DisplayUnits = "ms" };
        polled.Add(new PollingCounter("queue", this, Queue));
    }
}

static class Program
{
    static readonly Meter meter = new Meter("Contoso.Meters");
    static long seen, collections;

    static Measurement<double> Room(string name, double value) => new Measurement<double>(value, new KeyValuePair<string, object>("room", name));

    static IEnumerable<Measurement<double>> Temperatures()
    {
        Interlocked.Increment(ref collections);
        return new[] { Room("a", 21.5), Room("b", 19) };
    }

    // The first collection may have begun before all was published, and the last may not have ended.
    static void WaitForCollections()
    {
        long meters = Interlocked.Read(ref collections) + 3, counters = Interlocked.Read(ref Counters.Log.Collections) + 3;
        while (Interlocked.Read(ref collections) < meters || Interlocked.Read(ref Counters.Log.Collections) < counters)
            Thread.Sleep(10);
    }

    static void Main()
    {
        var orders = meter.CreateCounter<long>("orders", "{order}");
        var open = meter.CreateUpDownCounter<int>("open");
        var latency = meter.CreateHistogram<double>("latency", "ms");
        meter.CreateObservableCounter<long>("seen", () => seen);
        meter.CreateObservableUpDownCounter<int>("depth", () => 3);
        meter.CreateObservableGauge<double>("temperature", Temperatures, "Cel");
        seen = Counters.Log.Bytes + 1000;
        Console.WriteLine("ready");
        for (string line; (line = Console.ReadLine()) != null;)
        {
            WaitForCollections();
            for (int i = 1, count = int.Parse(line); i <= count; i++)
            {
                orders.Add(2, new KeyValuePair<string, object>("route", "/a"));
                orders.Add(1, new KeyValuePair<string, object>("route", "/b"));
                open.Add(i % 4 == 0 ? -2 : 1);
                latency.Record(i);
                seen += 5;
                Counters.Log.Publish(i < count ? 1 : 100);
            }
            WaitForCollections();
            Console.WriteLine();
        }
    }
}

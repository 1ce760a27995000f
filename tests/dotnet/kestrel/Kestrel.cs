// SPDX-License-Identifier: MIT
// A web server that asks itself: Kestrel and HttpClient with their event sources, and a Meter. Prints
// "ready". For each line of input, COUNT WAIT_MS, it makes so many requests, waits so long, in which the
// Meter publishes them, and prints the number of requests that it has answered.
using System;
using System.Diagnostics.Metrics;
using System.Linq;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.Logging;

var builder = WebApplication.CreateSlimBuilder(args);
builder.Logging.ClearProviders();
builder.WebHost.UseUrls("http://127.0.0.1:0");
var app = builder.Build();
var orders = new Meter("Contoso.Shop").CreateCounter<long>("orders", "{order}");
int answered = 0;
app.MapGet("/order", async () =>
{
    Interlocked.Increment(ref answered);
    orders.Add(1);
    await Task.Delay(1);
    return "order";
});
await app.StartAsync();
string url = app.Urls.First();
Console.WriteLine("ready");
using var client = new HttpClient();
for (string line; (line = Console.ReadLine()) != null;)
{
    int[] words = line.Split(' ').Select(int.Parse).ToArray();
    for (int i = 0; i < words[0]; i++)
        await client.GetStringAsync(url + "/order");
    await Task.Delay(words[1]);
    Console.WriteLine(answered);
}

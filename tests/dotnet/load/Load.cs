// SPDX-License-Identifier: MIT
// A web server for every version of .NET: a request runs queries, a regular expression and JSON, waits for
// a lock, or awaits a timer. Usage: load PORT. Prints "ready"; ends with its process.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

namespace Load
{
    internal static class Program
    {
        private static readonly object Gate = new object();

        private static async Task Main(string[] arguments)
        {
            // No HttpListener: that of 3.1 needs an OpenSSL that is no longer there.
            var listener = new TcpListener(IPAddress.Loopback, int.Parse(arguments[0]));
            listener.Start();
            Console.WriteLine("ready");
            for (;;)
            {
                TcpClient client = await listener.AcceptTcpClientAsync();
                _ = Task.Run(() => Serve(client));
            }
        }

        private static async Task Serve(TcpClient client)
        {
            using (client)
            using (NetworkStream stream = client.GetStream())
            {
                var reader = new StreamReader(stream, Encoding.ASCII);
                try
                {
                    for (string line; (line = await reader.ReadLineAsync()) != null;)
                    {
                        string path = line.Split(' ')[1];
                        while (!string.IsNullOrEmpty(line))
                            line = await reader.ReadLineAsync();
                        string text = await Answer(path);
                        byte[] bytes = Encoding.ASCII.GetBytes($"HTTP/1.1 200 OK\r\nContent-Length: {text.Length}\r\n\r\n{text}");
                        await stream.WriteAsync(bytes, 0, bytes.Length);
                    }
                }
                catch (IOException)
                {
                    // The client has gone away.
                }
            }
        }

        private static async Task<string> Answer(string path)
        {
            switch (path)
            {
                case "/wait": return Wait();
                case "/later": await Task.Delay(1); return "later";
                default: return Work(300);
            }
        }

        private static string Wait()
        {
            lock (Gate)
            {
                Thread.Sleep(1);
                return "waited";
            }
        }

        private static string Work(int count)
        {
            Dictionary<string, double> sums = Enumerable.Range(0, count)
                .Select(i => new KeyValuePair<string, double>("customer " + i % 7, i * 1.5))
                .GroupBy(pair => pair.Key).ToDictionary(group => group.Key, group => group.Sum(pair => pair.Value));
            int words = Regex.Matches(string.Join(" ", sums.Keys), @"\w+").Count;
            return JsonSerializer.Serialize(sums) + words;
        }
    }
}

// Command load reads large files from an HTTP server, in the manner of BMCs and of downloads, and says as one line of JSON how it went.
//
//	load stream -url URL [-ca FILE] -clients 8 -for 5s                     whole files, again and again
//	load ranges -url URL [-ca FILE] -clients 8 -for 5s -length 65536       random ranges, as fast as they come
//	load paced  -url URL [-ca FILE] -clients 200 -for 20s -length 65536 -rate 2000000
//
// It must cost less than the server that is measured. So what arrives is thrown away inside the kernel (MSG_TRUNC), and over
// TLS it is not decrypted: a connection reads its first answers as any client would, checks them, and learns how many bytes
// such an answer has on the wire; from then on it counts these.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	url, ca string
	clients int
	seconds time.Duration
	length  int64
	rate    float64
}

type report struct {
	Count     int                `json:"count"`
	Seconds   float64            `json:"seconds"`
	Bytes     int64              `json:"bytes"`
	Behind    int                `json:"behind"`
	Latency   map[string]float64 `json:"latency_ms"`
	ClientCPU float64            `json:"client_cpu_seconds"`
	Cipher    string             `json:"cipher"`
}

// What one reader did. A late reader is behind its pace at the end.
type outcome struct {
	bytes     int64
	latencies []time.Duration
	late      bool
	err       error
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: load stream|ranges|paced -url URL …"))
	}
	given := parsed(os.Args[2:])
	to, err := newServer(given.url, given.ca)
	if err != nil {
		fail(err)
	}
	work, known := map[string]func(*server, options, int, time.Time) outcome{
		"stream": stream, "ranges": ranges, "paced": paced,
	}[os.Args[1]]
	if !known {
		fail(fmt.Errorf("there is no load named %s", os.Args[1]))
	}
	result, err := measured(to, given, work)
	if err != nil {
		fail(err)
	}
	json.NewEncoder(os.Stdout).Encode(result)
}

func measured(to *server, given options, work func(*server, options, int, time.Time) outcome) (report, error) {
	outcomes := make([]outcome, given.clients)
	before := processorTime()
	// All readers connect and get to know the server first; the clock starts for all of them together.
	start := time.Now().Add(500*time.Millisecond + time.Duration(given.clients)*5*time.Millisecond)
	var all sync.WaitGroup
	for number := range given.clients {
		all.Add(1)
		go func() {
			defer all.Done()
			outcomes[number] = work(to, given, number, start)
		}()
	}
	all.Wait()
	result := report{Seconds: time.Since(start).Seconds(), ClientCPU: processorTime() - before, Cipher: to.cipher()}
	var latencies []time.Duration
	for _, each := range outcomes {
		if each.err != nil {
			return report{}, each.err
		}
		result.Bytes += each.bytes
		latencies = append(latencies, each.latencies...)
		if each.late {
			result.Behind++
		}
	}
	result.Count = len(latencies)
	result.Latency = percentiles(latencies)
	return result, nil
}

func parsed(arguments []string) options {
	var given options
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	flags.StringVar(&given.url, "url", "", "what is read")
	flags.StringVar(&given.ca, "ca", "", "whom to trust")
	flags.IntVar(&given.clients, "clients", 1, "how many readers at once")
	flags.DurationVar(&given.seconds, "for", 5*time.Second, "how long")
	flags.Int64Var(&given.length, "length", 65536, "of a range")
	flags.Float64Var(&given.rate, "rate", 2e6, "bytes a second of a paced reader")
	flags.Parse(arguments)
	return given
}

func percentiles(latencies []time.Duration) map[string]float64 {
	if len(latencies) == 0 {
		return nil
	}
	sort.Slice(latencies, func(a, b int) bool { return latencies[a] < latencies[b] })
	at := func(share float64) float64 {
		return float64(latencies[int(share*float64(len(latencies)-1))].Microseconds()) / 1e3
	}
	return map[string]float64{"p50": at(0.5), "p99": at(0.99), "max": at(1)}
}

func processorTime() float64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, strings.TrimSpace(err.Error()))
	os.Exit(1)
}

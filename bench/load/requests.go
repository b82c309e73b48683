package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The same request over and over, from several clients at once: each takes the next number as soon as it is free.
func requests(t *target, given options) report {
	var next atomic.Int64
	var received atomic.Int64
	taken := make([]time.Duration, given.count)
	failures := make(chan string, given.count)
	clients := make([]*http.Client, given.clients)
	for i := range clients {
		clients[i] = t.client()
		greet(clients[i], t)
	}
	var all sync.WaitGroup
	start := time.Now()
	for _, client := range clients {
		all.Go(func() {
			buffer := make([]byte, 256<<10)
			for {
				number := int(next.Add(1)) - 1
				if number >= given.count {
					return
				}
				begun := time.Now()
				size, err := once(client, t, given.method, given.path, given.first+number, buffer)
				taken[number] = time.Since(begun)
				received.Add(size)
				if err != nil {
					failures <- err.Error()
				}
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start).Seconds()
	close(failures)
	made := report{
		Count: given.count, Seconds: elapsed, Rate: float64(given.count) / elapsed, Bytes: received.Load(),
		Errors: len(failures), Latency: percentiles(taken),
	}
	made.First = <-failures
	return made
}

// Connect before the clock starts: handshakes are another measurement.
func greet(client *http.Client, t *target) {
	_, _ = once(client, t, http.MethodGet, "/version", 0, make([]byte, 4096))
}

func once(client *http.Client, t *target, method, path string, number int, buffer []byte) (int64, error) {
	request, err := t.request(method, path, number)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return 0, fmt.Errorf("%s %s: %s: %s", method, request.URL.Path, response.Status, said)
	}
	size, err := io.CopyBuffer(onlyWriter{}, response.Body, buffer)
	return size, err
}

// Takes everything and keeps nothing; io.Discard would bring a small buffer of its own.
type onlyWriter struct{}

func (onlyWriter) Write(piece []byte) (int, error) { return len(piece), nil }

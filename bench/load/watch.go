package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Many watches and one writer: how long until every watcher has seen every write. A latency is from the start of a write
// to its arrival at one watcher; events come in the order of the writes.
//
// When all watches are open it says so, and waits for a line before it goes on: whoever measures the server can look.
func watch(t *target, given options) (report, error) {
	begun := time.Now()
	streams, err := opened(t, given)
	if err != nil {
		return report{}, err
	}
	taken := time.Since(begun).Seconds()
	if err := json.NewEncoder(os.Stdout).Encode(report{
		Count: given.watchers, Seconds: taken, Rate: float64(given.watchers) / taken,
	}); err != nil {
		return report{}, err
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return delivered(t, given, streams)
}

func delivered(t *target, given options, streams []io.ReadCloser) (report, error) {
	written := make([]time.Time, given.count)
	taken := make([]time.Duration, given.count*given.watchers)
	var received atomic.Int64
	var all sync.WaitGroup
	short := make(chan string, given.watchers)
	// Written by one, read by all: the time of a write is there before its event can arrive.
	var guard sync.RWMutex
	for i, stream := range streams {
		all.Go(func() {
			defer stream.Close()
			seen := 0
			buffer := make([]byte, 64<<10)
			for seen < given.count {
				size, err := stream.Read(buffer)
				received.Add(int64(size))
				now := time.Now()
				for range bytes.Count(buffer[:size], []byte{'\n'}) {
					guard.RLock()
					taken[i*given.count+seen] = now.Sub(written[seen])
					guard.RUnlock()
					if seen++; seen == given.count {
						break
					}
				}
				if err != nil && seen < given.count {
					short <- fmt.Sprintf("a watch ended after %d of %d events: %v", seen, given.count, err)
					return
				}
			}
		})
	}
	writer := t.client()
	greet(writer, t)
	start := time.Now()
	failed := 0
	first := ""
	for number := range given.count {
		guard.Lock()
		written[number] = time.Now()
		guard.Unlock()
		if _, err := once(writer, t, given.method, given.writePath, given.first+number, make([]byte, 64<<10)); err != nil {
			return report{}, err
		}
	}
	all.Wait()
	elapsed := time.Since(start).Seconds()
	close(short)
	for sentence := range short {
		failed++
		first = sentence
	}
	deliveries := given.count * given.watchers
	return report{
		Count: deliveries, Seconds: elapsed, Rate: float64(deliveries) / elapsed, Bytes: received.Load(),
		Errors: failed, First: first, Latency: percentiles(taken),
	}, nil
}

// The streams of all watches, each of which the server has accepted. Sixteen at a time, as a fleet would reconnect.
func opened(t *target, given options) ([]io.ReadCloser, error) {
	streams := make([]io.ReadCloser, given.watchers)
	failures := make(chan error, given.watchers)
	room := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			stream, err := stream(t, given.path, i)
			if err != nil {
				failures <- err
				return
			}
			streams[i] = stream
		})
	}
	all.Wait()
	select {
	case err := <-failures:
		return nil, err
	default:
		return streams, nil
	}
}

func stream(t *target, path string, number int) (io.ReadCloser, error) {
	request, err := t.request(http.MethodGet, path, number)
	if err != nil {
		return nil, err
	}
	response, err := t.client().Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		response.Body.Close()
		return nil, fmt.Errorf("GET %s: %s: %s", request.URL.Path, response.Status, said)
	}
	return response.Body, nil
}

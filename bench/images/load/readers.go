package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

// Whole files, each over a connection of its own, until the time is over.
func stream(to *server, given options, _ int, start time.Time) (done outcome) {
	request := to.request("Connection: close\r\n")
	end := start.Add(given.seconds)
	time.Sleep(time.Until(start))
	for time.Now().Before(end) {
		each, err := to.dial()
		if err != nil {
			return outcome{err: err}
		}
		if _, err = each.Write(request); err != nil {
			return outcome{err: err}
		}
		for time.Now().Before(end) {
			count, err := each.discard(-1)
			done.bytes += count
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return outcome{err: err}
			}
		}
		each.wire.Close()
	}
	return done
}

// Random ranges over one connection, each as soon as the last has arrived.
func ranges(to *server, given options, _ int, start time.Time) (done outcome) {
	one, err := newRanges(to, given.length)
	if err != nil {
		return outcome{err: err}
	}
	defer one.wire.Close()
	end := start.Add(given.seconds)
	time.Sleep(time.Until(start))
	for began := time.Now(); began.Before(end); {
		if err := one.next(); err != nil {
			return outcome{err: err}
		}
		now := time.Now()
		done.latencies = append(done.latencies, now.Sub(began))
		done.bytes += given.length
		began = now
	}
	done.err = one.nothingLeft()
	return done
}

// Ranges at a pace, as a machine reads its boot medium: a request is due at its time, and late when the one before it is.
func paced(to *server, given options, number int, start time.Time) (done outcome) {
	one, err := newRanges(to, given.length)
	if err != nil {
		return outcome{err: err}
	}
	defer one.wire.Close()
	each := time.Duration(float64(given.length) / given.rate * float64(time.Second))
	end := start.Add(given.seconds)
	due := start.Add(each * time.Duration(number) / time.Duration(given.clients))
	wanted := 0
	for ; due.Before(end); due = due.Add(each) {
		wanted++
		time.Sleep(time.Until(due))
		if time.Now().After(end.Add(each)) {
			continue
		}
		if err := one.next(); err != nil {
			return outcome{err: err}
		}
		done.latencies = append(done.latencies, time.Since(due))
		done.bytes += given.length
	}
	done.late = len(done.latencies) < wanted
	done.err = one.nothingLeft()
	return done
}

// Ranges of one length, at random places that all have the same number of digits: so all answers are equally long.
type rangeReader struct {
	*connection
	to        *server
	length    int64
	low, high int64
	onWire    int64
}

func newRanges(to *server, length int64) (*rangeReader, error) {
	each, err := to.dial()
	if err != nil {
		return nil, err
	}
	one := &rangeReader{connection: each, to: to, length: length, low: 0, high: 0}
	size, _, err := each.seen(one.request(0), length)
	if err != nil {
		return nil, err
	}
	digits := len(strconv.FormatInt(size, 10)) - 1
	one.low, one.high = 1, size-length
	for range digits - 1 {
		one.low *= 10
	}
	one.high = min(one.high, one.low*10-length)
	for range 3 {
		_, wire, err := each.seen(one.request(one.place()), length)
		if err != nil {
			return nil, err
		}
		if one.onWire != 0 && one.onWire != wire {
			return nil, fmt.Errorf("answers of equal length have %d and %d bytes on the wire", one.onWire, wire)
		}
		one.onWire = wire
	}
	return one, nil
}

func (one *rangeReader) place() int64 { return one.low + rand.Int64N(one.high-one.low) }

func (one *rangeReader) request(start int64) []byte {
	return one.to.request(fmt.Sprintf("Range: bytes=%d-%d\r\n", start, start+one.length-1))
}

func (one *rangeReader) next() error {
	if _, err := one.Write(one.request(one.place())); err != nil {
		return err
	}
	_, err := one.discard(one.onWire)
	return err
}

// Whether all that was counted was all that there was: an answer after these is as long as the first ones.
func (one *rangeReader) nothingLeft() error {
	one.wire.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if count, _ := one.discard(-1); count != 0 {
		return fmt.Errorf("%d bytes arrived that belong to no answer", count)
	}
	return nil
}

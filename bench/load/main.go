// Command load puts an HTTPS server under load and says, as one line of JSON, how it held.
//
// It knows no kind and no API: a method, a path and a body, in which @N@ stands for the number of the request, so that one
// program drives every server in the same way. HTTP/1.1 and TLS, one connection a client, kept open. The token comes from
// a file, so that it is in no list of processes.
//
//	load requests -url … -ca … -token … -method GET -path /a/@N@ -count 1000 -clients 16
//	load watch -url … -ca … -token … -path '/a?watch=1' -watchers 1000 -method PATCH -write-path /a/@N@ -body … -count 20
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strings"
	"syscall"
	"time"
)

// How one run went. Times are seconds but for the latencies, which are milliseconds.
type report struct {
	Count     int                `json:"count"`
	Seconds   float64            `json:"seconds"`
	Rate      float64            `json:"rate"`
	Bytes     int64              `json:"bytes"`
	Errors    int                `json:"errors"`
	First     string             `json:"first_error,omitempty"`
	Latency   map[string]float64 `json:"latency_ms"`
	ClientCPU float64            `json:"client_cpu_seconds"`
}

type options struct {
	url, ca, token, method, path, body, contentType, accept, writePath string
	count, clients, first, watchers                                    int
	timeout                                                            time.Duration
}

func main() {
	if len(os.Args) < 2 || (os.Args[1] != "requests" && os.Args[1] != "watch") {
		fail("usage: load requests|watch -url URL -ca FILE -token FILE …")
	}
	given := parsed(os.Args[2:])
	target, err := newTarget(given)
	if err != nil {
		fail(err.Error())
	}
	var result report
	if os.Args[1] == "watch" {
		result, err = watch(target, given)
	} else {
		result = requests(target, given)
	}
	if err != nil {
		fail(err.Error())
	}
	result.ClientCPU = processorTime()
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err.Error())
	}
}

func parsed(arguments []string) options {
	var given options
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	flags.StringVar(&given.url, "url", "", "where the server is, https://HOST:PORT")
	flags.StringVar(&given.ca, "ca", "", "file with the certificate authority to trust")
	flags.StringVar(&given.token, "token", "", "file with the bearer token")
	flags.StringVar(&given.method, "method", "GET", "method of the requests, or of the writes that watchers are to see")
	flags.StringVar(&given.path, "path", "/", "path and query of the requests, or of the watches; @N@ is the number")
	flags.StringVar(&given.writePath, "write-path", "", "path of the writes that watchers are to see; @N@ is the number")
	flags.StringVar(&given.body, "body", "", "file with the body; @N@ is the number")
	flags.StringVar(&given.contentType, "type", "application/json", "content type of the body")
	flags.StringVar(&given.accept, "accept", "application/json", "what to accept")
	flags.IntVar(&given.count, "count", 1, "how many requests, or writes")
	flags.IntVar(&given.first, "first", 0, "number of the first one")
	flags.IntVar(&given.clients, "clients", 1, "how many at the same time")
	flags.IntVar(&given.watchers, "watchers", 1, "how many watches")
	flags.DurationVar(&given.timeout, "timeout", 5*time.Minute, "how long to wait at most")
	_ = flags.Parse(arguments) // ExitOnError: it does not return one
	return given
}

// A server, and what is asked of it.
type target struct {
	url, token, body, contentType, accept string
	roots                                 *x509.CertPool
	timeout                               time.Duration
}

func newTarget(given options) (*target, error) {
	pem, err := os.ReadFile(given.ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", given.ca)
	}
	token, err := os.ReadFile(given.token)
	if err != nil {
		return nil, err
	}
	made := &target{
		url: strings.TrimRight(given.url, "/"), token: strings.TrimSpace(string(token)),
		contentType: given.contentType, accept: given.accept, roots: roots, timeout: given.timeout,
	}
	if given.body != "" {
		body, err := os.ReadFile(given.body)
		if err != nil {
			return nil, err
		}
		made.body = string(body)
	}
	return made, nil
}

// A client with a connection of its own. Go would speak HTTP/2 and share one; watches and workers are to be apart.
func (t *target) client() *http.Client {
	return &http.Client{
		Timeout: t.timeout,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: t.roots, MinVersion: tls.VersionTLS12},
			TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
			MaxIdleConnsPerHost: 1,
			DisableCompression:  true,
			ReadBufferSize:      64 << 10,
			WriteBufferSize:     16 << 10,
		},
	}
}

func (t *target) request(method, path string, number int) (*http.Request, error) {
	text := fmt.Sprint(number)
	var body *strings.Reader
	if method == http.MethodGet || t.body == "" {
		body = strings.NewReader("")
	} else {
		body = strings.NewReader(strings.ReplaceAll(t.body, "@N@", text))
	}
	made, err := http.NewRequest(method, t.url+strings.ReplaceAll(path, "@N@", text), body)
	if err != nil {
		return nil, err
	}
	made.Header.Set("Authorization", "Bearer "+t.token)
	made.Header.Set("Accept", t.accept)
	if body.Len() > 0 {
		made.Header.Set("Content-Type", t.contentType)
	}
	return made, nil
}

// The latencies that say something: half, nine in ten, all but one in a hundred, and the worst.
func percentiles(taken []time.Duration) map[string]float64 {
	if len(taken) == 0 {
		return map[string]float64{}
	}
	sort.Slice(taken, func(i, j int) bool { return taken[i] < taken[j] })
	at := func(share float64) float64 {
		return taken[int(share*float64(len(taken)-1))].Seconds() * 1e3
	}
	return map[string]float64{"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)}
}

func processorTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return spent.Seconds()
}

func fail(sentence string) {
	fmt.Fprintln(os.Stderr, "load: "+sentence)
	os.Exit(1)
}

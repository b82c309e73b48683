package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const room = 4 << 20

type server struct {
	address, host, path string
	trust               *tls.Config
	suite               atomic.Uint32
}

func newServer(where, ca string) (*server, error) {
	parsed, err := url.Parse(where)
	if err != nil {
		return nil, err
	}
	made := &server{address: parsed.Host, host: parsed.Hostname(), path: parsed.RequestURI()}
	if parsed.Scheme == "https" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		made.trust = &tls.Config{RootCAs: roots, ServerName: made.host}
	}
	return made, nil
}

func (to *server) cipher() string {
	if suite := to.suite.Load(); suite != 0 {
		return tls.CipherSuiteName(uint16(suite))
	}
	return ""
}

func (to *server) request(more string) []byte {
	return []byte("GET " + to.path + " HTTP/1.1\r\nHost: " + to.host + "\r\nUser-Agent: load\r\nAccept: */*\r\n" + more + "\r\n")
}

// A connection that counts what arrives on the wire, and can throw it away unseen.
type connection struct {
	net.Conn
	wire *counting
	raw  syscall.RawConn
	read *bufio.Reader
	away []byte
}

type counting struct {
	net.Conn
	arrived int64
}

func (wire *counting) Read(into []byte) (int, error) {
	count, err := wire.Conn.Read(into)
	wire.arrived += int64(count)
	return count, err
}

func (to *server) dial() (*connection, error) {
	plain, err := net.Dial("tcp", to.address)
	if err != nil {
		return nil, err
	}
	plain.SetDeadline(time.Now().Add(5 * time.Minute))
	raw, err := plain.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	made := &connection{wire: &counting{Conn: plain}, raw: raw, away: make([]byte, room)}
	made.Conn = made.wire
	if to.trust != nil {
		secure := tls.Client(made.wire, to.trust)
		if err := secure.Handshake(); err != nil {
			return nil, err
		}
		to.suite.Store(uint32(secure.ConnectionState().CipherSuite))
		made.Conn = secure
	}
	made.read = bufio.NewReaderSize(made.Conn, 64<<10)
	return made, nil
}

// An answer that is read and checked as any client would: the size of the whole file, and the bytes on the wire.
func (each *connection) seen(request []byte, length int64) (size int64, wire int64, err error) {
	before := each.wire.arrived
	if _, err = each.Write(request); err != nil {
		return 0, 0, err
	}
	answer, err := http.ReadResponse(each.read, nil)
	if err != nil {
		return 0, 0, err
	}
	got, err := io.Copy(io.Discard, answer.Body)
	if err != nil {
		return 0, 0, err
	}
	var first, last int64
	if answer.StatusCode != http.StatusPartialContent || got != length {
		return 0, 0, fmt.Errorf("a range of %d bytes was answered with %s and %d bytes", length, answer.Status, got)
	}
	if _, err = fmt.Sscanf(answer.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil {
		return 0, 0, err
	}
	return size, each.wire.arrived - before, nil
}

// Throw away what arrives: so many bytes, or with -1 whatever there is next. At the end of the stream, io.EOF.
func (each *connection) discard(bytes int64) (int64, error) {
	var done int64
	var failed error
	err := each.raw.Read(func(handle uintptr) bool {
		for bytes < 0 || done < bytes {
			want := int64(room)
			if bytes >= 0 {
				want = min(want, bytes-done)
			}
			count, _, number := syscall.RawSyscall6(syscall.SYS_RECVFROM, handle,
				uintptr(unsafe.Pointer(&each.away[0])), uintptr(want), syscall.MSG_TRUNC, 0, 0)
			switch {
			case number == syscall.EAGAIN:
				return false
			case number == syscall.EINTR:
				continue
			case number != 0:
				failed = number
				return true
			case count == 0:
				failed = io.EOF
				return true
			}
			done += int64(count)
			if bytes < 0 {
				return true
			}
		}
		return true
	})
	return done, errors.Join(failed, err)
}

package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay/internal/proc"
	"github.com/belay-run/belay/sandbox"
)

// servers are servers that a program in a sandbox tries to reach. They are goroutines of
// this test.
type servers struct {
	tcp, tcp6, udp string
	stream, gram   string // Unix sockets with a file
	abstract       string

	closers []io.Closer
	close   func()
}

// outside returns the servers, which all tests share. Servers that start and stop during
// the tests would disturb bwrap.
var outside = sync.OnceValue(listen)

func listen() *servers {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		panic(err)
	}
	s := &servers{stream: dir + "/s", gram: dir + "/d", abstract: "belay-sandbox-test" + filepath.Base(dir)}
	s.close = func() {
		for _, c := range s.closers {
			_ = c.Close() // no longer needed
		}
		_ = os.RemoveAll(dir)
	}
	s.tcp = s.accept("tcp", "127.0.0.1:0")
	if inet6() {
		s.tcp6 = s.accept("tcp", "[::1]:0")
	}
	s.accept("unix", s.stream)
	s.accept("unix", "@"+s.abstract)
	s.udp = s.echo("udp", "127.0.0.1:0")
	s.echo("unixgram", s.gram)
	return s
}

// accept starts a server that accepts connections until it is closed.
func (s *servers) accept(network, address string) string {
	l, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	if err != nil {
		panic(err)
	}
	s.closers = append(s.closers, l)
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// echo starts a server that sends packets back until it is closed.
func (s *servers) echo(network, address string) string {
	l, err := new(net.ListenConfig).ListenPacket(context.Background(), network, address)
	if err != nil {
		panic(err)
	}
	s.closers = append(s.closers, l)
	go func() { // ends with the socket
		buf := make([]byte, 64)
		for {
			n, from, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			if from != nil && from.String() != "" {
				_, _ = l.WriteTo(buf[:n], from) // the sender may have ended
			}
		}
	}()
	return l.LocalAddr().String()
}

// inet6 reports whether the machine supports IPv6.
func inet6() bool {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "[::1]:0")
	return err == nil && l.Close() == nil
}

// SPEC P-12
func TestWithoutNetworkNothingCanBeReached(t *testing.T) {
	t.Parallel()
	outside := outside()
	tests := []struct {
		name, attack, target string
	}{
		{"a server on loopback", "reach a server", outside.tcp},
		{"a server by UDP", "reach a server by UDP", outside.udp},
	}
	if inet6() {
		tests = append(tests, struct{ name, attack, target string }{"a server on loopback by IPv6", "reach a server", outside.tcp6})
	}
	for _, test := range tests {
		t.Run("without a sandbox/"+test.name, func(t *testing.T) {
			t.Parallel()
			if code, output := newPlace(t).strike(t, nil, test.attack, "", test.target); code != 0 {
				t.Errorf("the attack proves nothing: it does not even work without a sandbox: %s", output)
			}
		})
	}
	eachVersion(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				if code, output := newPlace(t).strike(t, s, test.attack, "", test.target); code != 3 {
					t.Errorf("exit code %d, want it to be refused: %s", code, output)
				}
			})
		}
		t.Run("a machine outside, that of names among them", func(t *testing.T) {
			t.Parallel()
			code, output := newPlace(t).strike(t, s, "find a way to another machine", "", "")
			if code != 3 {
				t.Errorf("exit code %d, want no way: %s", code, output)
			}
		})
		for _, attack := range []string{"make a socket to the host", "make a ring"} {
			t.Run(attack, func(t *testing.T) {
				t.Parallel()
				if s.Kind() == sandbox.Bubblewrap {
					t.Skip("bwrap has no filter of its own: see the package comment")
				}
				if code, output := newPlace(t).strike(t, s, attack, "", ""); code != 3 {
					t.Errorf("exit code %d, want it to be refused: %s", code, output)
				}
			})
		}
	})
}

// SPEC P-12
func TestWithNetworkServersCanBeReached(t *testing.T) {
	t.Parallel()
	outside := outside()
	eachVersion(t, func(t *testing.T, s *sandbox.Sandbox) {
		for attack, target := range map[string]string{"reach a server": outside.tcp, "reach a server by UDP": outside.udp} {
			p := newPlace(t)
			p.policy.Network = true
			if code, output := p.strike(t, s, attack, "", target); code != 0 {
				t.Errorf("%s: exit code %d, want it to work: %s", attack, code, output)
			}
		}
	})
}

// SPEC P-12
func TestUnixSocketsOutsideCannotBeReached(t *testing.T) {
	t.Parallel()
	outside := outside()
	tests := []struct {
		name, attack, target string
		limit                sandbox.Limit
	}{
		{"a stream", "connect to a socket", outside.stream, sandbox.Sockets},
		{"packets", "send to a socket", outside.gram, sandbox.Sockets},
		{"a socket without a file", "connect to an abstract socket", outside.abstract, sandbox.AbstractSockets},
	}
	for _, test := range tests {
		t.Run("without a sandbox/"+test.name, func(t *testing.T) {
			t.Parallel()
			if code, output := newPlace(t).strike(t, nil, test.attack, "", test.target); code != 0 {
				t.Errorf("the attack proves nothing: it does not even work without a sandbox: %s", output)
			}
		})
	}
	eachVersion(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, test := range tests {
			for _, network := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, network %v", test.name, network), func(t *testing.T) {
					t.Parallel()
					p := newPlace(t)
					p.policy.Network = network
					code, output := p.strike(t, s, test.attack, "", test.target)
					want := refused(s, test.limit)
					if test.limit == sandbox.AbstractSockets && s.Kind() != sandbox.Landlock && !network {
						want = 3 // abstract sockets are part of the network namespace
					}
					if code != want {
						t.Errorf("exit code %d, want %d: %s", code, want, output)
					}
				})
			}
		}
		t.Run("but for one that is named", func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.policy.Sockets = []string{outside.stream}
			if code, output := p.strike(t, s, "connect to a socket", "", outside.stream); code != 0 {
				t.Errorf("exit code %d, want it to work: %s", code, output)
			}
			if code, _ := p.strike(t, s, "send to a socket", "", outside.gram); code != refused(s, sandbox.Sockets) {
				t.Errorf("exit code %d of another socket", code)
			}
		})
	})
}

// Some sockets are in no list of the kernel, such as a socket that was passed into a
// container. They are found by environment variables.
func TestSocketsOfTheEnvironmentCannotBeReached(t *testing.T) {
	t.Parallel()
	outside := outside()
	for _, variable := range []string{"SSH_AUTH_SOCK=" + outside.stream, "DOCKER_HOST=unix://" + outside.stream} {
		p := newPlace(t)
		argv, err := need(t, sandbox.Namespaces).Command(p.policy, []string{executable(t)})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := proc.Run(t.Context(), &proc.Command{
			Argv: argv, Dir: p.in,
			Env: p.env(attackTask+"=connect to a socket", "TARGET="+outside.stream, variable),
		})
		if err != nil || exit.Code != 3 {
			t.Errorf("%s: exit = %+v, %v: want it to be refused", variable, exit, err)
		}
	}
}

// A program can start a server and send requests to it, even without a network.
func TestLoopbackWorksInside(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		code, output := p.strike(t, s, "serve and ask", "", map[bool]string{true: "127.0.0.1 ::1 localhost", false: "127.0.0.1"}[inet6()])
		if want := 0; s.Holds(sandbox.Loopback) && code != want {
			t.Errorf("exit code %d, want it to work: %s", code, output)
		}
		if !s.Holds(sandbox.Loopback) && (code != 3 || !strings.Contains(output, "permission denied")) {
			t.Errorf("exit code %d, and loopback is said not to work: %s", code, output)
		}
	})
}

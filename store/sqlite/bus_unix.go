//go:build unix

package sqlite

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/belay-run/belay"
)

// mailboxes returns the directory with a socket for each receiver. It is beside the file
// of the store, so that the same parent directory protects both.
func (s *Store) mailboxes() string { return s.path + "-live" }

// mailbox is the socket of one receiver. Every message is one datagram: the id of the sender,
// a space, and the text.
type mailbox struct {
	conn  *net.UnixConn
	path  string
	self  string
	once  sync.Once
	space []byte
}

// openMailbox creates a socket for the messages of other processes.
func (s *Store) openMailbox() (*mailbox, error) {
	dir := s.mailboxes()
	path := filepath.Join(dir, strings.ToLower(rand.Text()[:10]))
	for try := 0; ; try++ {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("mailbox: %w", err)
		}
		if err := checkMailboxes(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		switch {
		case err == nil:
			return &mailbox{conn: conn, path: path, self: s.id, space: make([]byte, belay.MostBroadcast+256)}, nil
		case !errors.Is(err, fs.ErrNotExist) || try == 3: // the last receiver may have removed the directory
			return nil, fmt.Errorf("mailbox: %w", err)
		}
	}
}

// checkMailboxes returns an error unless dir is a real directory that only this user can
// use. A link could lead to other files of the user, and other users must not write into
// the directory.
func checkMailboxes(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("mailbox: %s is not a directory that only this user can use: remove it", dir)
	}
	return nil
}

// receive waits for the next message of another process. It returns false when the mailbox
// is closed.
func (m *mailbox) receive() (string, bool) {
	for {
		n, err := m.conn.Read(m.space)
		if err != nil {
			return "", false
		}
		sender, message, ok := strings.Cut(string(m.space[:n]), " ")
		if ok && sender != m.self {
			return message, true
		}
	}
}

func (m *mailbox) close() {
	m.once.Do(func() {
		_ = m.conn.Close()
		_ = os.Remove(m.path)
		_ = os.Remove(filepath.Dir(m.path)) // fails if there are other receivers
	})
}

// sendAll sends a message to all mailboxes. It removes the sockets of processes that have
// ended. It drops the message for a receiver that is too slow.
func (s *Store) sendAll(message string) error {
	err := checkMailboxes(s.mailboxes())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("broadcast: %w", err)
	}
	boxes, err := os.ReadDir(s.mailboxes())
	if err != nil {
		return fmt.Errorf("broadcast: %w", err)
	}
	data := []byte(s.id + " " + message)
	for _, box := range boxes {
		if box.Type() != fs.ModeSocket {
			continue
		}
		path := filepath.Join(s.mailboxes(), box.Name())
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // its process has ended
		}
		if err != nil {
			continue
		}
		_ = conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		_, _ = conn.Write(data) // a receiver that is too slow loses the message
		_ = conn.Close()
	}
	return nil
}

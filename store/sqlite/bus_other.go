//go:build !unix

package sqlite

// mailbox is empty, because this system has no Unix datagram sockets.
type mailbox struct{}

func (s *Store) openMailbox() (*mailbox, error) { return nil, nil } //nolint:nilnil // there are no mailboxes here

func (*mailbox) receive() (string, bool) { return "", false }

func (*mailbox) close() {}

func (s *Store) sendAll(string) error { return nil }

//go:build !unix

package sqlite

// mailbox does not exist on this system, which has no sockets for datagrams in files.
type mailbox struct{}

func (s *Store) openMailbox() (*mailbox, error) { return nil, nil } //nolint:nilnil // there are no mailboxes here

func (*mailbox) receive() (string, bool) { return "", false }

func (*mailbox) close() {}

func (s *Store) sendAll(string) error { return nil }
